"""Recording of functions whose Python code takes longer than their kernels.

A recorded function is split: what depends on data alone is computed for all steps at once, what depends on neither data
nor model once in all, and only the rest in each step (docs/design/performance.md has the times).
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

CALLS_BEFORE_TRACING = 30
"""Steps: recording costs about as much as this many steps lose without it."""

AT_ONCE = 2**22
"""Bytes. Results that need only data are computed for all steps at once up to this size, which fits in the caches."""

SHARED = 256
"""Recordings that a process keeps for later trials."""

CLONE, FULL = torch.ops.aten.clone.default, torch.ops.aten.full.default
FILLED = {"ones_like": 1, "zeros_like": 0, "new_ones": 1, "new_zeros": 0}
"""Kernels that read only the shape of their input, and the number that they fill it with."""

Kernels = Callable[..., list[Tensor]]
"""Recorded kernels: from tensors to a list of tensors."""

ResultsAt = Callable[[int], list[Tensor]]
"""The results of a function at a model, which may be changed in place between calls, on the data of step k."""


class Traced:
    """A function that is recorded and then played back: the same kernels in the same order, hence the same bits.

    Playing back skips the work that Python, `torch.func` and autograd do to find the kernels. Each combination of
    shapes has a recording of its own. Trials of a process share recordings. A trial uses one only after it gave the
    same bits as the function itself.

    Args:
        function: of the tensors of a model and those of a minibatch, and of nothing else that changes.
        key: equal keys promise equal functions.
    """

    def __init__(self, function: Kernels, key: Hashable) -> None:
        self.function = function
        self.key = key
        self.steps: Counter[Hashable] = Counter()
        self.recordings: dict[Hashable, Recording | None] = {}

    def at_steps(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> ResultsAt:
        """The function at a model, on the data [K, ...] of K steps."""
        first = [column[0] for column in data]
        kind = kind_of([*model, *first])
        self.steps[kind] += len(data[0])
        if kind not in self.recordings and (self.steps[kind] >= CALLS_BEFORE_TRACING or (self.key, kind) in RECORDINGS):
            self.recordings[kind] = self._recording(kind, model, first)
        recording = self.recordings.get(kind)
        if recording is None:
            return lambda k: self.function(*model, *(column[k] for column in data))
        return recording.at_steps(model, data)

    def _recording(self, kind: Hashable, model: Sequence[Tensor], data: Sequence[Tensor]) -> "Recording | None":
        """The recording of an earlier trial, or a new one; None if it does not give the same bits as the function."""
        expected = self.function(*model, *data)
        recording = RECORDINGS.get((self.key, kind))
        if recording is not None and same_bits(expected, recording(model, data)):
            return recording
        recording = Recording(self.function, model, data)
        if not same_bits(expected, recording(model, data)):
            return None
        RECORDINGS[self.key, kind] = recording
        if len(RECORDINGS) > SHARED:
            RECORDINGS.popitem(last=False)
        return recording


class Recording:
    """The kernels of a function for one combination of shapes, without those whose results are not used.

    Args:
        function: see `Traced`.
        model: tensors of the function's model.
        data: of one step.

    Attributes:
        of_data: from the data to the tensors that the model's kernels read.
        of_model: from the tensors of the model, and the results of `of_data`, to the results.
    """

    def __init__(self, function: Kernels, model: Sequence[Tensor], data: Sequence[Tensor]) -> None:
        self.of_data, self.of_model = split(record(function, [*model, *data]), model)
        self.at_once: dict[Hashable, Kernels | None] = {}

    def __call__(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> list[Tensor]:
        """The results of one step."""
        return self.of_model(*model, *self.of_data(*data))

    def at_steps(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> ResultsAt:
        """See `Traced.at_steps`."""
        of_data, of_model = self.of_data, self.of_model
        if all(column.stride(0) == 0 for column in data):  # the same minibatches in all steps
            values = of_data(*(column[0] for column in data))
            return lambda k: of_model(*model, *values)
        kind = kind_of(data)
        if kind not in self.at_once:
            self.at_once[kind] = self._together(data)
        together = self.at_once[kind]
        if together is None:
            return lambda k: of_model(*model, *of_data(*(column[k] for column in data)))
        steps = list(zip(*(values.unbind() for values in together(*data)), strict=True)) or [()] * len(data[0])
        return lambda k: of_model(*model, *steps[k])

    def _together(self, data: Sequence[Tensor]) -> Kernels | None:
        """The kernels of data for all steps at once; None if they do not pay, or do not give the same bits."""
        steps = [self.of_data(*(column[k] for column in data)) for k in range(len(data[0]))]
        size = sum(value.numel() * value.element_size() for value in steps[0]) * len(steps)
        if len(steps) == 1 or size > AT_ONCE:
            return None
        try:
            together = executable(record(torch.vmap(self.of_data), data))
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


def record(function: Kernels, tensors: Sequence[Tensor]) -> GraphModule:
    """The kernels that a function runs on these tensors, in order."""
    module = make_fx(lambda *inputs: function(*inputs))(*tensors)
    if not any(_changes_its_input(node) for node in module.graph.nodes):
        _simplify(module.graph)
        module.recompile()
    return module


def split(module: GraphModule, model: Sequence[Tensor]) -> tuple[Kernels, Kernels]:
    """The kernels of a graph that need only data, and those that need the model: see `Recording`.

    Kernels that need neither run once, here. A graph with a kernel that changes a tensor in place stays whole.
    """
    nodes = list(module.graph.nodes)
    if any(_changes_its_input(node) for node in nodes):
        return (lambda *tensors: list(tensors)), executable(module)
    inputs = [node for node in nodes if node.op == "placeholder"]
    of_data = _that_need(inputs[len(model) :], nodes) - _that_need(inputs[: len(model)], nodes)
    of_model = _that_need(inputs[: len(model)], nodes)
    constant = [node for node in nodes if node.op not in ("placeholder", "output") and node not in of_model | of_data]
    values = dict(zip(constant, executable(_part(module, constant, [], constant))(), strict=True))
    results = cast("Sequence[Node]", nodes[-1].args[0])
    read = {source for node in of_model for source in node.all_input_nodes} | set(results)
    crossing = [node for node in nodes if node in read and (node in of_data or node in inputs[len(model) :])]

    def part(chosen: set[Node], sources: Sequence[Node], outputs: Sequence[Node]) -> Kernels:
        kernels = [node for node in nodes if node in chosen and node.op != "output"]
        read = {source for node in kernels for source in node.all_input_nodes} | set(outputs)
        constants = [node for node in constant if node in read]
        held = [values[node] for node in constants]
        run = executable(_part(module, kernels, [*sources, *constants], outputs))
        return (lambda *tensors: run(*tensors, *held)) if held else run

    return part(of_data, inputs[len(model) :], crossing), part(of_model, [*inputs[: len(model)], *crossing], results)


def executable(module: GraphModule) -> Kernels:
    """The function that runs a graph."""
    # `forward` rather than the module: nn.Module.__call__ takes longer than small kernels.
    return cast("Kernels", module.forward)


def same_bits(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether two lists of tensors are equal in every bit."""
    return all(map(torch.equal, one, other)) if len(one) == len(other) else False


