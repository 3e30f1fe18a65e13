"""Distances between weights, by hand."""

import math

import numpy as np
import pytest

from participation import theory


def test_bias_by_hand():
    target, weights = np.array([0.5, 0.25, 0.25]), np.array([0.2, 0.3, 0.5])
    assert theory.l1_distance(target, weights) == pytest.approx(0.6)
    assert theory.total_variation(target, weights) == pytest.approx(0.3)
    # 0.09 / 0.2 + 0.0025 / 0.3 + 0.0625 / 0.5
    assert theory.chi_square(target, weights) == pytest.approx(0.45 + 0.0025 / 0.3 + 0.125)
    assert theory.chi_square(np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 0.0])) == math.inf
    assert theory.chi_square(np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.0])) == pytest.approx(1)
    assert theory.normalised(np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="the sum is 2"):
        theory.l1_distance(target, 2 * weights)
    with pytest.raises(ValueError, match="not all 0"):
        theory.normalised(np.zeros(2))
