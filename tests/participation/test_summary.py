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