def _name(node: Node) -> str:
    """The name of a node's kernel; empty for other nodes."""
    return getattr(getattr(node.target, "overloadpacket", None), "__name__", "")


def _changes_its_input(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _simplify(graph: Graph) -> None:
    """Remove kernels without effect: multiplications by 1, views that undo each other, unused results.

    Tensors filled with a number become constants, so that what they take their shape from need not run.

    No result shares memory with an input afterwards, because the caller may change inputs in place.
    """
    for node in list(graph.nodes):
        if _name(node) in FILLED and node.meta["val"].is_contiguous():
            value = node.meta["val"]
            with graph.inserting_before(node):
                options = {"dtype": value.dtype, "device": value.device}
                full = graph.call_function(FULL, (list(value.shape), FILLED[_name(node)]), options)
            full.meta = node.meta
            node.replace_all_uses_with(full)
        if _name(node) == "mul" and node.args[1] == 1 and _like(node, node.args[0]):
            node.replace_all_uses_with(node.args[0])
        source = node
        while _is_view(source):
            source = cast("Node", source.args[0])
            if _like(node, source):
                node.replace_all_uses_with(source)
    output = next(reversed(graph.nodes))
    results = cast("Sequence[Node]", output.args[0])
    with graph.inserting_before(output):
        own = [graph.call_function(CLONE, (node,)) if _is_input(node) else node for node in results]
    output.args = (own,)
    graph.eliminate_dead_code()


def _is_input(node: Node) -> bool:
    """Whether a tensor shares memory with an input of its graph."""
    while _is_view(node):
        node = cast("Node", node.args[0])
    return node.op == "placeholder"


def _is_view(node: Node) -> bool:
    if node.target is torch.ops.aten._unsafe_view.default:
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and len(schema.returns) == 1 and schema.returns[0].alias_info is not None


def _like(one: Node, other: Node) -> bool:
    """Whether the tensors of two nodes, one a view of the other, have the same type, shape and strides."""
    a, b = one.meta.get("val"), other.meta.get("val")
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    return (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())


def _that_need(inputs: Sequence[Node], kernels: Sequence[Node]) -> set[Node]:
    """The kernels, in order of execution, that need one of the inputs."""
    needing = set(inputs)
    for node in kernels:
        if not needing.isdisjoint(node.all_input_nodes):
            needing.add(node)
    return needing - set(inputs)


def _part(module: GraphModule, kernels: Sequence[Node], inputs: Sequence[Node], results: Sequence[Node]) -> GraphModule:
    """These kernels as a function of their inputs."""
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in kernels:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in results])
    return GraphModule(module, graph)
