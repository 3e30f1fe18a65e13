"""Where the methods end on heterogeneous quadratics when uplinks are biased."""

from functools import cache

import numpy as np
import pytest
from clients import rounds_of

from rollcall.algorithms import ALGORITHMS
from rollcall.participation import MODELS, Population

pytestmark = pytest.mark.full

DRAW = np.random.default_rng(3)
U, H = DRAW.normal(size=(4, 3)), DRAW.uniform(0.5, 1.5, 4)
OPTIMUM = H @ U / H.sum()
P = np.array([0.05, 0.3, 0.6, 0.9])


def path(name, T, K, lr, p=P, u=U, h=H, **options):
    """The models after each round, without the suite: one method, one model of participation."""
    p = np.full(len(u), p)
    active = map(MODELS["bernoulli"](Population(len(u)), probability=p).active, range(T))
    run = rounds_of(ALGORITHMS[name](**options), u, h, active, K, lr, stationary=p)
    return np.array([x.numpy() for _, x, _ in run])


def end(*arguments, **options):
    """The last model of `path`."""
    return path(*arguments, **options)[-1]


once = cache(end)

TO_THE_OPTIMUM = [
    ("focus", {}, 0.03, 3),
    ("scaffold", {"option": "I"}, 0.1, 3),
    ("scaffold", {"option": "II"}, 0.1, 3),
    ("feddyn", {"alpha": 4.0}, 0.1, 3),
    ("amplified_scaffold", {"P": 10}, 0.1, 3),
    ("scaffnew", {"shift": "at_once"}, 0.1, 3),
    # Memory of updates: with single steps.
    *((name, {}, 0.1, 1) for name in ("mifa", "fedvarp", "mimic")),
    ("fedstale", {"beta": 1.0}, 0.05, 1),
]


@pytest.mark.parametrize(("name", "options", "lr", "K"), TO_THE_OPTIMUM, ids=str)
def test_methods_with_memory_reach_the_optimum(name, options, lr, K):
    """To 1e-10, with uplinks as rare as one round in twenty, where FedAvg ends more than 0.1 away."""
    assert np.abs(end(name, 700, K, lr, **options) - OPTIMUM).max() < 1e-10
    assert np.abs(once("fedavg", 700, K, lr) - OPTIMUM).max() > 0.1


@pytest.mark.parametrize("name", ["mifa", "fedvarp", "mimic"])
def test_memory_of_updates_ends_where_full_participation_does_with_more_steps(name):
    """K exact steps move client i by (1 - (1 - eta h_i)^K) (u_i - x): memory of updates weighs the targets so."""
    weights = 1 - (1 - 0.1 * H) ** 3
    limit = weights @ U / weights.sum()
    assert np.abs(limit - OPTIMUM).max() > 0.005
    assert np.abs(end(name, 900, 3, 0.1) - limit).max() < 1e-10


def test_scaffnew_with_shifts_on_return_diverges_unless_all_clients_participate():
    assert np.abs(end("scaffnew", 300, 1, 0.1, p=1.0) - OPTIMUM).max() < 1e-10
    assert np.abs(end("scaffnew", 300, 1, 0.1)).max() > 1e10


LIMITS = {"fedavg": lambda p2: 150 * p2 / (1 + p2), "fedavg_all": lambda p2: 100 * p2 / (0.5 + p2)}
"""Of E[x] for u = (0, 100) and p_1 = 0.5, whatever eta and K: [PBC] Proposition 1, and sum_i p_i (u_i - x) = 0."""


@pytest.mark.parametrize("name", LIMITS)
def test_fedavg_with_two_clients(name):
    u = np.array([[0.0], [100.0]])
    for p2, K, eta in [(0.2, 1, 0.2), (0.9, 3, 0.05)]:
        models = path(name, 1_800, K, eta, p=np.array([0.5, p2]), u=u, h=np.ones(2))
        batches = models[200:, 0].reshape(20, -1).mean(axis=1)
        error, limit = batches.std(ddof=1) / np.sqrt(20), LIMITS[name](p2)
        assert abs(batches.mean() - limit) < 4 * error
        assert abs(50 - limit) > 6 * error  # the right answer, 50, is far away
