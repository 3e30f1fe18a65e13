"""The clock: rounds of three clients by hand for each rule, and the marginals that it states against counts."""

from functools import partial
from itertools import product
from zlib import crc32

import numpy as np
import pytest

from rollcall.participation import MODELS, Clocked, Participation, Population
from rollcall.participation.clock import lognormal, speeds
from rollcall.participation.probabilities import class_coupled, mixture
from rollcall.participation.recording import record

T = np.array([2.5, 8.75, 3.0])
MASK = np.array([[1, 1, 1], [0, 1, 1], [0, 1, 0], [0, 0, 0]])


def trace(mask=MASK):
    return MODELS["trace"](Population(3), mask=mask)


def rounds(model, count=4):
    return [(model.active(t).tolist(), model.late(t).tolist(), model.seconds(t)) for t in range(count)]


BY_HAND = {
    # All available clients are awaited. Nobody is available in round 3: the time of the median client, 3.
    "all": ({}, [([0, 1, 2], [], 8.75), ([1, 2], [], 8.75), ([1], [], 8.75), ([], [], 3.0)]),
    # Clients 0 and 2 are the first two. In round 2 only one is available, and awaited.
    "first 2": ({"first": 2}, [([0, 2], [1], 3.0), ([1, 2], [], 8.75), ([1], [], 8.75), ([], [], 3.0)]),
    # Client 1 is never in time. Where nobody is, and where nobody is available, the round lasts until the deadline.
    "deadline 4": ({"deadline": 4.0}, [([0, 2], [1], 4.0), ([2], [1], 4.0), ([], [1], 4.0), ([], [], 4.0)]),
    # Who has answered by 10 seconds ends the round, as all have.
    "deadline 10": ({"deadline": 10.0}, [([0, 1, 2], [], 8.75), ([1, 2], [], 8.75), ([1], [], 8.75), ([], [], 10.0)]),
    # A deadline equal to a client's time includes the client.
    "deadline 3": ({"deadline": 3.0}, [([0, 2], [1], 3.0), ([2], [1], 3.0), ([], [1], 3.0), ([], [], 3.0)]),
    # Whichever is first: the first upload, or the deadline.
    "first 1, deadline 4": (
        {"first": 1, "deadline": 4.0},
        [([0], [1, 2], 2.5), ([2], [1], 3.0), ([], [1], 4.0), ([], [], 4.0)],
    ),
    # All uploads of client 0 fail: it is no first one, but the server waits for its answer as for the others'.
    "failure": (
        {"failure": np.array([1.0, 0.0, 0.0]), "first": 2},
        [([1, 2], [0], 8.75), ([1, 2], [], 8.75), ([1], [], 8.75), ([], [], 3.0)],
    ),
    "failure of all": ({"failure": 1.0}, [([], [0, 1, 2], 8.75), ([], [1, 2], 8.75), ([], [1], 8.75), ([], [], 3.0)]),
}


@pytest.mark.parametrize("rule", BY_HAND)
def test_rounds_of_three_clients_by_hand(rule):
    options, expected = BY_HAND[rule]
    assert rounds(Clocked(Population(3), trace(), T, **options)) == expected


@pytest.mark.parametrize("first", [5, 25, 33])
def test_of_equal_times_the_first_clients_are_first(first):
    population, times = Population(100), 1.0 + np.arange(100) % 2
    model = Clocked(population, MODELS["full"](population), times, first=first)
    assert model.active(0).tolist() == list(range(0, 100, 2))[:first]


def test_no_round_waits_for_a_client_without_samples():
    """Client 0, the fastest, has none. It is active whenever it is available, and no upload."""
    trains = np.array([False, True, True])
    first = rounds(Clocked(Population(3), trace(), T, first=1, failure=np.array([1.0, 0, 0]), trains=trains))
    assert first == [([0, 2], [1], 3.0), ([2], [1], 3.0), ([1], [], 8.75), ([], [], 5.875)]
    # Alone it leaves the server as idle as nobody: for the time of the median client that trains, (3 + 8.75) / 2.
    assert rounds(Clocked(Population(3), trace(np.eye(3)), T, trains=trains), 2) == [([0], [], 5.875), ([1], [], 8.75)]
    slow = Clocked(Population(3), trace(), T, deadline=3.0, trains=trains)
    assert slow.stationary == pytest.approx([1 / 4, 0, 2 / 4])
    with pytest.raises(ValueError, match=r"^wait.deadline: 2.9 .* at least 3, which the fastest client needs"):
        Clocked(Population(3), trace(), T, deadline=2.9, trains=trains)


