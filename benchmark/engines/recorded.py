"""Functions whose Python takes longer than their kernels, by the kernels alone."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

WORTH_RECORDING = 30
"""Calls: a recording costs about what so many calls lose without it."""


class Recorded:
    """A function that is played back: the same kernels in the same order, hence the same bits, without what Python,
    `torch.func` and autograd do to find them.

    Args:
        function: of tensors, and of nothing else that changes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.met: Counter[Hashable] = Counter()
        self.recordings: dict[Hashable, Callable[..., Any]] = {}

    def __call__(self, *tensors: Tensor) -> Any:
        kind = _kind(tensors)
        if kind in self.recordings:
            return self.recordings[kind](*tensors)
        self.met[kind] += 1
        if self.met[kind] == WORTH_RECORDING:
            # Past nn.Module's own call, which takes longer than small kernels.
            self.recordings[kind] = make_fx(lambda *given: self.function(*given))(*tensors).forward
        return self.function(*tensors)


def _kind(tensors: Sequence[Tensor]) -> Hashable:
    """All that decides on the kernels."""
    return torch.is_autocast_enabled(tensors[0].device.type), *((x.dtype, x.shape, x.stride()) for x in tensors)
