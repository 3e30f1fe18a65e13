"""Recorded kernels give what the function gives, and only those of the model run with the model."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rollcall.benchmark.engines.recording import record, record_split, same_bits

Y, U = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.5, -1.0], [2.0, 0.0]])


class Kernels(TorchDispatchMode):
    """The names of the kernels that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        self.names.append(operator.__name__.partition(".")[0])
        return operator(*arguments, **(options or {}))


def test_kernels_of_data_and_of_the_model_are_apart():
    def function(y, u):
        return [y * (u.exp() + torch.ones_like(y).sum()), u.abs()]

    split = record_split(function, [Y], [U])
    with Kernels() as kernels:
        values = split.of_data(U)
    assert sorted(kernels.names) == ["abs", "add", "exp"]  # what needs neither has run before
    y = 2 * Y
    with Kernels() as kernels:
        results = split.of_model(y, *values)
    assert kernels.names == ["mul"]
    assert same_bits(results, [y * (U.exp() + 4), U.abs()])


def test_what_nobody_reads_and_what_changes_nothing_does_not_run():
    def function(y, u):
        y.sin()
        return [(y.t().t() * 1).cos(), y.cos().mean().expand(2)]

    split = record_split(function, [Y], [U])
    with Kernels() as kernels:
        results = split.of_model(Y, *split.of_data(U))
    assert kernels.names == ["cos", "cos", "mean", "expand"]
    assert same_bits(results, function(Y, U))


def test_a_result_does_not_share_memory_with_an_input():
    split = record_split(lambda y, u: [y * 1, u.t()], [Y], [U])
    y = Y.clone()
    results = split.of_model(y, *split.of_data(U))
    y.zero_()
    assert same_bits(results, [Y, U.t()])


def test_a_function_that_works_in_place_stays_whole():
    def function(y, u):
        total = torch.zeros(2)
        total += u[0]
        total += y[1]
        return [total]

    split = record_split(function, [Y], [U])
    for _ in range(2):
        assert same_bits(split.of_model(Y, *split.of_data(U)), [U[0] + Y[1]])


def test_a_recording_runs_the_kernels_of_the_function():
    module = record(lambda y, u: [torch.log_softmax(y @ u, dim=1), (y > u).sum(dim=0)], [Y, U])
    assert same_bits(module(Y, U), [torch.log_softmax(Y @ U, dim=1), (Y > U).sum(dim=0)])
    assert same_bits(module(U, Y), [torch.log_softmax(U @ Y, dim=1), (U > Y).sum(dim=0)])


def test_same_bits():
    assert same_bits([Y, U], [Y.clone(), U.clone()])
    assert not same_bits([Y], [Y, U])
    assert not same_bits([Y], [U])