def test_a_round_is_a_function_of_seed_and_round():
    def model(seed, **options):
        return Clocked(Population(3, seed), trace(), T, jitter=0.5, failure=0.3, **options)

    forward = rounds(model(1), 40)
    assert [rounds(model(1), 40)[t] for t in (39, 0, 7)] == [forward[t] for t in (39, 0, 7)]
    backward = model(1)
    assert [(backward.active(t).tolist(), backward.seconds(t)) for t in (39, 3)] == [forward[t][::2] for t in (39, 3)]
    assert rounds(model(2), 40) != forward
    # A client has the same luck under every rule, and whoever else is available.
    for t, (on, _, _) in enumerate(rounds(model(1, deadline=5.0), 40)):
        assert set(on) <= set(forward[t][0])
    alone = Clocked(Population(3, 1), trace(MASK * [0, 1, 0]), T, jitter=0.5, failure=0.3)
    assert [set(alone.active(t).tolist()) for t in range(40)] == [set(on) & {1} for on, _, _ in forward]
    # log(T / 2.5) is N(0, 0.5^2) in rounds with client 0 alone.
    alone = Clocked(Population(3), trace(np.array([[1, 0, 0]])), T, jitter=0.5)
    z = np.log([alone.seconds(t) / 2.5 for t in range(2000)]) / 0.5
    assert abs(z.mean()) < 4 / np.sqrt(2000)
    assert abs(z.std() - 1) < 4 / np.sqrt(4000)


def test_speeds_have_their_law_and_a_stream_of_their_own():
    population = Population(4000, 3)
    drawn = [speeds("up", lambda p, rng: lognormal(p, rng, median=50, spread=0.7), population, k) for k in range(2)]
    assert abs(np.corrcoef(np.log(drawn))[0, 1]) < 4 / np.sqrt(4000)
    for values in drawn:
        assert abs(np.log(values / 50).mean()) < 4 * 0.7 / np.sqrt(4000)
        assert abs(np.log(values).std() - 0.7) < 4 * 0.7 / np.sqrt(8000)
    factor = np.linspace(0.1, 1, 4000)
    coupled = speeds("up", lambda p, rng: lognormal(p, rng, median=50, spread=0.7, probability=factor), population, 0)
    assert coupled == pytest.approx(drawn[0] * factor)
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=r"^up: .* \(client 0\) is not allowed; must be above 0$"):
            speeds("up", wrong, population, 0)


def test_the_draws_of_a_clock_are_not_those_of_the_availability():
    """Of `mixture`: independent numbers for each purpose. `class_coupled` has one r for all."""
    population = Population(4000, 5)
    p = MODELS["bernoulli"](population, probability=mixture).stationary
    uniform = np.random.default_rng([5, crc32(b"probabilities")]).random(4000)
    assert p == pytest.approx(0.1 + np.repeat([0.2, 0.8], [3600, 400]) * uniform, rel=1e-14)
    factors = [
        speeds(name, partial(lognormal, median=1, spread=0.0, probability=mixture), population, k)
        for k, name in enumerate(("speed", "up", "down"))
    ]
    failure = Clocked(population, MODELS["full"](population), np.ones(4000), failure=mixture).failure
    away = np.corrcoef([draw[:3600] for draw in (p, *factors, failure)]) - np.eye(5)
    assert np.abs(away).max() < 4.5 / np.sqrt(3600)
    classes = Population(3, 5, classes=np.eye(3), histogram=np.eye(3, dtype=int))
    coupled = partial(class_coupled, sigma0=1.0)
    slow = speeds("up", partial(lognormal, median=1, spread=0.0, probability=coupled), classes, 1)
    assert slow.tolist() == coupled(classes).tolist()


P = np.array([0.9, 0.5, 0.3, 0.7])
TIMES = np.array([3.0, 1.0, 2.0, 2.0])


def enumerated(first, failure):
    """P(i is among the first n), over all sets of available clients whose uploads arrive."""
    total = np.zeros(4)
    for on in product((0, 1), repeat=4):
        sent = np.where(on, P * (1 - failure), 1 - P * (1 - failure)).prod()
        order = [i for i in np.lexsort((np.arange(4), TIMES)) if on[i]]
        total[order[:first]] += sent
    return total


