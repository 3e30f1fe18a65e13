"""Local steps on a GPU: the kernels of a step are captured once and launched together.

A step has dozens of kernels. For few clients the GPU computes one in less time than the host takes to launch it.
"""

from collections import Counter
from collections.abc import Callable, Hashable
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

    def first(self) -> "Steps":
        """The first step, with copies of all tensors."""
        own = self.moving.each(torch.clone), [buffer.clone() for buffer in self.buffers], self.lrs.clone()
        return Steps(*own, self.minibatches.first())


Take = Callable[[Steps], None]


class Captured:
    """Takes local steps from a capture of one: the same kernels in the same order, hence the same bits.

    Each combination of shapes has a capture of its own. It is used only after it gave the same bits as the step itself.
    Steps that cannot be captured are taken as they are.

    Args:
        take: takes the steps. It may wait for the device only in its first calls with these shapes.
        capture: makes a function that launches the kernels of another one; by default a CUDA graph.
    """

    def __init__(self, take: Take, capture: Callable[[Callable[[], None]], Callable[[], None]] | None = None) -> None:
        self.take = take
        self.capture = capture or Graphs().capture
        self.calls: Counter[Hashable] = Counter()
        self.captures: dict[Hashable, Capture | None] = {}

    def __call__(self, steps: Steps) -> None:
        minibatch = [column[0] for column in steps.minibatches.columns]
        kind = recording.kind_of([*steps.results, *steps.constants, *minibatch])
        # By then the engine has recorded its kernels, so that it waits for the device no more.
        if kind not in self.captures and self.calls[kind] >= recording.CALLS_BEFORE_RECORDING:
            self.captures[kind] = self._capture(steps)
        self.calls[kind] += len(steps.minibatches.lengths)
        (self.captures.get(kind) or self.take)(steps)

    def _capture(self, steps: Steps) -> "Capture | None":
        """A capture of the first step; None if that is impossible, or if it does not give the same bits."""
        expected, own = steps.first(), steps.first()
        self.take(expected)
        try:
            capture = Capture(own, self.capture(lambda: self.take(own)))
        except RuntimeError:  # the step itself has just worked
            return None
        capture.launch()
        return capture if recording.same_bits(expected.results, own.results) else None


class Capture(NamedTuple):
    """A captured step: the tensors that its kernels read and write, and a function that launches them."""

    own: Steps
    launch: Callable[[], None]

    def __call__(self, steps: Steps) -> None:
        """Take steps of the same shapes."""
        own = self.own
        torch._foreach_copy_([*own.results, *own.constants], [*steps.results, *steps.constants])
        minibatch = [column[0] for column in own.minibatches.columns]
        for columns in zip(*(column.unbind() for column in steps.minibatches.columns), strict=True):
            torch._foreach_copy_(minibatch, columns)
            self.launch()
        torch._foreach_copy_(steps.results, own.results)


class Graphs:
    """CUDA graphs. They share the memory of their intermediate results, which are needed during a launch only."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def capture(self, function: Callable[[], None]) -> Callable[[], None]:
        """A function that launches the kernels of another one, which is called once and changes nothing."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            function()
        return graph.replay
