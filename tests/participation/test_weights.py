"""Effective weights against enumeration; distances between weights by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollcall.participation import weights as theory

probabilities = st.lists(st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0, 1), min_size=1, max_size=8).map(np.array)


def brute_groups(sizes, event, member, limit, reading):
    """Over all 2^m patterns of members that would be on: chance of the pattern, then the constraint."""
    m = sum(sizes)
    group = np.repeat(np.arange(len(sizes)), sizes)
    c = np.zeros(m)
    for on in itertools.product((0, 1), repeat=m):
        pattern = np.array(on)
        chance = 1.0
        choices = []
        for g, size in enumerate(sizes):
            members = [i for i in range(m) if group[i] == g and on[i]]
            k = len(members)
            chance *= event[g] * member[g] ** k * (1 - member[g]) ** (size - k) + (1 - event[g]) * (k == 0)
            if limit is None or k <= limit:
                choices.append([members])
            elif reading == "collision":
                choices.append([[]])
            else:
                choices.append([list(s) for s in itertools.combinations(members, limit)])
        outcomes = list(itertools.product(*choices))
        for outcome in outcomes:
            pattern = list(itertools.chain(*outcome))
            if pattern:
                c[pattern] += chance / len(outcomes) / len(pattern)
    return c


@settings(max_examples=40, deadline=None)
@given(probabilities)
def test_independent_uplinks_against_enumeration(p):
    c = np.zeros(len(p))
    for on in itertools.product((0, 1), repeat=len(p)):
        chance = math.prod(q if x else 1 - q for q, x in zip(p, on, strict=True))
        if sum(on):
            c += chance * np.array(on) / sum(on)
    np.testing.assert_allclose(theory.effective_weights_independent(p), c, atol=1e-14)


def test_independent_uplinks_of_many_clients():
    # Alike: c_i = (1 - (1 - p)^m) / m.
    c = theory.effective_weights_independent(np.full(1000, 0.002))
    np.testing.assert_allclose(c, (1 - 0.998**1000) / 1000, rtol=1e-11)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.4, 1.0]) | st.just(np.array([0.2, 0.9, 0.5])),
    st.none() | st.integers(1, 3),
    st.sampled_from(["collision", "cap"]),
    st.data(),
)
def test_group_events_against_enumeration(sizes, member, limit, reading, data):
    event = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=len(sizes), max_size=len(sizes))))
    inside = np.broadcast_to(member, 3)[: len(sizes)]  # one number, or one for each group
    c = brute_groups(sizes, event, inside, limit, reading)
    member = member if np.ndim(member) == 0 else inside
    np.testing.assert_allclose(theory.effective_weights_groups(sizes, event, member, limit, reading), c, atol=1e-14)


def test_bias_by_hand():
    target, weights = np.array([0.5, 0.25, 0.25]), np.array([0.2, 0.3, 0.5])
    assert theory.l1_distance(target, weights) == pytest.approx(0.6)
    # 0.09 / 0.2 + 0.0025 / 0.3 + 0.0625 / 0.5
    assert theory.chi_square(target, weights) == pytest.approx(0.45 + 0.0025 / 0.3 + 0.125)
    assert theory.chi_square(np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 0.0])) == math.inf
    assert theory.chi_square(np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.0])) == pytest.approx(1)
    assert theory.normalised(np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="the sum is 2"):
        theory.l1_distance(target, 2 * weights)
    with pytest.raises(ValueError, match="not all 0"):
        theory.normalised(np.zeros(2))
