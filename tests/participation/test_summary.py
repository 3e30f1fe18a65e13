"""Statistics of a mask, by hand and against simulated chains."""

import numpy as np
import pytest

from rollcall.participation.summary import correlations, standard_errors, waits


def test_statistics_of_a_mask_by_hand():
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    intervals, staleness = waits(mask)
    assert intervals.tolist() == [1, 3, 2]
    assert staleness.tolist() == [0, 0, 0, 1, 1, 2, 0, 0, 1, 1, 2]  # round by round
    autocorrelation, between = correlations(mask)
    # Client 0, centred: + + - - + - halves: products + - + - -, over 5 pairs.
    assert autocorrelation[0] == pytest.approx(-1 / 5)
    np.testing.assert_allclose(between[:2, :2], np.corrcoef(mask[:, :2].T.astype(float)), atol=1e-14)
    assert np.isnan([autocorrelation[2], *between[2], *between[:, 2]]).all()
    # Client 0: variance 3/10 in each of 6 rounds. Client 2, never on: the error of the stated value counts.
    assert standard_errors(mask, np.array([0.3, 1 / 3, 0.0])) == pytest.approx(0.2 / 0.05**0.5)
    assert standard_errors(mask, np.array([0.5, 1 / 3, 0.5])) == pytest.approx(0.5 / (0.25 / 6) ** 0.5)
    assert standard_errors(mask, np.array([0.5, 1 / 3, 1.0])) == np.inf


def test_statistics_of_two_state_chains():
    on, off, T, m = 0.05, 0.15, 20_000, 200
    rng = np.random.default_rng(0)
    mask = np.empty((T, m), dtype=bool)
    state = rng.random(m) < on / (on + off)
    for t in range(T):
        mask[t] = state
        state = np.where(state, rng.random(m) >= off, rng.random(m) < on)
    # The variance of the mean of a two-state chain is that of independent rounds times (1 + lambda) / (1 - lambda).
    away = np.abs(mask.mean(axis=0) - 0.25).max() / np.sqrt(0.25 * 0.75 / T * 1.8 / 0.2)
    assert standard_errors(mask, np.full(m, 0.25)) == pytest.approx(away, rel=0.5)
    assert correlations(mask)[0].mean() == pytest.approx(0.8, abs=0.003)
    # Intervals and staleness follow their laws; 5 standard errors of the pooled counts, which are nearly independent.
    gaps, stale = waits(mask)
    waiting = off * (1 - on) ** np.arange(6)  # off after a round on, and still off k rounds later
    law = np.array([1 - off, *(waiting * on)[:-1]])
    share = np.array([(gaps == k).mean() for k in range(1, 7)])
    assert (np.abs(share - law) <= 5 * np.sqrt(law * (1 - law) / len(gaps))).all()
    law = 0.25 * np.array([1, *waiting])
    assert np.abs([(stale == k).mean() for k in range(7)] - law).max() < 0.005
