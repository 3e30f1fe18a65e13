"""Statistics of a mask, by hand and against simulated chains."""

import math

import numpy as np
import pytest

from rollcall.participation import theory


def two_state(on, off, T, m, seed):
    """A mask of m chains, T rounds, started from the stationary law."""
    rng = np.random.default_rng(seed)
    mask = np.empty((T, m), dtype=bool)
    state = rng.random(m) < on / (on + off)
    for t in range(T):
        mask[t] = state
        state = np.where(state, rng.random(m) >= off, rng.random(m) < on)
    return mask


def test_statistics_of_a_mask_by_hand():
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    found = theory.empirical_marginals(mask, batches=3)
    np.testing.assert_allclose(found.value, [1 / 2, 1 / 3, 0])
    # Batch means of client 0: 1, 0, 1/2; of client 1: 1/2, 1/2, 0.
    np.testing.assert_allclose(found.error, [0.5 / 3**0.5, (1 / 12) ** 0.5 / 3**0.5, 0])
    # One round before these: it counts in the value, and is left out of the error.
    longer = theory.empirical_marginals(np.vstack([[True] * 3, mask]), batches=3)
    np.testing.assert_allclose(longer.value, [4 / 7, 3 / 7, 1 / 7])
    np.testing.assert_allclose(longer.error, found.error)
    np.testing.assert_allclose(theory.empirical_effective_weights(mask, 2).value, [2.5 / 6, 1.5 / 6, 0])
    assert [found.tolist() for found in theory.empirical_intervals(mask)] == [[1, 3], [2], []]
    assert theory.empirical_staleness(mask).T.tolist() == [[0, 0, 1, 2, 0, 1], [-1, 0, 1, 0, 1, 2], [-1] * 6]
    # Client 0, centred: + + - - + - halves: products + - + - -, over 5 pairs.
    assert theory.empirical_autocorrelation(mask)[0] == pytest.approx(-1 / 5)
    assert np.isnan(theory.empirical_autocorrelation(mask)[2])
    correlation = theory.empirical_correlation(mask)
    np.testing.assert_allclose(correlation[:2, :2], np.corrcoef(mask[:, :2].T.astype(float)), atol=1e-14)
    assert np.isnan(correlation[2]).all()
    assert np.isnan(correlation[:, 2]).all()
    with pytest.raises(ValueError, match="at most the 6 rounds"):
        theory.empirical_marginals(mask, 7)


def test_errors_account_for_correlation():
    on, off, T, m = 0.05, 0.15, 20_000, 200
    mask = two_state(on, off, T, m, seed=0)
    found = theory.empirical_marginals(mask)
    # The variance of the mean of a two-state chain: pi (1 - pi) / T * (1 + lambda) / (1 - lambda).
    expected = math.sqrt(0.25 * 0.75 / T * 1.8 / 0.2)
    assert np.sqrt((found.error**2).mean()) == pytest.approx(expected, rel=0.1)
    assert found.value.std() == pytest.approx(expected, rel=0.2)
    assert theory.empirical_autocorrelation(mask).mean() == pytest.approx(0.8, abs=0.003)
    # Intervals and staleness follow their laws; 5 standard errors of the pooled counts, which are nearly independent.
    gaps = np.concatenate(theory.empirical_intervals(mask))
    law = theory.interval_distribution(on, off, 6)
    share = np.array([(gaps == k).mean() for k in range(1, 7)])
    assert (np.abs(share - law) <= 5 * np.sqrt(law * (1 - law) / len(gaps))).all()
    stale = theory.empirical_staleness(mask)[1000:]
    law = theory.staleness_distribution(on, off, 6)
    assert np.abs([(stale == k).mean() for k in range(7)] - law).max() < 0.005


def test_effective_weights_from_a_mask():
    p = np.array([0.1, 0.4, 0.9, 0.0, 0.5])
    mask = np.random.default_rng(0).random((20_000, 5)) < p
    found = theory.empirical_effective_weights(mask)
    assert (np.abs(found.value - theory.effective_weights_independent(p)) <= 4 * found.error).all()
    assert found.error.max() < 0.004
    # Empty rounds count as 0 for all clients.
    assert abs(found.value.sum() - (1 - theory.active_distribution_independent(p)[0])) <= 4 * found.error.sum()
