"""Captured kernels: inputs are copied to fixed addresses, and results are read from fixed addresses.

A graph of a CPU stands for CUDA's: it runs the function again on the same input tensors, into the same output tensors.
`tools/gpu.sh equal` tests the real one on a GPU.
"""

import torch

from benchmark.engines.graphed import CALLS_BEFORE_CAPTURE, Graphed


class Rerun:
    def __init__(self, function, inputs):
        self.function = function
        self.inputs = [tensor.clone() for tensor in inputs]
        self.outputs = function(*self.inputs)

    def replay(self):
        for output, value in zip(self.outputs, self.function(*self.inputs), strict=True):
            output.copy_(value)


def test_each_shape_has_its_graph_and_every_call_its_values():
    captured = []

    def capture(function, inputs):
        captured.append(inputs[0].shape)
        return Rerun(function, inputs)

    graphed = Graphed(lambda x, y: [x * y, x.sum()], capture)
    for call in range(3 * CALLS_BEFORE_CAPTURE):
        for n in (2, 3):
            x, y = torch.arange(n) + call, torch.full((n,), call)
            product, total = graphed(x, y)
            assert product.tolist() == [(i + call) * call for i in range(n)]
            assert total == sum(i + call for i in range(n))
    assert captured == [(2,), (3,)]


def test_results_are_overwritten_by_the_next_call_of_the_same_shapes():
    graphed = Graphed(lambda x: [x + 1], Rerun)
    for call in range(CALLS_BEFORE_CAPTURE):
        graphed(torch.tensor([float(call)]))
    (first,) = graphed(torch.tensor([5.0]))
    (second,) = graphed(torch.tensor([7.0]))
    assert first is second
    assert second.tolist() == [8.0]
