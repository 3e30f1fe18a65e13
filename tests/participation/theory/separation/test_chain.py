"""The chain of minimum separation against recursion and the closed form."""

import math

import numpy as np
import pytest

from participation import theory


def test_separation_by_unit():
    # Unit 0 may come back at once, units 1 and 2 skip a round. States: none, 1 or 2 waiting.
    p = np.array([0.5, 0.3, 0.2])
    # From "none": to 1 with 0.3, to 2 with 0.2. From 1: to none with 5/7, to 2 with 2/7. From 2: 5/8 and 3/8 to 1.
    P = np.array([[0.5, 0.3, 0.2], [5 / 7, 0, 2 / 7], [5 / 8, 3 / 8, 0]])
    x = np.linalg.solve(np.vstack([(P.T - np.eye(3))[:2], np.ones(3)]), np.array([0, 0, 1.0]))
    expected = np.array([0.5 * x[0] + 5 / 7 * x[1] + 5 / 8 * x[2], x[1], x[2]])
    R = np.array([0, 1, 1])
    np.testing.assert_allclose(theory.chain_separation(p, R), expected, atol=1e-13)
    estimate = theory.simulated_separation(p, R, rounds=2000, seed=1)
    assert (np.abs(estimate.value - expected) <= 4.5 * estimate.error).all()
    assert estimate.error.max() < 0.002
    np.testing.assert_allclose(
        theory.chain_separation(p, np.array([1, 1, 1])), theory.stationary_separation(p, 1), atol=1e-13
    )


def test_a_large_class_is_solved_by_iteration():
    # 6! / 1! = 2520 full states of R = 5 among 7: beyond the direct solver.
    p = np.arange(1, 8) ** -1.0
    np.testing.assert_allclose(theory.chain_separation(p, 5), theory.stationary_separation(p, 5), rtol=0, atol=1e-11)


def test_separation_refuses_what_it_cannot_do():
    p = np.ones(20)
    # 1 + 20 + 20 * 19 + ... + 20! / 15!
    size = sum(math.factorial(20) // math.factorial(20 - k) for k in range(6))
    with pytest.raises(ValueError, match=rf"{size:,} states, more than the limit of 50,000"):
        theory.chain_separation(p, 5)
    with pytest.raises(ValueError, match="more states than the limit of 100"):
        theory.chain_separation(p, np.full(20, 3), limit=100)
    with pytest.raises(ValueError, match="R: -1 is not allowed"):
        theory.stationary_separation(p, -1)
    with pytest.raises(ValueError, match="must be at most 9"):
        theory.stationary_separation(p, 10, 2)
    with pytest.raises(ValueError, match="p: must be finite"):
        theory.stationary_separation(np.array([0.5, -0.1]), 0)
    with pytest.raises(ValueError, match="leaves fewer than B = 1"):
        theory.chain_separation(np.ones(2), np.array([3, 3]))
    with pytest.raises(ValueError, match="fewer than B = 1 available"):
        theory.simulated_separation(np.ones(2), np.array([3, 3]), 10, 0)
