"""Analyses and simulated laws against closed forms and brute force."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from keys import keyed
from separation_oracle import brute_separation, separation_chain

from rollcall.benchmark.experiments.ca_fed import analyses as ca_fed
from rollcall.benchmark.experiments.fedpbc import analyses as fedpbc
from rollcall.benchmark.experiments.findings.meetings import meetings
from rollcall.benchmark.experiments.sun import analyses as sun
from rollcall.participation import Population
from rollcall.participation.minimum_separation import stationary_separation
from rollcall.participation.probabilities import class_coupled
from rollcall.tasks import digits
from rollcall.tasks.partitions import dirichlet


def test_the_limit_of_four_clients_is_that_of_all_their_rounds():
    p, u = np.array([0.1, 0.4, 0.7, 1.0]), np.array([3.0, -1.0, 8.0, 5.0])
    rounds = np.array(list(product([0, 1], repeat=4)))[1:]  # without the empty one
    chance = np.where(rounds, p, 1 - p).prod(axis=1)
    expected = chance @ (rounds @ u / rounds.sum(axis=1)) / chance.sum()
    (row,) = fedpbc.prop1_limit(0, targets=u, probability=p).to_dict("records")
    assert row["x"] == pytest.approx(expected, rel=1e-12)
    assert row["train/bias"] == pytest.approx(expected - 3.75, rel=1e-12)
    assert row["apart"] < 1e-15


def of_small_rate(p, lag):
    """The mean of two clients' FedAvg, round by round until it repeats: a client alone has weight 1, both have 1/2 each.

    x -> a x + b over one period of 40 rounds at a rate of 1e-4, so that it repeats at b / (1 - a).
    """
    a, b = 1.0, 0.0
    for t in range(40):
        p1, p2 = p * (0.6 + 0.4 * np.sin(2 * np.pi * (t - lag) / 40))
        w1, w2 = 1e-4 * (p1 - p1 * p2 / 2), 1e-4 * (p2 - p1 * p2 / 2)
        a, b = (1 - w1 - w2) * a, (1 - w1 - w2) * b + 100 * w2
    return b / (1 - a)


@pytest.mark.parametrize(("lag", "sign"), [(0, 1), (20, -1)])
def test_the_limit_with_varying_probabilities_is_that_of_a_small_rate(lag, sign):
    """Also if the two vary against each other. E[p1 p2] = 0.45 (0.6^2 +- 0.4^2 / 2)."""
    p, u, lags = np.array([0.5, 0.9]), np.array([0.0, 100.0]), np.array([0, lag])
    x = of_small_rate(p, lags)
    (row,) = fedpbc.prop1_limit(0, targets=u, probability=p, gamma=0.4, lag=lags).to_dict("records")
    assert row["x"] == pytest.approx(x, abs=0.05)
    assert row["off"] == pytest.approx(abs(x - 50), abs=0.05)
    numerators = np.array([0.3, 0.54]) - 0.45 * (0.36 + sign * 0.08) / 2
    assert row["x"] == pytest.approx(100 * numerators[1] / numerators.sum(), rel=1e-12)
    (mean,) = fedpbc.prop1_limit(0, targets=u, probability=p, gamma=0.4, period=1).to_dict("records")
    assert mean["x"] == pytest.approx(100 * (0.54 - 0.081) / (0.3 + 0.54 - 0.162), rel=1e-12)  # of 0.3 and 0.54
    assert abs(row["x"] - mean["x"]) > 0.5


@pytest.mark.parametrize(("p", "b"), [(0.3, 0.2), (0.7, 0.05), (0.05, 0.9)])
def test_where_methods_stay_with_equal_availability_is_the_fixed_point_of_their_second_moments(p, b):
    """Of four clients over all active sets; the server keeps its model in an empty round."""
    u, m = np.array([3.0, -1.0, 8.0, 2.0]), 4
    rounds = np.array(list(product([0, 1], repeat=m)))
    chance = np.where(rounds, p, 1 - p).prod(axis=1)
    own = np.column_stack([np.eye(m) * (1 - b), b * u])  # the local step: models [m] and 1 -> models
    pbc, avg = 0.0, 0.0
    for probability, on in zip(chance, rounds, strict=True):
        W, mean = np.eye(m), on / max(1, on.sum())
        W[np.ix_(on == 1, on == 1)] = 1 / max(1, on.sum())
        # State: models, the server's model, 1.
        step = np.zeros((m + 2, m + 2))
        step[:m, [*range(m), m + 1]] = W @ own
        step[m, [*range(m), m + 1]] = mean @ own
        step[m, m], step[m + 1, m + 1] = float(not on.any()), 1.0
        pbc = pbc + probability * np.kron(step, step)
        keep = 1 - b if on.any() else 1.0
        plain = np.array([[keep, b * mean @ u], [0.0, 1.0]])
        avg = avg + probability * np.kron(plain, plain)

    def distance(moments, index):
        second = (np.linalg.matrix_power(moments, 10**6) @ np.ones(len(moments))).reshape(
            [int(len(moments) ** 0.5)] * 2
        )
        return np.sqrt((second[index, index] - 2 * 3.0 * second[index, -1] + 9.0) / u.var(ddof=1))

    (row,) = fedpbc.equal_availability(0, probability=p, clients=m, lr=b).to_dict("records")
    assert row["fedavg"] == pytest.approx(distance(avg, 0), rel=1e-8)
    assert row["fedpbc"] == pytest.approx(distance(pbc, m), rel=1e-8)
    assert row["ratio"] == pytest.approx(distance(avg, 0) / distance(pbc, m), rel=1e-8)


def test_probabilities_are_those_of_the_data_set():
    _, data = digits(0, clients=30, partition=partial(dirichlet, alpha=0.5))
    p = np.sort(class_coupled(Population(30, 0, data.classes), sigma0=3.0, delta=0.02))
    source = partial(class_coupled, sigma0=3.0, delta=0.02)
    table = fedpbc.probabilities_sorted(0, probability=source, clients=30, alpha=0.5)
    assert table["p"].to_numpy() == pytest.approx(p, rel=1e-12)
    histogram = fedpbc.probabilities_histogram(0, probability=source, clients=30, alpha=0.5, bins=4)
    assert histogram["p"].tolist() == [0, 0.25, 0.5, 0.75]
    assert histogram["clients"].tolist() == [((p >= low) & (p < low + 0.25)).sum() for low in histogram["p"]]
    assert histogram["clients"].sum() == 30


def test_the_first_set_by_the_sum_and_by_the_product():
    """By hand: of {1, 2}, {1, 3}, {2, 3} the sums are 1/2, 3/4, 3/4 and the products 1/16, 1/8, 1/8."""
    (row,) = sun.first_set(0, weights=np.array([1.0, 1.0, 2.0]), batch=2).to_dict("records")
    of_sum, of_product = np.array([5, 5, 6]) / 16, np.array([3, 3, 4]) / 10
    assert row["apart"] == pytest.approx(np.abs(of_sum - of_product).sum(), rel=1e-12)
    (row,) = sun.first_set(0, weights=np.array([1.0, 5.0, 2.0]), batch=1).to_dict("records")
    assert row["apart"] < 1e-15


def test_separation_distance_by_enumeration():
    exact = sun.separation_distance(3, units=5)
    p = keyed(3, "probabilities").random(5)
    enumerated = [np.abs(brute_separation(p, R) - 0.2).sum() for R in range(5)]
    assert exact["distance"].to_numpy() == pytest.approx(enumerated, abs=1e-9)
    assert exact["largest_rise"].tolist() == [0] * 5
    simulated = sun.separation_simulated(3, separations=np.array([0, 2]), rounds=500, units=5, law="uniform")
    assert simulated["round"].tolist() == [0, 2]
    assert simulated["distance"].to_numpy() == pytest.approx(exact["distance"][[0, 2]].to_numpy(), abs=0.02)
    assert (simulated["apart"] < 4 * simulated["noise"]).all()
    assert (simulated["noise"] > 0).all()


def test_simulated_shares_are_the_exact_ones():
    p = np.arange(1, 21) ** -1.5
    distances = []
    for R in (0, 5, 10, 15, 19):
        pi = stationary_separation(p, R)
        share, error = sun.simulated_separation(p, R, rounds=2000, seed=R, chains=100)
        # Rounds are a multiple of 20: at R = 19 each chain draws each unit 100 times and the error is 0.
        assert (np.abs(share - pi) <= 4.5 * error + 1e-12).all()
        assert error.max() < 0.002
        distances.append(np.abs(pi - 0.05).sum())
    np.testing.assert_allclose(distances[0], np.abs(p / p.sum() - 0.05).sum(), rtol=1e-13)
    assert (np.diff(distances) < -0.1).all()
    assert distances[-1] == pytest.approx(0, abs=1e-15)


def laws(p, R, horizon):
    """The laws of the unit drawn in each round [T, M], from powers of the chain's transition matrix."""
    _, P, draws = separation_chain(p, R)
    return np.stack([(np.linalg.matrix_power(P, t) @ draws)[0] for t in range(horizon)])


