"""Captured kernels: inputs are copied to fixed addresses, and results are read from fixed addresses.

A graph of a CPU stands for CUDA's: it runs the function again on the same input tensors, into the same output tensors.
`tools/engines_equal.py --device cuda` tests the real one on a GPU.
"""

from functools import partial

import torch
from engine_rigs import WRAPS, rigs

from benchmark.engines.graphed import STEPS_BEFORE_CAPTURE, Graphed


class Rerun:
    def __init__(self, function, inputs):
        self.function = function
        self.inputs = [tensor.clone() for tensor in inputs]
        self.outputs = function(*self.inputs)

    def replay(self):
        for output, value in zip(self.outputs, self.function(*self.inputs), strict=True):
            output.copy_(value)


def test_each_shape_has_its_graph_and_every_step_its_values():
    captured = []

    def capture(function, inputs):
        captured.append(inputs[0].shape)
        return Rerun(function, inputs)

    graphed = Graphed(lambda x, y: [x * y, x.sum()], capture=capture)
    for call in range(3 * STEPS_BEFORE_CAPTURE):
        for n in (2, 3):
            x, y = torch.arange(n) + call, torch.arange(2 * n).view(2, n)
            results_at = graphed.at_steps([x], [y])
            for k in range(2):
                product, total = results_at(k)
                assert product.tolist() == [(i + call) * (n * k + i) for i in range(n)]
                assert total == sum(i + call for i in range(n))
                x += 1  # a model that changes between steps
                x -= 1
    assert captured == [(2,), (3,)]


def test_results_are_overwritten_by_the_next_step_of_the_same_shapes():
    graphed = Graphed(lambda x, y: [x + y], capture=Rerun)
    x, y = torch.tensor([1.0]), torch.arange(2.0 + STEPS_BEFORE_CAPTURE)[:, None]
    results_at = graphed.at_steps([x], [y])
    (first,) = results_at(2)
    (second,) = results_at(0)
    assert first is second
    assert second.tolist() == [1.0]


def test_local_work_with_graphs(monkeypatch):
    clients = torch.tensor([5, 4, 3])
    for wrap in WRAPS.values():
        sequential, work, x = rigs(wrap=wrap, recorder=partial(Graphed, capture=Rerun))
        for _ in range(2):
            ends = work.sgd(clients, x.expand(3, -1))
        expected = sequential.sgd(clients, x.expand(3, -1))
        torch.testing.assert_close(ends, expected, rtol=1e-10, atol=1e-10)
