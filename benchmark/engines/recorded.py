"""Functions whose Python takes longer than their kernels, by the kernels alone."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

WORTH_RECORDING = 30
"""Calls: a recording costs about what so many calls lose without it."""


class Recorded:
    """A function that is played back: the same kernels in the same order, hence the same bits, without what Python,
    `torch.func` and autograd do to find them.

    Args:
        function: of tensors, in dictionaries, tuples or by themselves; of nothing else that changes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.met: Counter[Hashable] = Counter()
        self.recordings: dict[Hashable, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        kind = _kind(arguments)
        if kind in self.recordings:
            return self.recordings[kind](*arguments)
        self.met[kind] += 1
        if self.met[kind] == WORTH_RECORDING:
            self.recordings[kind] = make_fx(lambda *given: self.function(*given))(*arguments)
        return self.function(*arguments)


def _kind(arguments: Any) -> Hashable:
    """All that decides on the kernels."""
    leaves = tree_leaves(arguments)
    device = leaves[0].device.type
    return torch.is_autocast_enabled(device), *((leaf.dtype, leaf.shape, leaf.stride()) for leaf in leaves)