def test_simulated_laws_are_those_of_the_chain():
    p = np.arange(1, 7) ** -1.5
    p /= p.sum()
    found = sun.separation_laws(p, 3, 30, seed=2, chains=4000)
    # A chance in [0, 1] has a standard deviation of at most 1/2: 4.5 standard errors are 0.036.
    assert np.abs(found - laws(p, 3, 30)).max() < 0.036
    np.testing.assert_allclose(found[0], p, atol=1e-14)
    # Memoryless: no noise. Cyclic: never settles.
    np.testing.assert_allclose(sun.separation_laws(p, 0, 3), [p] * 3, atol=1e-14)
    alternating = sun.separation_laws(np.array([0.9, 0.1]), 1, 90, chains=3000)
    assert np.abs(alternating - 0.5).max(axis=1) == pytest.approx([0.4] * 90, abs=0.03)


def test_mixing_time():
    def mixing(pi, eigenvalue):
        table = ca_fed.two_states(0, stationary=np.array(pi), correlation=np.array(eigenvalue))
        return table["mixing"].item()

    # Two states: TV from state x is |lambda|^t (1 - pi_x).
    for on, off in [(0.05, 0.15), (0.02, 0.02), (0.9, 0.8), (0.3, 0.7), (0.5, 0.5)]:
        worst, eigenvalue = max(on, off) / (on + off), 1 - on - off
        t = next(t for t in range(1000) if worst * abs(eigenvalue) ** t <= 0.01)
        assert mixing([on / (on + off)], [eigenvalue]) == t
    # Two chains: the law of the whole is the product at each t.
    pi, eigenvalue = np.array([0.2, 0.7]), np.array([0.8, -0.3])

    def distance(t):
        apart = 0.0
        for x in product([0, 1], repeat=2):
            on = pi + eigenvalue**t * (x - pi)
            laws = (np.outer([1 - p[0], p[0]], [1 - p[1], p[1]]) for p in (on, pi))
            apart = max(apart, np.abs(np.subtract(*laws)).sum() / 2)
        return apart

    t = int(mixing(pi, eigenvalue))
    assert distance(t) <= 0.01 < distance(t - 1)
    with pytest.raises(ValueError, match="never mixes"):
        mixing([0.5, 0.3], [-1.0, 0.2])
    with pytest.raises(ValueError, match=r"^correlation: 1 .*must be in"):
        mixing([0.5], [1.0])


