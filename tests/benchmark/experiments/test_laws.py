"""Simulated laws of minimum separation against the exact ones, and mixing times by hand."""

import numpy as np
import pytest
from separation_oracle import separation_chain

from rollcall.benchmark.experiments.ca_fed import analyses as ca_fed
from rollcall.benchmark.experiments.sun import analyses
from rollcall.participation.minimum_separation import stationary_separation


def test_simulated_shares_are_the_exact_ones():
    p = np.arange(1, 21) ** -1.5
    distances = []
    for R in (0, 5, 10, 15, 19):
        pi = stationary_separation(p, R)
        share, error = analyses.simulated_separation(p, R, rounds=2000, seed=R, chains=100)
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
    found = analyses.separation_laws(p, 3, 30, seed=2, chains=4000)
    # A chance in [0, 1] has a standard deviation of at most 1/2: 4.5 standard errors are 0.036.
    assert np.abs(found - laws(p, 3, 30)).max() < 0.036
    np.testing.assert_allclose(found[0], p, atol=1e-14)
    # Memoryless: no noise. Cyclic: never settles.
    np.testing.assert_allclose(analyses.separation_laws(p, 0, 3), [p] * 3, atol=1e-14)
    alternating = analyses.separation_laws(np.array([0.9, 0.1]), 1, 90, chains=3000)
    assert np.abs(alternating - 0.5).max(axis=1) == pytest.approx([0.4] * 90, abs=0.03)


def test_mixing_time():
    # Two states: TV from state x is |lambda|^t (1 - pi_x).
    for on, off in [(0.05, 0.15), (0.02, 0.02), (0.9, 0.8), (0.3, 0.7)]:
        P = np.array([[1 - on, on], [off, 1 - off]])
        worst = max(on, off) / (on + off)
        t = next(t for t in range(1000) if worst * abs(1 - on - off) ** t <= 0.25)
        assert ca_fed.mixing_time(P) == t
    assert ca_fed.mixing_time(np.array([[0.5, 0.5], [0.5, 0.5]])) == 1
    assert ca_fed.mixing_time(np.array([[0.5, 0.5], [0.5, 0.5]]), 0.6) == 0
    for never in ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(ValueError, match="never mixes"):
            ca_fed.mixing_time(np.array(never))
