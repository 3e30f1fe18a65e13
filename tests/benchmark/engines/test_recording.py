"""A recorded function gives the same bits as the function itself; only kernels of the model run with the model;
trials share recordings of equal functions only."""

import pytest
import torch
from engine_rigs import WRAPS, rigs
from torch.utils._python_dispatch import TorchDispatchMode

from rollcall.benchmark.engines import recording
from rollcall.benchmark.engines.loss import kernels_key
from rollcall.benchmark.engines.recording import Recording, same_bits
from rollcall.tasks import digits


@pytest.fixture(autouse=True)
def nothing_shared(monkeypatch):
    monkeypatch.setattr(recording, "RECORDINGS", type(recording.RECORDINGS)())


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("batch_size", [16, "full"])
def test_a_recording_gives_the_same_bits(wrap, batch_size, monkeypatch):
    clients, results = torch.tensor([5, 4, 3]), []
    for worth in (2, 10**9):
        monkeypatch.setattr(recording, "CALLS_BEFORE_TRACING", worth)
        recording.RECORDINGS.clear()
        _, work, x = rigs(batch_size, wrap=WRAPS[wrap])
        ends = [work.sgd(clients, x.expand(3, -1)) for _ in range(3)]
        ends += [part for _ in range(3) for part in work.gradients(clients, x.expand(3, -1), 1)]
        results.append([*ends, *work.buffers(clients)])
        assert (sum(len(function.recordings) for function in work.engine.gradients.values()) > 0) == (worth == 2)
    assert all(map(torch.equal, *results))


def cubes(calls):
    """The gradient of sum (a y)^3 in y, and a list that notes each call."""

    def slope(y, a):
        calls.append(len(y))
        return [torch.func.grad(lambda y: ((a * y) ** 3).sum())(y)]

    return slope


def test_a_recording_is_played_back(monkeypatch):
    monkeypatch.setattr(recording, "CALLS_BEFORE_TRACING", 4)
    calls = []
    function = recording.Traced(cubes(calls), "cubes")
    for n, expected_calls in ((2, 2), (3, 2), (2, 2), (2, 0), (3, 2), (2, 0)):
        before = len(calls)
        y, a = torch.arange(n, dtype=torch.float64), torch.tensor([[1.0], [2.0]], dtype=torch.float64)
        at = function.at_steps([y], [a])
        for k in (0, 1):
            y += 1  # the model changes between steps, in place
            slope = 3 * a[k, 0] ** 3 * y**2
            assert torch.allclose(at(k)[0], slope, rtol=1e-14)
        assert len(calls) - before == expected_calls


def test_what_needs_only_data_is_computed_for_all_steps_at_once(monkeypatch):
    monkeypatch.setattr(recording, "CALLS_BEFORE_TRACING", 1)
    function = recording.Traced(lambda y, u: [y * u.exp().sum(dim=0)], "exp")
    y, u = torch.ones(3), torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(0))
    expected = [y * u[k].exp().sum(dim=0) for k in range(4)]
    at = function.at_steps([y], [u])
    assert all(torch.equal(at(k)[0], expected[k]) for k in range(4))
    u.zero_()  # too late to matter
    assert all(torch.equal(at(k)[0], expected[k]) for k in range(4))


def test_trials_share_recordings_of_equal_functions_only(monkeypatch):
    monkeypatch.setattr(recording, "CALLS_BEFORE_TRACING", 1)

    def scaled_by(factor):
        def function(y, u):
            calls.append(factor)
            return [factor * y * u]

        return function

    y, u = torch.ones(3), torch.rand(1, 3)
    # Each trial compares its first results with one call of the function; a recording is another call.
    for factor, key, calls_expected, kept in (
        (2, "a", 2, 1),
        (2, "a", 1, 1),
        (3, "a", 2, 1),
        (3, "b", 2, 2),
    ):
        calls = []
        function = recording.Traced(scaled_by(factor), key)
        for _ in range(3):
            assert torch.equal(function.at_steps([y], [u])(0)[0], factor * u[0])
        assert (len(calls), len(recording.RECORDINGS)) == (calls_expected, kept)


def test_a_function_that_changes_is_not_recorded(monkeypatch):
    monkeypatch.setattr(recording, "CALLS_BEFORE_TRACING", 1)
    calls = []

    def function(y, u):
        calls.append(1)
        return [len(calls) * y * u]

    counted = recording.Traced(function, "c")
    y, u = torch.ones(3), torch.rand(1, 3)
    counted.at_steps([y], [u])
    assert recording.RECORDINGS == {}
    before = len(calls)
    assert torch.equal(counted.at_steps([y], [u])(0)[0], (before + 1) * u[0])


def test_tasks_with_equal_losses_have_equal_keys():
    plain, other_seed, ridge = (
        digits(seed, clients=3, ridge=weight)[0] for seed, weight in ((0, 0.0), (1, 0.0), (0, 0.1))
    )
    double = digits(0, clients=3)[0].double()
    assert kernels_key(plain) == kernels_key(other_seed)
    assert len({kernels_key(plain), kernels_key(ridge), kernels_key(double)}) == 3


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

    split = Recording(function, [Y], [U])
    with Kernels() as kernels:
        values = split.of_data(U)
    assert sorted(kernels.names) == ["abs", "add", "exp"]  # what needs neither has run before
    y = 2 * Y
    with Kernels() as kernels:
        results = split.of_model(y, *values)
    assert kernels.names == ["mul"]
    assert same_bits(results, [y * (U.exp() + 4), U.abs()])


def test_a_result_does_not_share_memory_with_an_input():
    split = Recording(lambda y, u: [y * 1, u.t()], [Y], [U])
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

    split = Recording(function, [Y], [U])
    for _ in range(2):
        assert same_bits(split.of_model(Y, *split.of_data(U)), [U[0] + Y[1]])
