"""A recorded function gives the same bits as the function itself; trials share recordings of equal functions only."""

from weakref import ref

import pytest
import torch
from engine_rigs import WRAPS, rigs

from rollcall.benchmark.engines import FlatTask, recording
from rollcall.benchmark.engines.loss import kernels_key
from rollcall.tasks import digits


@pytest.fixture(autouse=True)
def nothing_shared(monkeypatch):
    monkeypatch.setattr(recording, "RECORDINGS", type(recording.RECORDINGS)())
    monkeypatch.setattr(recording, "CALLS_BEFORE_RECORDING", 1)


@pytest.mark.parametrize(
    ("wrap", "batch_size"), [("plain", "full"), pytest.param("batchnorm", 16, marks=pytest.mark.full)]
)
def test_a_recording_gives_the_same_bits(wrap, batch_size, monkeypatch):
    clients, results = torch.tensor([5, 4, 3]), []
    for worth in (2, 10**9):
        monkeypatch.setattr(recording, "CALLS_BEFORE_RECORDING", worth)
        recording.RECORDINGS.clear()
        _, work, x = rigs(batch_size, wrap=WRAPS[wrap])
        ends = [work.sgd(clients, x.expand(3, -1)) for _ in range(3)]
        ends += [part for _ in range(3) for part in work.gradients(clients, x.expand(3, -1), 1)]
        results.append([*ends, *work.buffers(clients)])
        assert any(function.chosen for function in work.engine.recorded.values()) == (worth == 2)
    assert all(map(torch.equal, *results))


def test_a_recording_is_played_back(monkeypatch):
    """The gradient of sum (a y)^3 in y; each combination of shapes is recorded at its fourth call."""
    monkeypatch.setattr(recording, "CALLS_BEFORE_RECORDING", 4)
    calls = []

    def slope(y, a):
        calls.append(len(y))
        return [torch.func.grad(lambda y: ((a * y) ** 3).sum())(y)]

    function = recording.Recorded(slope, "cubes")
    for n, expected_calls in ((2, 2), (3, 2), (2, 2 + 0), (2, 0), (3, 2), (2, 0)):
        before = len(calls)
        y, a = torch.arange(n, dtype=torch.float64), torch.tensor([[1.0], [2.0]], dtype=torch.float64)
        kernels = function.kernels([y, a[0]], 2)
        for k in (0, 1):
            y += 1  # the model changes between steps, in place
            assert torch.allclose(kernels(y, a[k])[0], 3 * a[k, 0] ** 3 * y**2, rtol=1e-14)
        assert len(calls) - before == expected_calls


def test_trials_share_recordings_of_equal_functions_only():
    def scaled_by(factor):
        def function(y, u):
            calls.append(factor)
            return [factor * y * u]

        return function

    y, u = torch.ones(3), torch.rand(3)
    # Each trial compares its first results with one call of the function; a recording is another call.
    for factor, key, calls_expected, kept in ((2, "a", 2, 1), (2, "a", 1, 1), (3, "a", 2, 1), (3, "b", 2, 2)):
        calls = []
        function = recording.Recorded(scaled_by(factor), key)
        for _ in range(3):
            assert torch.equal(function.kernels([y, u])(y, u)[0], factor * u)
        assert (len(calls), len(recording.RECORDINGS)) == (calls_expected, kept)


CONSTANT = torch.tensor([3.0, 4.0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda y, u: [(y * u).sum(), y - u], [83.0, [-2.0, -2.0]]),
        (lambda y, u: [CONSTANT * y + torch.tensor(2.0), y.new_ones(2)], [[17.0, 26.0], [1.0, 1.0]]),
        (lambda y, u: [*torch.split(y * u, 1)], [[35.0], [48.0]]),
        (lambda y, u: [torch.cat([y, u]).as_strided((2,), (1,), 2) * y], [[35.0, 48.0]]),
        (lambda y, u: [y.clone().mul_(u).add_(1), y.view(2, 1).view(2)], [[36.0, 49.0], [5.0, 6.0]]),
        (lambda y, u: [torch.tensor([1.0, 2.0]).mul_(2) * y], [[10.0, 24.0]]),
        (lambda y, u: [(torch.complex(y, u).conj() * 1j).real], [[7.0, 8.0]]),
    ],
    ids=["results", "constants", "of one kernel", "from elsewhere", "in place", "constant in place", "conjugated"],
)
def test_a_recording_is_of_other_numbers_too(function, expected):
    """It is made with y = u, one tensor, and played back with other ones."""
    one = torch.tensor([1.0, 2.0])
    kernels = recording.record(function, [one, one])
    for _ in range(2):
        results = kernels(torch.tensor([5.0, 6.0]), torch.tensor([7.0, 8.0]))
        assert [result.tolist() for result in results] == expected


def changing(calls):
    return lambda y, u: [calls.append(1) or len(calls) * y * u]


def deciding(calls):
    return lambda y, u: [calls.append(1) or (2 * y if u.sum().item() > 0 else y)]


def leaving_torch(calls):
    return lambda y, u: [calls.append(1) or torch.from_numpy(2 * u.numpy()) * y]


def reshaping(calls):
    return lambda y, u: [calls.append(1) or (2 * y - u.detach().unsqueeze_(0).sum(0) + u)]


@pytest.mark.parametrize(("make", "second"), [(changing, 4), (deciding, 2), (leaving_torch, 2), (reshaping, 2)])
def test_a_function_that_cannot_be_recorded_is_called(make, second):
    calls, y, u = [], torch.ones(3), torch.ones(3)
    function = recording.Recorded(make(calls), "c")
    function.kernels([y, u])
    assert recording.RECORDINGS == {}
    calls[:] = [1] * 3
    assert torch.equal(function.kernels([y, u])(y, u)[0], second * y)
    assert y.shape == u.shape == (3,)


def test_a_recording_keeps_no_result_alive_that_the_function_frees():
    largest, alive = [0], []

    def function(y, u):
        for _ in range(8):
            y = y * u
            alive[:] = [one for one in alive if one() is not None] + [ref(y)]
            largest[0] = max(largest[0], len(alive))
        return [y]

    recording.record(function, [torch.ones(3), torch.ones(3)])
    assert largest[0] <= 2


def test_tasks_with_equal_losses_have_equal_keys():
    tasks = [digits(seed, clients=3, ridge=weight)[0] for seed, weight in ((0, 0.0), (1, 0.0), (0, 0.1))]
    double, frozen = digits(0, clients=3)[0].double(), digits(0, clients=3)[0]
    next(frozen.parameters()).requires_grad_(False)
    plain, other_seed, *others = (kernels_key(FlatTask(task)) for task in (*tasks, double, frozen))
    assert plain == other_seed
    assert len({plain, *others}) == 4
