"""A recorded function gives the same bits as the function itself, and trials share only what is equal."""

import pytest
import torch
from engine_rigs import WRAPS, rigs

from rollcall.benchmark.engines import recording
from rollcall.benchmark.engines.loss import kernels_key
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
    function = recording.Traced(cubes(calls))
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
    function = recording.Traced(lambda y, u: [y * u.exp().sum(dim=0)])
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
        (3, None, 2, 2),
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
