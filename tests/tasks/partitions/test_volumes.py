"""Partitions blind to labels: disjoint, of the right sizes, random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from rollcall.tasks.partitions import by_sizes, iid, natural

SHARE = np.array([0.5, 0.125, 0.0625, 0.3125])
LABELS = np.random.default_rng(1).permutation(np.repeat(np.arange(4), [400, 100, 50, 250]))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 2**32))
def test_iid_deals_everything_out_in_equal_hands(clients, seed):
    parts = iid(LABELS, clients, seed)
    assert np.array_equal(np.sort(np.concatenate(parts.rows)), np.arange(800))
    sizes = [len(rows) for rows in parts.rows]
    assert len(sizes) == clients
    assert max(sizes) - min(sizes) <= 1
    assert np.allclose(parts.classes, SHARE)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(0, 2**32))
def test_sizes_are_as_given(sizes, seed):
    parts = by_sizes(LABELS, len(sizes), seed, sizes=np.array(sizes))
    assert [len(rows) for rows in parts.rows] == sizes
    dealt = np.concatenate(parts.rows)
    assert len(set(dealt.tolist())) == sum(sizes)
    assert np.allclose(parts.classes, SHARE)


@pytest.mark.parametrize(
    "partition", [iid, lambda labels, m, seed: by_sizes(labels, m, seed, sizes=np.array([200, 300, 100])), natural]
)
def test_every_sample_is_as_likely_to_go_anywhere(partition):
    # The classes of a random hand of n_i out of n are hypergeometric; over seeds the counts add up.
    held, due = np.zeros((3, 4)), np.zeros((3, 4))
    for seed in range(100):
        for client, rows in enumerate(partition(LABELS, 3, seed).rows):
            held[client] += np.bincount(LABELS[rows], minlength=4)
            due[client] += len(rows) * SHARE
    # Hands are drawn without replacement, which only makes the statistic smaller.
    assert all(chisquare(mine, should).pvalue > 1e-3 for mine, should in zip(held, due, strict=True))


def test_natural_sizes_are_lognormal():
    labels = np.zeros(10**6, dtype=np.int64)
    sizes = np.array([len(rows) for rows in natural(labels, 2000, 0, mean=8.0, sigma=0.7, offset=0).rows])
    assert sizes.sum() == 10**6
    assert np.log(sizes).std() == pytest.approx(0.7, rel=4 / 4000**0.5)
    # The offset pulls sizes together: sd e^4.125 sqrt(e^0.25 - 1) over mean e^4.125 - 1/2 + 50.
    sizes = np.array([len(rows) for rows in natural(labels, 2000, 0, sigma=0.5).rows])
    assert sizes.std() / sizes.mean() == pytest.approx(32.98 / (61.87 - 0.5 + 50), rel=0.08)


def test_natural_sizes_are_in_proportion_to_whole_numbers():
    sizes = np.array([len(rows) for rows in natural(np.zeros(10**6), 60, 0, mean=1.0, sigma=1.0, offset=1).rows])
    weights = sizes / sizes.min()  # the smallest is 0 + 1
    assert weights == pytest.approx(np.rint(weights), abs=0.05)
    assert len(set(np.rint(weights))) > 5


def test_natural_sizes_can_have_a_floor():
    sizes = [min(len(rows) for rows in natural(LABELS, 10, seed, minimum=15).rows) for seed in range(10)]
    assert min(sizes) >= 15
    assert min(min(len(rows) for rows in natural(LABELS, 10, seed).rows) for seed in range(10)) < 15


@pytest.mark.parametrize(
    ("partition", "options", "complaint"),
    [
        (iid, {}, "clients: 900 is not allowed; must be at most 800 with 800 training samples"),
        (natural, {}, "clients: 900 is not allowed; must be at most 800"),
        (natural, {"sigma": -1.0}, r"partition.sigma: -1.0 .*at least 0"),
        (natural, {"offset": -1}, r"partition.offset: -1 .*at least 0"),
        (natural, {"offset": 0, "mean": -10.0}, r"partition.mean: -10.0 .*with offset 0; all clients would be empty"),
        (natural, {"offset": 0, "minimum": 190}, r"partition.offset: 0 with 4 clients .*client \d .*less than 190"),
        (by_sizes, {"sizes": np.array([1, 2, 3])}, r"partition.sizes: int64 of shape \(3,\) .*must be 4 whole"),
        (by_sizes, {"sizes": np.array([1, 2, 3, 0.5])}, r"partition.sizes: float64 of shape \(4,\) .*must be 4 whole"),
        (by_sizes, {"sizes": np.array([1, 2, 0, 3])}, r"partition.sizes: 0 of client 2 .*at least 1"),
        (by_sizes, {"sizes": np.array([1, 2, 300, 498])}, r"partition.sizes: a sum of 801 .*at most 800"),
    ],
)
def test_what_cannot_be_is_refused(partition, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        partition(LABELS, 900 if complaint.startswith("clients") else 4, 0, **options)
