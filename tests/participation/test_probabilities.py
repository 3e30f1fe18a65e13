"""Sources of probabilities against their definitions."""

import numpy as np
import pytest

from rollcall.participation import Bernoulli, Population
from rollcall.participation.probabilities import class_coupled, constant, listed, resolve

NU = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=8)
COUNTS = np.array([[3, 0, 0, 1, 0]] * 8)


def population(seed=0):
    return Population(8, seed, classes=NU, histogram=COUNTS)


def test_class_coupled_is_the_inner_product_with_one_shared_vector():
    p = class_coupled(population(), sigma0=1.5, delta=0.0)
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
        p = class_coupled(
            Population(C, seed, classes=np.eye(C), histogram=np.eye(C, dtype=int)), sigma0=sigma0, delta=0
        )
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


def test_class_coupled_with_equal_classes_is_uniform():
    assert class_coupled(population(), sigma0=0.0, delta=0.0) == pytest.approx(np.full(8, 1 / 5))


def test_class_coupled_follows_the_seed():
    assert np.array_equal(class_coupled(population(4)), class_coupled(population(4)))
    assert not np.array_equal(class_coupled(population(4), sigma0=1), class_coupled(population(5), sigma0=1))


def test_constant_and_list():
    assert resolve(0.3, Population(2)).tolist() == constant(Population(2), p=0.3).tolist() == [0.3, 0.3]
    assert listed(Population(2), p=np.array([0.1, 0.9])).tolist() == [0.1, 0.9]


@pytest.mark.parametrize(
    ("probability", "complaint"),
    [
        (1.2, r"probability: 1.2 \(client 0\).*\[0, 1\]"),
        (np.array([0.5, -0.1, 0.5]), r"probability: -0.1 \(client 1\)"),
        (np.array([0.5, 0.5, np.nan]), r"probability: nan \(client 2\)"),
        (np.array([0.5, 0.5]), r"probability: shape \(2,\).*\[3\]"),
    ],
)
def test_probabilities_are_checked(probability, complaint):
    with pytest.raises(ValueError, match=complaint):
        Bernoulli(Population(3), probability=probability)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"sigma0": -1.0}, "sigma0: -1"), ({"delta": 1.5}, "delta: 1.5"), ({}, "must have classes")],
)
def test_class_coupled_refuses(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        class_coupled(population() if options else Population(3), **options)
