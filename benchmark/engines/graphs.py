"""Recorded kernels as a graph, without what need not run in every step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

CLONE, FULL = torch.ops.aten.clone.default, torch.ops.aten.full.default
FILLED = {"ones_like": 1, "zeros_like": 0, "new_ones": 1, "new_zeros": 0}
"""Kernels that read only the shape of their input, and the number that they fill it with."""

PYTHON_NAMES = {"_unsafe_view": "view"}
"""The Python functions of kernels, where the name differs."""

Kernels = Callable[..., list[Tensor]]
"""Recorded kernels: from tensors to a list of tensors."""


@dataclass(frozen=True)
class SplitKernels:
    """The kernels of a function of a model and of data, without those whose results are not used.

    Attributes:
        of_data: from the data to what the model's kernels read of it.
        of_model: from the tensors of the model, and what `of_data` gives, to the results.
    """

    of_data: Kernels
    of_model: Kernels


def record(function: Kernels, tensors: Sequence[Tensor]) -> GraphModule:
    """The kernels that a function runs on these tensors, in order."""
    module = make_fx(lambda *inputs: function(*inputs))(*tensors)
    if not any(_changes_its_input(node) for node in module.graph.nodes):
        _simplify(module.graph)
        module.recompile()
    return module


def record_split(function: Kernels, model: Sequence[Tensor], data: Sequence[Tensor]) -> SplitKernels:
    """Record a function of a model and of data, and split its kernels.

    Kernels that need neither run once, here. A graph with a kernel that changes a tensor in place stays whole.
    """
    module = record(function, [*model, *data])
    nodes = list(module.graph.nodes)
    if any(_changes_its_input(node) for node in nodes):
        return SplitKernels(lambda *tensors: list(tensors), executable(module))
    inputs = [node for node in nodes if node.op == "placeholder"]
    of_data = _that_need(inputs[len(model) :], nodes) - _that_need(inputs[: len(model)], nodes)
    of_model = _that_need(inputs[: len(model)], nodes)
    constant = [node for node in nodes if node.op not in ("placeholder", "output") and node not in of_model | of_data]
    values = dict(zip(constant, executable(_part(module, constant, [], constant))(), strict=True))
    results = cast("Sequence[Node]", nodes[-1].args[0])
    read = {source for node in of_model for source in node.all_input_nodes} | set(results)
    crossing = [node for node in nodes if node in read and (node in of_data or node in inputs[len(model) :])]

    def part(chosen: set[Node], sources: Sequence[Node], outputs: Sequence[Node], tensors: Sequence[Tensor]) -> Kernels:
        kernels = [node for node in nodes if node in chosen and node.op != "output"]
        read = {source for node in kernels for source in node.all_input_nodes} | set(outputs)
        constants = [node for node in constant if node in read]
        held = [values[node] for node in constants]
        run = with_python_names(_part(module, kernels, [*sources, *constants], outputs), [*tensors, *held])
        return (lambda *tensors: run(*tensors, *held)) if held else run

    data_kernels = part(of_data, inputs[len(model) :], crossing, data)
    return SplitKernels(
        data_kernels, part(of_model, [*inputs[: len(model)], *crossing], results, [*model, *data_kernels(*data)])
    )


def executable(module: GraphModule) -> Kernels:
    """The function that runs a graph."""
    # `forward` rather than the module: nn.Module.__call__ takes longer than small kernels.
    return cast("Kernels", module.forward)


def with_python_names(module: GraphModule, tensors: Sequence[Tensor]) -> Kernels:
    """The function that runs a graph, by torch's Python functions where these give the same bits.

    Calling a kernel by its Python function takes half as long as by its operator.
    """
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in graph.nodes:
        name = _name(node)
        name = PYTHON_NAMES.get(name, name)
        if node.op == "call_function" and hasattr(torch, name):
            node.target = getattr(torch, name)
        elif node.op == "call_function" and hasattr(Tensor, name):
            node.op, node.target = "call_method", name
    named = executable(GraphModule(module, graph))
    try:
        values = named(*tensors)
    except (TypeError, RuntimeError):  # a kernel whose Python function takes other arguments
        return executable(module)
    return named if same_bits(values, executable(module)(*tensors)) else executable(module)


def same_bits(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether two lists of tensors are equal in every bit."""
    return all(map(torch.equal, one, other)) if len(one) == len(other) else False


def _name(node: Node) -> str:
    """The name of a node's kernel; empty if it is none."""
    return getattr(getattr(node.target, "overloadpacket", None), "__name__", "")


def _changes_its_input(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _simplify(graph: Graph) -> None:
    """Remove kernels without effect: multiplications by 1, views that undo each other, results that nobody reads.

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
