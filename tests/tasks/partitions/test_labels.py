"""Partitions by label, against what can be read off the labels."""

import numpy as np
import pytest
from scipy.stats import chisquare

from rollcall.tasks.partitions import by_label, shards

LABELS = np.random.default_rng(1).permutation(np.repeat(np.arange(4), [400, 100, 50, 250]))


def test_shards_are_runs_of_the_samples_in_the_order_of_their_labels():
    parts = shards(LABELS, 10, 3, each=4)
    place = np.empty(800, dtype=int)  # of each sample among those sorted by label, then by position
    place[sorted(range(800), key=lambda row: (LABELS[row], row))] = range(800)
    seen = []
    for client, rows in enumerate(parts.rows):
        assert len(rows) == 80
        for run in place[rows].reshape(4, 20):
            assert run[0] % 20 == 0
            assert run.tolist() == list(range(run[0], run[0] + 20))
            seen.append(run[0] // 20)
        assert parts.classes[client].tolist() == [(LABELS[rows] == c).mean() for c in range(4)]
    assert sorted(seen) == list(range(40))


def test_two_shards_of_a_balanced_set_are_two_labels_at_most():
    labels = np.tile(np.arange(10), 60)
    held = [len(np.unique(labels[rows])) for rows in shards(labels, 20, 0).rows]
    assert set(held) == {1, 2}


def test_shards_are_dealt_at_random():
    labels = np.repeat(np.arange(10), 3)
    owners = np.zeros((10, 5))
    for seed in range(300):
        for client, rows in enumerate(shards(labels, 5, seed).rows):
            owners[labels[rows[[0, 3]]], client] += 1
    assert all(chisquare(counts).pvalue > 1e-3 for counts in owners)


def test_groups_hold_one_label_each():
    parts = by_label(LABELS, 10, 0, sizes=[3, 4, 3])
    sizes = [134, 133, 133, 25, 25, 25, 25, 17, 17, 16]
    assert [len(rows) for rows in parts.rows] == sizes
    for client, rows in enumerate(parts.rows):
        label = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2][client]
        assert (LABELS[rows] == label).all()
        assert parts.classes[client].tolist() == [float(c == label) for c in range(4)]
    # Label 3 is nobody's, all else is somebody's.
    assert np.array_equal(np.sort(np.concatenate(parts.rows)), np.flatnonzero(LABELS < 3))


def test_groups_may_name_their_labels_and_share_them():
    parts = by_label(LABELS, 5, 0, sizes=[2, 2, 1], only=[3, 1, 3])
    assert [len(rows) for rows in parts.rows] == [84, 83, 50, 50, 83]
    assert np.array_equal(np.sort(np.concatenate(parts.rows)), np.flatnonzero(LABELS % 2))
    assert [np.unique(LABELS[rows]).tolist() for rows in parts.rows] == [[3], [3], [1], [1], [3]]


@pytest.mark.parametrize(
    ("partition", "options", "complaint"),
    [
        (shards, {"each": 0}, r"partition.each: 0 .*at least 1"),
        (shards, {"each": 100}, r"clients: 10 is not allowed; must be at most 8 .*100 for each"),
        (by_label, {"sizes": [3, 3, 3]}, r"partition.sizes: \[3, 3, 3\] .*add up to 10"),
        (by_label, {"sizes": [11, -1]}, r"partition.sizes: \[11, -1\] .*from 1"),
        (by_label, {"sizes": []}, r"partition.sizes: \[\] "),
        (by_label, {"sizes": [5, 5], "only": [1]}, r"partition.only: \[1\] .*2 labels"),
        (
            by_label,
            {"sizes": [5, 5], "only": [1, 7]},
            r"partition.sizes: .*5 clients are to hold label 7, .* 0 samples",
        ),
    ],
)
def test_what_cannot_be_is_refused(partition, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        partition(LABELS, 10, 0, **options)
