"""CUDA graphs: the kernels of a function are captured once and launched together afterwards."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from benchmark.config.errors import SettingError
from benchmark.engines.feed import Feed
from benchmark.engines.flat_task import FlatTask
from benchmark.engines.graphs import Kernels
from benchmark.engines.local_training import LocalTraining
from benchmark.engines.traced import EachStep, ResultsAt, kind_of
from benchmark.engines.vectorised import Vectorised

STEPS_BEFORE_CAPTURE = 3
"""Steps: allocations and the choice of kernels must be over before a capture."""


class Graph(Protocol):
    """A captured function. `replay` reads `inputs` and writes `outputs`, always at the same addresses."""

    inputs: list[Tensor]
    outputs: list[Tensor]

    def replay(self) -> None: ...


class CudaGraph:
    """See `Graph`.

    Args:
        function: launches the same kernels for all values of its inputs, and never waits for the device.
        inputs: an example. It is copied.
    """

    def __init__(self, function: Kernels, inputs: Sequence[Tensor]) -> None:
        self.inputs = [tensor.clone() for tensor in inputs]
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph):
            self.outputs = function(*self.inputs)

    def replay(self) -> None:
        self._graph.replay()


class Graphed(EachStep):
    """A function whose kernels are captured and launched together: one launch a step instead of hundreds.

    Each combination of shapes has a graph of its own. **The results are overwritten by the next step of the same
    shapes**, so they have to be used before.

    Args:
        function: see `CudaGraph`.
        key: not used; graphs belong to one trial.
        capture: how a graph is made.
    """

    def __init__(
        self,
        function: Kernels,
        key: Hashable | None = None,
        capture: Callable[[Kernels, Sequence[Tensor]], Graph] = CudaGraph,
    ) -> None:
        super().__init__(function)
        self.capture = capture
        self.steps: Counter[Hashable] = Counter()
        self.graphs: dict[Hashable, Graph] = {}

    def at_steps(self, model: Sequence[Tensor], data: Sequence[Tensor]) -> ResultsAt:
        first = [column[0] for column in data]
        kind = kind_of([*model, *first])
        if kind not in self.graphs:
            self.steps[kind] += len(data[0])
            if self.steps[kind] <= STEPS_BEFORE_CAPTURE:
                return super().at_steps(model, data)
            self.graphs[kind] = self.capture(self.function, [*model, *first])
        graph = self.graphs[kind]

        def results_at(k: int) -> list[Tensor]:
            for target, source in zip(graph.inputs, (*model, *(column[k] for column in data)), strict=True):
                target.copy_(source)
            graph.replay()
            return graph.outputs

        return results_at


def graphed(model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> Vectorised:
    """The vectorised engine with CUDA graphs.

    Raises:
        SettingError: the model is not on a GPU.
    """
    if model.vector().device.type != "cuda":
        raise SettingError("numerics.engine: 'graphed' needs a GPU, and this trial runs on the CPU; use vectorised")
    return Vectorised(model, feed, local, workers, recorder=Graphed)
