"""Record-and-replay of functions whose Python code takes longer than their kernels.

Playing a recording back skips the work that Python, `torch.func` and autograd do to find the kernels: a step of the
quickstart's FedPBC takes a third of the time (docs/design/performance.md).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

CALLS_BEFORE_RECORDING = 30
"""Calls: recording costs about as much as this many calls lose without it."""

Kernels = Callable[..., list[Tensor]]
"""From tensors to a list of tensors."""

RECORDINGS: dict[Hashable, Kernels] = {}
"""Recordings of this process, which later trials share, by the key of their function and the kind of its arguments."""


class Recorded:
    """A function that is recorded and then played back: the same kernels in the same order, hence the same bits.

    Each combination of shapes has a recording of its own. Trials of a process share recordings. A recording is used
    only after it gave the same bits as the function itself; a function that cannot be recorded is called as it is.

    Args:
        function: of tensors, and of nothing else that changes.
        key: equal keys promise equal functions.
    """

    def __init__(self, function: Kernels, key: Hashable) -> None:
        self.function = function
        self.key = key
        self.calls: Counter[Hashable] = Counter()
        self.chosen: dict[Hashable, Kernels] = {}

    def kernels(self, tensors: Sequence[Tensor], calls: int = 1) -> Kernels:
        """The function, or its recording, for so many calls with tensors of the shapes of these."""
        kind = kind_of(tensors)
        if kind not in self.chosen:
            self.calls[kind] += calls
            if self.calls[kind] < CALLS_BEFORE_RECORDING and (self.key, kind) not in RECORDINGS:
                return self.function
            self.chosen[kind] = self._recording(kind, tensors)
        return self.chosen[kind]

    def _recording(self, kind: Hashable, tensors: Sequence[Tensor]) -> Kernels:
        """The recording of an earlier trial, or a new one; the function itself if neither gives the same bits."""
        expected = self.function(*tensors)
        shared = RECORDINGS.get((self.key, kind))
        if shared is not None and same_bits(expected, shared(*tensors)):
            return shared
        try:
            recording = record(self.function, tensors)
        except Exception:  # the function itself has just worked
            return self.function
        if not same_bits(expected, recording(*tensors)):
            return self.function
        RECORDINGS[self.key, kind] = recording
        return recording


def kind_of(tensors: Sequence[Tensor]) -> Hashable:
    """Everything that decides which kernels run."""
    device = tensors[0].device
    return torch.is_autocast_enabled(device.type), device, *((x.dtype, x.shape, x.stride()) for x in tensors)


def record(function: Kernels, tensors: Sequence[Tensor]) -> Kernels:
    """The kernels that a function runs on these tensors, in order, without those whose results are not used.

    Views and products without effect are left out, too: they take as long as small kernels.
    """
    module = make_fx(lambda *inputs: function(*inputs))(*tensors)
    for node in module.graph.nodes:
        source = node
        while is_view(source):
            source = cast("Node", source.args[0])
            if layout(source) == layout(node):
                node.replace_all_uses_with(source)
    module.graph.eliminate_dead_code()
    module.recompile()
    # `forward` rather than the module: nn.Module.__call__ takes longer than small kernels.
    return cast("Kernels", module.forward)


def is_view(node: Node) -> bool:
    """Whether a node has the numbers of its first argument: a view of it, or a product with 1 that is no result."""
    if node.target is torch.ops.aten.mul.Scalar:
        return bool(node.args[1] == 1) and all(user.op != "output" for user in node.users)
    schema = getattr(node.target, "_schema", None)
    return bool(schema and schema.returns[0].alias_info and not schema.is_mutable)


def layout(node: Node) -> Hashable:
    """The type, shape and strides of the result of a node."""
    value = node.meta["val"]
    return value.dtype, value.shape, value.stride(), value.storage_offset()


def same_bits(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether two lists of tensors are equal in every bit."""
    return len(one) == len(other) and all(map(torch.equal, one, other))
