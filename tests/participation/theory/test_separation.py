"""Minimum separation: the closed form against enumeration and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from separation_oracle import brute_separation

from rollcall.participation.theory import separation as theory


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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-12, 1e12]) | st.floats(1e-3, 1), min_size=2, max_size=30).map(np.array), st.data()
)
def test_stationary_separation_properties(p, data):
    units = int((p > 0).sum())
    if units == 0:
        with pytest.raises(ValueError, match="not all 0"):
            theory.stationary_separation(p, 0)
        return
    R = data.draw(st.integers(0, units - 1))
    pi = theory.stationary_separation(p, R)
    assert abs(pi.sum() - 1) < 1e-9
    assert ((pi == 0) == (p == 0)).all()
    assert (pi <= (1 + 1e-12) / (R + 1)).all()
    order = np.argsort(p)
    assert (np.diff(pi[order]) >= -1e-12).all()
    if R:
        # Separation only evens out.
        fewer = theory.stationary_separation(p, R - 1)
        level = (p > 0) / units
        assert np.abs(pi - level).sum() <= np.abs(fewer - level).sum() + 1e-9
    with pytest.raises(ValueError, match=f"must be at most {units - 1}"):
        theory.stationary_separation(p, units)


def test_enumeration_with_a_separation_for_each_unit():
    # Unit 0 may come back at once, units 1 and 2 skip a round. States: none, 1 or 2 waiting.
    p = np.array([0.5, 0.3, 0.2])
    # From "none": to 1 with 0.3, to 2 with 0.2. From 1: to none with 5/7, to 2 with 2/7. From 2: 5/8 and 3/8 to 1.
    P = np.array([[0.5, 0.3, 0.2], [5 / 7, 0, 2 / 7], [5 / 8, 3 / 8, 0]])
    x = np.linalg.solve(np.vstack([(P.T - np.eye(3))[:2], np.ones(3)]), np.array([0, 0, 1.0]))
    expected = np.array([0.5 * x[0] + 5 / 7 * x[1] + 5 / 8 * x[2], x[1], x[2]])
    np.testing.assert_allclose(brute_separation(p, np.array([0, 1, 1])), expected, atol=1e-13)


def test_separation_refuses_what_it_cannot_do():
    p = np.ones(20)
    with pytest.raises(ValueError, match="R: -1 is not allowed"):
        theory.stationary_separation(p, -1)
    with pytest.raises(ValueError, match="must be at most 9"):
        theory.stationary_separation(p, 10, 2)
    with pytest.raises(ValueError, match="p: must be finite"):
        theory.stationary_separation(np.array([0.5, -0.1]), 0)
