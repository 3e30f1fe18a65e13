"""Recording of functions whose Python code takes longer than their kernels."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from benchmark.engines.graphs import Kernels, record, record_split, same_bits, with_python_names

CALLS_BEFORE_TRACING = 30
"""Steps: recording costs about as much as this many steps lose without it."""

AT_ONCE = 2**22
"""Bytes. What data become, for all steps at once, is computed together up to this size; more would leave the caches."""

SHARED = 256
"""Recordings that a process keeps for later trials."""

ResultsAt = Callable[[int], list[Tensor]]
"""The results of a function at a model, which may be changed in place between calls, on the data of step k."""


class EachStep:
    """A function that is called in each step.

    Args:
        function: of the tensors of a model and those of a minibatch, and of nothing else that changes.
    """

    def __init__(self, function: Kernels) -> None:
        self.function = function

    def at_steps(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> ResultsAt:
        """The function at a model, on the data [K, ...] of K steps."""
        return lambda k: self.function(*model, *(column[k] for column in data))


class Traced(EachStep):
    """A function that is recorded and then played back: the same kernels in the same order, hence the same bits.

    Playing back skips the work that Python, `torch.func` and autograd do to find the kernels. Each combination of
    shapes has a recording of its own. Trials of a process share recordings. A trial uses one only after it gave the
    same bits as the function itself.

    Args:
        function: see `EachStep`.
        key: equal keys promise equal functions; None if the function is not shared.
    """

    def __init__(self, function: Kernels, key: Hashable | None = None) -> None:
        super().__init__(function)
        self.key = None if key is None else (function.__qualname__, key)
        self.steps: Counter[Hashable] = Counter()
        self.recordings: dict[Hashable, Recording | None] = {}

    def at_steps(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> ResultsAt:
        first = [column[0] for column in data]
        kind = kind_of([*model, *first])
        self.steps[kind] += len(data[0])
        if kind not in self.recordings and (self.steps[kind] >= CALLS_BEFORE_TRACING or (self.key, kind) in RECORDINGS):
            self.recordings[kind] = self._recording(kind, model, first)
        recording = self.recordings.get(kind)
        return super().at_steps(model, data) if recording is None else recording.at_steps(model, data)

    def _recording(self, kind: Hashable, model: Sequence[Tensor], data: Sequence[Tensor]) -> "Recording | None":
        """The recording of an earlier trial, or a new one; None if it does not give the same bits as the function."""
        expected = self.function(*model, *data)
        recording = RECORDINGS.get((self.key, kind))
        if recording is not None and same_bits(expected, recording(model, data)):
            return recording
        recording = Recording(self.function, model, data)
        if not same_bits(expected, recording(model, data)):
            return None
        if self.key is not None:
            RECORDINGS[self.key, kind] = recording
            if len(RECORDINGS) > SHARED:
                RECORDINGS.popitem(last=False)
        return recording


class Recording:
    """The kernels of a function for one combination of shapes.

    Args:
        function: see `Traced`.
        model: tensors of the function's model.
        data: of one step.
    """

    def __init__(self, function: Kernels, model: Sequence[Tensor], data: Sequence[Tensor]) -> None:
        self.kernels = record_split(function, model, data)
        self.at_once: dict[Hashable, Kernels | None] = {}

    def __call__(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> list[Tensor]:
        """The results of one step."""
        return self.kernels.of_model(*model, *self.kernels.of_data(*data))

    def at_steps(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> ResultsAt:
        """See `Traced.at_steps`."""
        of_data, of_model = self.kernels.of_data, self.kernels.of_model
        if all(column.stride(0) == 0 for column in data):  # the same minibatches in all steps
            values = of_data(*(column[0] for column in data))
            return lambda k: of_model(*model, *values)
        together = self._together(data)
        if together is None:
            return lambda k: of_model(*model, *of_data(*(column[k] for column in data)))
        steps = list(zip(*(values.unbind() for values in together(*data)), strict=True)) or [()] * len(data[0])
        return lambda k: of_model(*model, *steps[k])

    def _together(self, data: Sequence[Tensor]) -> Kernels | None:
        """The kernels of data for all steps at once; None if they do not pay, or do not give the same bits."""
        kind = kind_of(data)
        if kind not in self.at_once:
            self.at_once[kind] = self._record_together(data)
        return self.at_once[kind]

    def _record_together(self, data: Sequence[Tensor]) -> Kernels | None:
        of_data = self.kernels.of_data
        steps = [of_data(*(column[k] for column in data)) for k in range(len(data[0]))]
        size = sum(value.numel() * value.element_size() for value in steps[0]) * len(steps)
        if len(steps) == 1 or size > AT_ONCE:
            return None
        try:
            together = with_python_names(record(torch.vmap(of_data), data), data)
        except RuntimeError:  # a kernel that cannot be vectorised
            return None
        stacked = [torch.stack(values) for values in zip(*steps, strict=True)]
        return together if same_bits(together(*data), stacked) else None


RECORDINGS: OrderedDict[Hashable, Recording] = OrderedDict()
"""Recordings of this process, by the key of their function and the kind of its arguments."""


def kind_of(tensors: Sequence[Tensor]) -> Hashable:
    """Everything that decides which kernels run."""
    device = tensors[0].device
    return torch.is_autocast_enabled(device.type), device, *((x.dtype, x.shape, x.stride()) for x in tensors)