@pytest.mark.parametrize("first", [1, 2, 3])
def test_the_marginals_of_the_first_n_are_those_of_all_sets(first):
    available = MODELS["bernoulli"](Population(4), probability=P)
    model = Clocked(Population(4), available, TIMES, first=first, failure=0.2)
    assert model.stationary == pytest.approx(enumerated(first, 0.2), abs=1e-12)
    assert model.probability(7) == pytest.approx(model.stationary)
    assert model.correlation is None
    assert model.share is None


def test_the_marginals_of_the_first_n_before_a_deadline():
    """Clients 0 to 3 need 1 to 4 s, times exp(0.5 z), and the two fastest within 2.5 s count: by counting draws."""
    rounds, first, deadline, jitter = 200_000, 2, 2.5, 0.5
    rng, T = np.random.default_rng(0), np.arange(1.0, 5.0)
    time = T * np.exp(jitter * rng.standard_normal((rounds, 4)))
    time[(rng.random((rounds, 4)) >= 0.8) | (time > deadline)] = np.inf
    counted = (np.isfinite(time) & (time.argsort(axis=1).argsort(axis=1) < first)).mean(axis=0)
    available = MODELS["bernoulli"](Population(4), probability=0.8)
    model = Clocked(Population(4), available, T, first=first, deadline=deadline, jitter=jitter)
    assert model.stationary == pytest.approx(counted, abs=0.005)


def test_the_shares_of_clients_that_are_not_independent_are_not_known():
    available = MODELS["group_events"](Population(10))
    assert Clocked(Population(10), available, np.ones(10), deadline=5.0).share is None
    redrawn = MODELS["active"](Population(10), probability=0.5, redraw_if_empty=True)
    assert Clocked(Population(10), redrawn, np.ones(10), deadline=5.0).share is None
    for name in ("bernoulli", "active"):
        independent = MODELS[name](Population(10), probability=0.5)
        assert Clocked(Population(10), independent, np.ones(10), deadline=5.0).share is not None


def test_the_marginals_of_the_first_n_without_the_clients_without_samples():
    """As if they were not there; their own are those to be available."""
    available = MODELS["bernoulli"](Population(6), probability=np.concatenate([[0.6], P, [0.8]]))
    times, trains = np.concatenate([[0.5], TIMES, [9.0]]), np.array([False, True, True, True, True, False])
    model = Clocked(Population(6), available, times, first=2, failure=0.2, trains=trains)
    assert model.stationary == pytest.approx([0.6, *enumerated(2, 0.2), 0.8], abs=1e-12)


class Stated(Participation):
    """Independent clients with these probabilities, of any type of numbers."""

    independent = True

    def __init__(self, p):
        super().__init__(Population(len(p)))
        self.p = p

    def active(self, t):
        return np.arange(self.clients)

    def probability(self, t):
        return self.p


@pytest.mark.parametrize("p", [np.array([1, 0, 1, 1]), np.array([0.5, 0.25, 1, 0.75], dtype=np.float32)])
def test_the_marginals_of_the_first_n_take_probabilities_of_any_type(p):
    exact = Clocked(Population(4), Stated(p.astype(float)), TIMES, first=2).probability(0)
    assert Clocked(Population(4), Stated(p), TIMES, first=2).probability(0).tolist() == exact.tolist()


COUNTED = [
    ("bernoulli", {}, {"first": 2, "jitter": 0.4, "deadline": 2.2}),
    ("markov", {}, {"first": 3, "jitter": 0.4}),
    ("markov", {"off_on": 0.3}, {"deadline": 2.2, "jitter": 0.4, "failure": 0.1}),
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "options", "clock"), COUNTED)
def test_the_stated_marginals_are_the_counted_ones(name, options, clock):
    rounds = 12_000
    available = MODELS[name](Population(4), probability=P, **options)
    model = Clocked(Population(4), available, TIMES, **clock)
    mask = record(model, rounds)
    blocks = mask.reshape(50, -1, 4).mean(axis=1)
    error = blocks.std(axis=0, ddof=1) / np.sqrt(50)
    assert (np.abs(mask.mean(axis=0) - model.stationary) < 4.5 * error).all()
    assert (error < 0.02).all()
    assert model.probability(0) == pytest.approx(model.stationary)
    if model.correlation is not None:
        x = mask - mask.mean(axis=0)
        lag = (x[1:] * x[:-1]).mean(axis=0) / x.var(axis=0)
        assert (np.abs(lag - model.correlation) < 0.03).all()
        if name == "markov":
            assert model.correlation.max() > 0.2
    if model.share is not None:
        weights = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
        assert weights.mean(axis=0) == pytest.approx(model.share, abs=0.01)
