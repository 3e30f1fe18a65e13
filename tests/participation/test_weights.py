"""Effective weights and minimum separation against enumeration; distances between weights by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from separation_oracle import brute_separation

from rollcall.participation import Population, minimum_separation
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
    np.testing.assert_allclose(
        theory.effective_weights_groups(theory.group_counts(sizes, event, member, limit, reading)), c, atol=1e-14
    )


def test_large_groups_against_scipy():
    sizes, member = [900, 1500], np.array([0.3, 0.002])
    for size, count in zip(sizes, theory.group_counts(sizes, np.array([0.7, 1.0]), member), strict=True):
        event, inside = (0.7, 0.3) if size == 900 else (1.0, 0.002)
        expected = event * stats.binom.pmf(np.arange(size + 1), size, inside)
        expected[0] += 1 - event
        np.testing.assert_allclose(count, expected, rtol=1e-9, atol=1e-30)
    assert theory.group_counts([10**6], np.array([1.0]), 0.3)[0].sum() == pytest.approx(1, abs=1e-14)
    always = theory.group_counts([1500], np.array([1.0]), 1.0)[0]
    assert (always[-1], always[:-1].max()) == (1.0, 0.0)


def test_the_population_of_groups_has_the_means_of_its_members():
    rng = np.random.default_rng(0)
    classes, histogram = rng.dirichlet(np.ones(3), 7), rng.integers(0, 9, (7, 3))
    unit = np.array([2, 0, 1, 0, 2, 2, 1])
    pooled = Population(7, classes=classes, histogram=histogram).pooled(unit, 3)
    for u in range(3):
        mine = [i for i in range(7) if unit[i] == u]
        assert pooled.classes[u] == pytest.approx(sum(classes[i] for i in mine) / len(mine), rel=1e-15)
        assert pooled.histogram[u].tolist() == sum(histogram[i] for i in mine).tolist()


def test_weights_of_any_size_have_their_proportions():
    for size in (5e-324, 1e-320, 1.0, 8e307):
        found = theory.normalised(size * np.array([1.0, 2.0, 1.0]))
        assert found == pytest.approx([0.25, 0.5, 0.25])


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


@pytest.mark.parametrize(("N", "R"), [(N, R) for N in (4, 5) for R in range(N)])
def test_stationary_separation_is_the_enumerated_one(N, R):
    p = np.arange(1, N + 1) ** -1.5
    expected = brute_separation(p, R)
    np.testing.assert_allclose(minimum_separation.stationary_separation(p, R), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("N", "R", "B"), [(5, 0, 2), (6, 1, 2), (6, 2, 2), (7, 1, 3), (6, 0, 4)])
def test_stationary_separation_of_sets_is_the_enumerated_one(N, R, B):
    p = np.array([5.0, 1.0, 0.2, 0.7, 2.0, 0.05, 1.5])[:N]
    expected = brute_separation(p, R, B)
    np.testing.assert_allclose(minimum_separation.stationary_separation(p, R, B), expected, rtol=0, atol=1e-12)


def test_stationary_separation_by_hand():
    p = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(minimum_separation.stationary_separation(p, 0), p, rtol=1e-14)
    # Two consecutive draws are {0,1}, {0,2}, {1,2} with weights 0.15, 0.10, 0.06.
    np.testing.assert_allclose(minimum_separation.stationary_separation(p, 1), np.array([25, 21, 16]) / 62, rtol=1e-13)
    assert minimum_separation.stationary_separation(p, 2).tolist() == [1 / 3] * 3
    assert minimum_separation.stationary_separation(np.array([0.9, 0.1]), 1).tolist() == [0.5, 0.5]
    assert minimum_separation.stationary_separation(np.array([0.5, 0.0, 0.5]), 1).tolist() == [0.5, 0.0, 0.5]
