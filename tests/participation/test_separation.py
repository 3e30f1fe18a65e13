"""Minimum separation: the closed form against enumeration and by hand."""

import numpy as np
import pytest
from separation_oracle import brute_separation

from rollcall.participation import minimum_separation as theory


@pytest.mark.parametrize(("N", "R"), [(N, R) for N in (4, 5) for R in range(N)])
def test_stationary_separation_is_the_enumerated_one(N, R):
    p = np.arange(1, N + 1) ** -1.5
    expected = brute_separation(p, R)
    np.testing.assert_allclose(theory.stationary_separation(p, R), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("N", "R", "B"), [(5, 0, 2), (6, 1, 2), (6, 2, 2), (7, 1, 3), (6, 0, 4)])
def test_stationary_separation_of_sets_is_the_enumerated_one(N, R, B):
    p = np.array([5.0, 1.0, 0.2, 0.7, 2.0, 0.05, 1.5])[:N]
    expected = brute_separation(p, R, B)
    np.testing.assert_allclose(theory.stationary_separation(p, R, B), expected, rtol=0, atol=1e-12)


def test_stationary_separation_by_hand():
    p = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(theory.stationary_separation(p, 0), p, rtol=1e-14)
    # Two consecutive draws are {0,1}, {0,2}, {1,2} with weights 0.15, 0.10, 0.06.
    np.testing.assert_allclose(theory.stationary_separation(p, 1), np.array([25, 21, 16]) / 62, rtol=1e-13)
    assert theory.stationary_separation(p, 2).tolist() == [1 / 3] * 3
    assert theory.stationary_separation(np.array([0.9, 0.1]), 1).tolist() == [0.5, 0.5]
    assert theory.stationary_separation(np.array([0.5, 0.0, 0.5]), 1).tolist() == [0.5, 0.0, 0.5]
