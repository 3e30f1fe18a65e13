"""Local steps on a GPU: the kernels of a step are captured once and launched together.

A step has dozens of kernels. For few clients the GPU computes one in less time than the host takes to launch it.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from rollcall.benchmark.engines import recording
from rollcall.benchmark.engines.base import LocalState
from rollcall.benchmark.engines.feed import Stacked
from rollcall.benchmark.engines.flat_task import Buffers


class Steps(NamedTuple):
    """Local steps of clients with given minibatches: models, velocities and buffers, which the steps change in place;
    learning rates; and minibatches.
    """

    moving: LocalState
    buffers: Buffers
    lrs: Float[Tensor, "n 1"]
    minibatches: Stacked

    @property
    def results(self) -> list[Tensor]:
        """What the steps change."""
        velocity = self.moving.velocity
        return [self.moving.y, *([] if velocity is None else [velocity]), *self.buffers]

    @property
    def constants(self) -> list[Tensor]:
        """What all steps have in common and do not change."""
        return [self.lrs, *([] if self.moving.correct is None else [self.moving.correct])]

    @property
    def minibatch(self) -> list[Tensor]:
        """The columns of the first step's minibatches."""
        return [column[0] for column in self.minibatches.columns]

    @property
    def kind(self) -> Hashable:
        """Everything that decides which kernels a step has."""
        parts = self.results, self.constants, self.minibatch
        return *map(len, parts), recording.kind_of([tensor for part in parts for tensor in part])

    def first(self) -> "Steps":
        """The first step, with copies of all tensors."""
        buffers = [buffer.clone() for buffer in self.buffers]
        return Steps(self.moving.each(torch.clone), buffers, self.lrs.clone(), self.minibatches.first())


class Captured:
    """Takes local steps from a capture of one: the same kernels in the same order, hence the same bits.

    Each combination of shapes has a capture of its own. It is used only after it gave the same bits as the step itself.
    Steps that cannot be captured are taken as they are. After the first of them nothing more is captured.

    Args:
        take: takes the steps. After `recording.CALLS_BEFORE_RECORDING` steps with these shapes it must not wait for the
            device.
        memory: bytes for the tensors of all captures. What a step computes in between takes some fourteen times the
            memory of its tensors, but all captures share it.
        capture: makes a function that launches the kernels of another one; by default a CUDA graph.
    """

    def __init__(
        self,
        take: Callable[[Steps], None],
        memory: float,
        capture: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
    ) -> None:
        self.take = take
        self.memory = memory
        self.capture = capture or Graphs().of
        self.taken: Counter[Hashable] = Counter()
        self.launches: dict[Hashable, Launch | None] = {}

    def __call__(self, steps: Steps) -> None:
        kind = steps.kind
        if kind not in self.launches and self.taken[kind] >= recording.CALLS_BEFORE_RECORDING:
            self.launches[kind] = self._launch(steps)
        self.taken[kind] += len(steps.minibatches.lengths)
        (self.launches.get(kind) or self.take)(steps)

    def _launch(self, steps: Steps) -> "Launch | None":
        """A capture of the first step; None if there is no memory for it, or if it does not give the same bits."""
        size = sum(tensor.nbytes for tensor in (*steps.results, *steps.constants, *steps.minibatch))
        if size > self.memory:
            return None
        left, self.memory = self.memory - size, 0
        try:
            own, expected, found = (steps.first() for _ in range(3))
            with no_waiting(steps.lrs.device):
                self.take(expected)
            launch = Launch(own, self.capture(lambda: self.take(own)))
            launch(found)
        except RuntimeError:  # the step waits for the device, or there is too little memory: it has worked before
            return None
        finite = all(bool(tensor.isfinite().all()) for tensor in expected.results)  # NaN has no equal
        if finite and not (own.kind == steps.kind and recording.same_bits(expected.results, found.results)):
            return None
        self.memory = left
        return launch if finite else None


class Launch(NamedTuple):
    """A captured step: the tensors that its kernels read and write, and a function that launches them."""

    own: Steps
    kernels: Callable[[], None]

    def __call__(self, steps: Steps) -> None:
        """Take steps of the same shapes."""
        own, minibatch = self.own, self.own.minibatch
        torch._foreach_copy_([*own.results, *own.constants], [*steps.results, *steps.constants])
        for columns in zip(*(column.unbind() for column in steps.minibatches.columns), strict=True):
            torch._foreach_copy_(minibatch, columns)
            self.kernels()
        torch._foreach_copy_(steps.results, own.results)


class Graphs:
    """CUDA graphs. They share the memory of their intermediate results, which are needed during a launch only."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def of(self, function: Callable[[], None]) -> Callable[[], None]:
        """A function that launches the kernels of another one, which do not run while it is called here."""
        graph = torch.cuda.CUDAGraph()
        # The outer context restores the stream after a failure, which some versions of torch do not.
        stream, mode = torch.cuda.stream(torch.cuda.current_stream()), "thread_local"
        with stream, torch.cuda.graph(graph, pool=self.pool, capture_error_mode=mode):
            function()
        return graph.replay


@contextmanager
def no_waiting(device: torch.device) -> Iterator[None]:
    """Raise RuntimeError if the host waits for a GPU. A capture would fail for it, which leaves torch in disorder."""
    if device.type != "cuda":
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the mode does not find all that waits
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