@pytest.mark.parametrize(("size", "mixing"), [(2, 1.0), (2, 0.1), (2, 0.0), (4, 0.3)])
def test_the_spectral_gap_of_meetings(size, mixing):
    """Against the mean of 20,000 matrices; E[I - W] has the eigenvalue of the formula on vectors that are constant on blocks."""
    m, rng, T = 20, np.random.default_rng(0), 20_000
    drawn = [meetings(t, rng, clients=m, size=size, mixing=mixing) for t in range(T)]
    lengths, on = np.array([len(A) for A in drawn]), np.zeros((T, m))
    on[np.arange(T).repeat(lengths), np.concatenate(drawn)] = 1
    assert (on.sum(axis=1) == lengths).all()  # each client once
    assert {*lengths.tolist()} <= {0, size}
    total = np.diag(on.sum(axis=0)) - on.T @ on / size  # I - W^2 = I - W: W averages over the active clients
    assert on.mean(axis=0) == pytest.approx(np.full(m, 0.1), abs=0.012)
    blocks = np.kron(np.eye(m // size), np.ones((size, 1))) / np.sqrt(size)
    basis = blocks @ np.linalg.svd(np.ones((1, m // size)))[2][1:].T  # constant on blocks, of mean 0
    gap = mixing * (size - 1) * (0.1 * m / size) / (m - 1)
    assert np.trace(basis.T @ total @ basis) / T / (m // size - 1) == pytest.approx(gap, rel=0.05)
    least = np.linalg.eigvalsh(total / T)[1]  # but that of the mean
    assert least == pytest.approx(gap, rel=0.15, abs=1e-12)
