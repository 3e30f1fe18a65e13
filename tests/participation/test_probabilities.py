"""Sources of probabilities against their definitions."""

import numpy as np
import pytest

from rollcall.participation import Population
from rollcall.participation.probabilities import (
    class_coupled,
    class_weights,
    constant,
    coupling,
    halves,
    listed,
    mixture,
    power_law,
    resolve,
    two_level,
)

NU = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=8)
COUNTS = np.array([[3, 0, 0, 1, 0]] * 8)


def population(seed=0):
    return Population(8, seed, classes=NU, histogram=COUNTS)


def test_class_coupled_is_the_inner_product_with_one_shared_vector():
    p = class_coupled(population(), sigma0=1.5, delta=0.0)
    assert np.array_equal(p, class_coupled(population(), sigma0=1.5, delta=0.0))
    assert not np.array_equal(p, class_coupled(population(seed=1), sigma0=1.5, delta=0.0))
    # nu has full column rank, so p determines r: it must be one distribution over classes that explains all clients.
    r, residual, rank, _ = np.linalg.lstsq(NU, p, rcond=None)
    assert rank == 5
    assert residual < 1e-20
    assert r.min() > 0
    assert r.sum() == pytest.approx(1)


def test_class_coupled_draws_lognormal_weights():
    # log r_c - log r_0 is N(0, 2 sigma0^2); r is read off a population of one-class clients.
    sigma0, C = 0.7, 40
    logs = []
    for seed in range(100):
        one_class = Population(C, seed, classes=np.eye(C), histogram=np.eye(C, dtype=int))
        p = class_coupled(one_class, sigma0=sigma0, delta=0)
        logs.append(np.log(p) - np.log(p).mean())
    variance = np.var(logs, ddof=0) * C / (C - 1)
    assert variance == pytest.approx(sigma0**2, rel=4 * np.sqrt(2 / (100 * C)))


def test_class_coupled_has_a_floor_and_a_released_variant():
    p = class_coupled(population(), sigma0=10, delta=0.25)
    assert p.min() == 0.25
    assert p.max() <= 1
    realised = class_coupled(population(), sigma0=1, delta=0.0, realised=True)
    assert np.ptp(realised) == 0  # all histograms are equal here, the drawn distributions are not
    assert np.ptp(class_coupled(population(), sigma0=1, delta=0.0)) > 0
    one = class_coupled(Population(8, 0, classes=np.eye(5)[[0] * 8], histogram=COUNTS), sigma0=1, delta=0.0)
    last = class_coupled(Population(8, 0, classes=np.eye(5)[[3] * 8], histogram=COUNTS), sigma0=1, delta=0.0)
    assert realised == pytest.approx(0.75 * one + 0.25 * last)


def test_sources():
    five = Population(5, 1)
    assert resolve(0.3, five).tolist() == constant(five, p=0.3).tolist() == [0.3] * 5
    assert listed(five, p=np.array([0.1, 0.9])).tolist() == [0.1, 0.9]
    assert power_law(five, s=1.5, largest=0.8)[[0, 3]] == pytest.approx([0.8, 0.1])
    assert two_level(five).tolist() == halves(five, p0=0.9, p1=0.5 - 0.4).tolist()
    assert (two_level(five) > 0.5).tolist() == [True, True, True, False, False]
    p = mixture(Population(10_000, 2))
    assert p.min() > 0.1
    assert p[:9000].max() < 0.3 < p[9000:].max() < 0.9
    assert p[:9000].mean() == pytest.approx(0.2, abs=0.004)
    assert p[9000:].mean() == pytest.approx(0.5, abs=0.03)
    # A tenth of 36 clients are 4, not 3. Of 30 draws from U(0.1, 0.9), one is above 0.3 but for a chance of 1e-18.
    largest = np.max([mixture(Population(36, seed)) for seed in range(30)], axis=0)
    assert (largest > 0.3).tolist() == [False] * 32 + [True] * 4


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_coupling_keeps_the_mean(mean):
    nu = np.random.default_rng(0).dirichlet(np.full(4, 0.5), size=30)
    population = Population(30, 1, classes=nu, histogram=np.ones((30, 4), dtype=int))
    none, half, full = (coupling(population, strength=k, mean=mean, sigma0=1.0) for k in (0.0, 0.5, 1.0))
    assert none == pytest.approx(np.full(30, mean))
    assert half == pytest.approx((none + full) / 2)
    assert full.mean() == pytest.approx(mean, abs=1e-12)
    assert min(full.min() - 0.02, 1 - full.max()) == pytest.approx(0, abs=1e-12)
    # p is an affine function of the class distributions and of nothing else.
    residual = full - nu @ np.linalg.lstsq(nu, full, rcond=None)[0]
    assert np.abs(residual).max() < 1e-12


def test_weights_of_classes_stay_finite_for_any_spread():
    """exp(log r) would overflow; the heaviest class has nearly all of the weight."""
    weights = class_weights(0, 10, 5000.0)
    assert np.isfinite(weights).all()
    assert weights.max() / weights.sum() == pytest.approx(1)
