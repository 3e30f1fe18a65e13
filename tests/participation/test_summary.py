"""Statistics of a mask, by hand and against simulated chains."""

import math

import numpy as np
import pytest

from rollcall.participation.summary import (
    batch_means,
    empirical_autocorrelation,
    empirical_correlation,
    empirical_intervals,
    empirical_staleness,
)
from rollcall.participation.theory.chains import interval_distribution, staleness_distribution


def test_statistics_of_a_mask_by_hand():
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    mean, error = batch_means(mask.astype(float), batches=3)
    np.testing.assert_allclose(mean, [1 / 2, 1 / 3, 0])
    # Batch means of client 0: 1, 0, 1/2; of client 1: 1/2, 1/2, 0.
    np.testing.assert_allclose(error, [0.5 / 3**0.5, (1 / 12) ** 0.5 / 3**0.5, 0])
    # One round before these counts in the mean and is left out of the error.
    longer, same = batch_means(np.vstack([[1.0] * 3, mask]), batches=3)
    np.testing.assert_allclose(longer, [4 / 7, 3 / 7, 1 / 7])
    np.testing.assert_allclose(same, error)
    assert [gaps.tolist() for gaps in empirical_intervals(mask)] == [[1, 3], [2], []]
    assert empirical_staleness(mask).T.tolist() == [[0, 0, 1, 2, 0, 1], [-1, 0, 1, 0, 1, 2], [-1] * 6]
    # Client 0, centred: + + - - + - halves: products + - + - -, over 5 pairs.
    assert empirical_autocorrelation(mask)[0] == pytest.approx(-1 / 5)
    assert np.isnan(empirical_autocorrelation(mask)[2])
    correlation = empirical_correlation(mask)
    np.testing.assert_allclose(correlation[:2, :2], np.corrcoef(mask[:, :2].T.astype(float)), atol=1e-14)
    assert np.isnan(correlation[2]).all()
    assert np.isnan(correlation[:, 2]).all()


def test_statistics_of_two_state_chains():
    on, off, T, m = 0.05, 0.15, 20_000, 200
    rng = np.random.default_rng(0)
    mask = np.empty((T, m), dtype=bool)
    state = rng.random(m) < on / (on + off)
    for t in range(T):
        mask[t] = state
        state = np.where(state, rng.random(m) >= off, rng.random(m) < on)
    mean, error = batch_means(mask.astype(float))
    # The variance of the mean of a two-state chain: pi (1 - pi) / T * (1 + lambda) / (1 - lambda).
    expected = math.sqrt(0.25 * 0.75 / T * 1.8 / 0.2)
    assert np.sqrt((error**2).mean()) == pytest.approx(expected, rel=0.1)
    assert mean.std() == pytest.approx(expected, rel=0.2)
    assert empirical_autocorrelation(mask).mean() == pytest.approx(0.8, abs=0.003)
    # Intervals and staleness follow their laws; 5 standard errors of the pooled counts, which are nearly independent.
    gaps = np.concatenate(empirical_intervals(mask))
    law = interval_distribution(on, off, 6)
    share = np.array([(gaps == k).mean() for k in range(1, 7)])
    assert (np.abs(share - law) <= 5 * np.sqrt(law * (1 - law) / len(gaps))).all()
    stale = empirical_staleness(mask)[1000:]
    law = staleness_distribution(on, off, 6)
    assert np.abs([(stale == k).mean() for k in range(7)] - law).max() < 0.005
