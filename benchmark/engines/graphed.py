"""CUDA graphs: the kernels of a function are captured once and launched together afterwards."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from benchmark.engines.traced import kind_of_call

CALLS_BEFORE_CAPTURE = 3
"""Calls: allocations and the choice of kernels must be over before a capture."""


class Graph(Protocol):
    """A captured function. `replay` reads `inputs` and writes `outputs`, always at the same addresses."""

    inputs: Sequence[Tensor]
    outputs: Any

    def replay(self) -> None: ...


class CudaGraph:
    """See `Graph`.

    Args:
        function: launches the same kernels for all values of its inputs, and never waits for the device.
        inputs: an example. It is copied.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
        self.inputs = [tensor.clone(memory_format=torch.preserve_format) for tensor in inputs]
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph):
            self.outputs = function(*self.inputs)

    def replay(self) -> None:
        self._graph.replay()


class Graphed:
    """A function whose kernels are captured and launched together: one launch instead of hundreds.

    Each combination of shapes has a graph of its own. **The results are overwritten by the next call of the same
    shapes**, so they have to be used before.

    Args:
        function: see `CudaGraph`.
        capture: how a graph is made.
    """

    def __init__(
        self, function: Callable[..., Any], capture: Callable[[Callable[..., Any], Sequence[Tensor]], Graph] = CudaGraph
    ) -> None:
        self.function = function
        self.capture = capture
        self.calls: Counter[Hashable] = Counter()
        self.graphs: dict[Hashable, Graph] = {}

    def __call__(self, *tensors: Tensor) -> Any:
        kind = kind_of_call(tensors)
        if kind not in self.graphs:
            self.calls[kind] += 1
            if self.calls[kind] <= CALLS_BEFORE_CAPTURE:
                return self.function(*tensors)
            self.graphs[kind] = self.capture(self.function, tensors)
        graph = self.graphs[kind]
        for target, source in zip(graph.inputs, tensors, strict=True):
            target.copy_(source)
        graph.replay()
        return graph.outputs
