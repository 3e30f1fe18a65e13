"""Tracing of functions whose Python code takes longer than their kernels."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

CALLS_BEFORE_TRACING = 30
"""Calls: tracing costs about as much as this many calls lose without it."""


class Traced:
    """A function that is traced and then replayed: the same kernels in the same order, hence the same bits.

    A replay skips the work that Python, `torch.func` and autograd do to find the kernels. Each combination of shapes
    has a trace of its own.

    Args:
        function: of tensors, and of nothing else that changes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls: Counter[Hashable] = Counter()
        self.traces: dict[Hashable, Callable[..., Any]] = {}

    def __call__(self, *tensors: Tensor) -> Any:
        kind = kind_of_call(tensors)
        if kind in self.traces:
            return self.traces[kind](*tensors)
        self.calls[kind] += 1
        if self.calls[kind] == CALLS_BEFORE_TRACING:
            # `forward` rather than the module: nn.Module.__call__ takes longer than small kernels.
            self.traces[kind] = make_fx(lambda *inputs: self.function(*inputs))(*tensors).forward
        return self.function(*tensors)


def kind_of_call(tensors: Sequence[Tensor]) -> Hashable:
    """Everything that decides which kernels run."""
    return torch.is_autocast_enabled(tensors[0].device.type), *((x.dtype, x.shape, x.stride()) for x in tensors)
