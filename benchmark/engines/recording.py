"""Record-and-replay of functions whose Python code takes longer than their kernels.

Playing a recording back skips the work that Python, `torch.func` and autograd do to find the kernels: a step of the
quickstart's FedPBC takes a third of the time (docs/design/performance.md).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from operator import getitem
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

CALLS_BEFORE_RECORDING = 15
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
        with suppress(Exception):  # the function itself has just worked
            recording = record(self.function, tensors)
            if same_bits(expected, recording(*tensors)):
                RECORDINGS[self.key, kind] = recording
                return recording
        return self.function


def kind_of(tensors: Sequence[Tensor]) -> Hashable:
    """Everything that decides which kernels run."""
    device = tensors[0].device
    return torch.is_autocast_enabled(device.type), device, *((x.dtype, x.shape, x.stride()) for x in tensors)


def record(function: Kernels, tensors: Sequence[Tensor]) -> Kernels:
    """The kernels that a function runs on these tensors, in order, without those whose results are not used.

    Views and products without effect are left out, too: they take as long as small kernels.
    """
    inputs = [tensor.detach() for tensor in tensors]  # objects of their own, also where two are one
    recorder = Recorder(function, inputs)
    if recorder.constants:
        others = [one + 1 if one.is_floating_point() else one for one in inputs]
        if not same_bits([*recorder.constants.values()], [*Recorder(function, others).constants.values()]):
            raise ValueError("what seems a constant depends on the tensors")
    graph = recorder.graph
    for node in graph.nodes:
        source = node
        while is_view(source):
            source = cast("Node", source.args[0])
            if source.meta == node.meta:
                node.replace_all_uses_with(source)
    graph.eliminate_dead_code()
    # `forward` rather than the module: nn.Module.__call__ takes longer than small kernels.
    return cast("Kernels", GraphModule(recorder.constants, graph).forward)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Calls a function, and writes the kernels that it runs on these tensors into `graph`.

    `torch.fx`'s own `make_fx` also makes a fake tensor for each kernel, and takes ten times as long.
    """

    def __init__(self, function: Kernels, tensors: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = Graph()
        self.constants: dict[str, Tensor] = {}
        self.nodes = WeakTensorKeyDictionary()  # of inputs and results, as long as they live
        for number, tensor in enumerate(tensors):
            self._know(tensor, self.graph.placeholder(f"x{number}"))
        with self:
            results = function(*tensors)
        self.graph.output([self.node(result) for result in results])

    def __torch_dispatch__(
        self, kernel: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if {torch.Tag.data_dependent_output, torch.Tag.inplace_view} & {*kernel.tags}:
            raise ValueError(f"{kernel}: what follows may depend on its number, or it changes the shape of a tensor")
        if kernel is torch.ops.aten.lift_fresh.default:  # what changes the result in place must not change the constant
            kernel = torch.ops.aten.lift_fresh_copy.default
        inputs = tree_map_only(Tensor, self.node, (args, kwargs or {}))
        results = kernel(*args, **(kwargs or {}))
        self._know(results, self.graph.call_function(kernel, *inputs))
        return results

    def node(self, tensor: Tensor) -> Node:
        """The node of a tensor. One that is neither an input nor a result is a constant."""
        if tensor not in self.nodes:
            name = f"constant{len(self.constants)}"
            self.constants[name] = tensor
            self._know(tensor, self.graph.get_attr(name))
        return cast("Node", self.nodes[tensor])

    def _know(self, value: Any, node: Node) -> None:
        """The node has this value: a tensor, or some of them."""
        if isinstance(value, Tensor):
            node.meta = {"dtype": value.dtype, "shape": value.shape, "strides": value.stride()}
            self.nodes[value] = node
        elif isinstance(value, tuple | list):
            for number, part in enumerate(value):
                self._know(part, self.graph.call_function(getitem, (node, number)))


OF_OTHER_NUMBERS = frozenset(
    {torch.ops.aten.as_strided.default, torch.ops.aten._conj.default, torch.ops.aten._neg_view.default}
)
"""Views that may begin elsewhere in memory, or have other numbers, with the layout of their source."""


def is_view(node: Node) -> bool:
    """Whether a node has the numbers of its first argument: a view of it, or a product with 1 that is no result."""
    if node.target is torch.ops.aten.mul.Scalar:
        return bool(node.args[1] == 1) and all(user.op != "output" for user in node.users)
    schema = getattr(node.target, "_schema", None)
    is_alias = schema and schema.returns and schema.returns[0].alias_info and not schema.is_mutable
    return bool(is_alias) and node.target not in OF_OTHER_NUMBERS


def same_bits(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether two lists of tensors are equal in every bit."""
    return len(one) == len(other) and all(map(torch.equal, one, other))
