"""Partitions: disjoint, of the right sizes and laws, and determined by the seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keys import keyed

from rollcall.tasks.partitions import (
    PARTITIONS,
    _equal,
    _proportional,
    by_label,
    dirichlet,
    dirichlet_by_class,
    from_file,
    iid,
    rows_of,
    shards,
)

SHARE = np.array([0.5, 0.125, 0.0625, 0.3125])
LABELS = np.random.default_rng(1).permutation(np.repeat(np.arange(4), [400, 100, 50, 250]))
SEEDED = {
    "iid": {},
    "dirichlet": {"alpha": 1.0},
    "dirichlet_by_class": {"alpha": 1.0},
    "shards": {},
    "by_label": {"sizes": [2, 1, 1, 1]},
}


def shared_out(parts):
    return np.sort(np.concatenate(parts.rows))


def histogram(parts, labels):
    return np.array([np.bincount(labels[rows], minlength=labels.max() + 1) for rows in parts.rows])


@pytest.mark.parametrize("name", SEEDED)
def test_partitions_follow_the_seed(name):
    one, same, other = (PARTITIONS[name](LABELS, 5, seed, **SEEDED[name]) for seed in (7, 7, 8))
    assert all(map(np.array_equal, one.rows, same.rows))
    assert np.array_equal(one.classes, same.classes)
    assert not all(map(np.array_equal, one.rows, other.rows))
    for parts in (one, other):
        dealt = shared_out(parts)
        assert (np.diff(dealt) > 0).all()
        assert parts.classes.shape == (5, 4)


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
@given(st.integers(1, 12), st.integers(0, 2**32), st.floats(0.5, 50))
def test_dirichlet_shares_each_class_in_proportion(clients, seed, alpha):
    parts = dirichlet(LABELS, clients, seed, alpha=alpha)
    assert np.array_equal(shared_out(parts), np.arange(800))
    assert np.allclose(parts.classes.sum(axis=1), 1)
    for c in range(4):
        size = (LABELS == c).sum()
        due = parts.classes[:, c] / parts.classes[:, c].sum() * size
        got = [(LABELS[rows] == c).sum() for rows in parts.rows]
        assert np.abs(got - due).max() <= 1  # each end of a share is rounded once


@pytest.mark.parametrize("volumes", ["proportional", "equal"])
def test_dirichlet_draws_from_its_law(volumes):
    # Var of one coordinate of Dirichlet(alpha 1_C) is (C - 1) / (C^2 (C alpha + 1)).
    alpha, C, n = 0.5, 4, 2000
    labels = np.tile(np.arange(C), 4 * n)
    nu = np.concatenate([dirichlet(labels, n, seed, alpha=alpha, volumes=volumes).classes for seed in range(3)])
    assert nu.mean(axis=0) == pytest.approx(np.full(C, 1 / C), abs=0.012)
    assert nu.var(axis=0) == pytest.approx(np.full(C, (C - 1) / (C**2 * (C * alpha + 1))), rel=0.07)


def one_by_one(nu, left, size, draw):
    """Equal volumes sample by sample: a class that is used up is drawn from no more. [m, C]"""
    left, counts = left.copy(), np.zeros(nu.shape, dtype=int)
    for client in draw.permutation(len(nu)):
        for _ in range(size):
            law = nu[client] * (left > 0)
            law = law if law.any() else left.astype(float)
            c = np.searchsorted(np.cumsum(law) / law.sum(), draw.random(), side="right")
            counts[client, c] += 1
            left[c] -= 1
    return counts


def test_equal_volumes_follow_the_law_of_drawing_sample_by_sample():
    sizes, alpha = [8, 5, 5], 0.4
    labels = np.repeat(np.arange(3), sizes)
    draw = np.random.default_rng(0)
    seeds, repeats, clients = 80, 25, 3
    score, variance = 0.0, 0.0
    for seed in range(seeds):
        parts = dirichlet(labels, clients, seed, alpha=alpha, volumes="equal")
        nu = parts.classes

        def statistics(held, nu=nu):
            # What each client has of what it wants; what those who want a class have of each.
            return np.concatenate([(nu * held).ravel(), (nu.T @ held).ravel()])

        size = len(labels) // clients
        others = np.array([statistics(one_by_one(nu, np.array(sizes), size, draw)) for _ in range(repeats)])
        score += statistics(histogram(parts, labels)) - others.mean(axis=0)
        variance += others.var(axis=0, ddof=1) * (1 + 1 / repeats)
    assert (np.abs(score) < 3.5 * np.sqrt(variance) + 1e-9).all()


def test_a_client_whose_classes_are_used_up_draws_from_all_samples_that_are_left():
    """It wants the two samples of class 0 only; its other 48 are of the 98 left, of which 8 are of class 2."""
    labels, law = np.repeat([0, 1, 2], [2, 90, 8]), np.eye(3)[[0, 0]]
    held = [[labels[mine] for mine in _equal(labels, law, np.random.default_rng(seed))] for seed in range(60)]
    first = [next(mine for mine in both if (mine == 0).any()) for both in held]
    assert {(mine == 0).sum() for mine in first} == {2}
    assert np.mean([(mine == 2).sum() for mine in first]) == pytest.approx(48 * 8 / 98, abs=0.8)


def test_by_class_draws_proportions_over_clients():
    # A client's share of a class is Beta(alpha, (m - 1) alpha); shares of two classes are independent.
    alpha, m, C = 0.5, 4, 5
    labels = np.repeat(np.arange(C), 2000)
    shares = np.array([histogram(dirichlet_by_class(labels, m, s, alpha=alpha), labels) / 2000 for s in range(400)])
    assert shares.mean(axis=(0, 2)) == pytest.approx(np.full(m, 1 / m), abs=0.03)
    assert shares.var(axis=(0, 2)) == pytest.approx(np.full(m, (m - 1) / (m**2 * (m * alpha + 1))), rel=0.12)
    between = np.corrcoef(shares[:, 0].T)[np.triu_indices(C, 1)]
    assert np.abs(between).max() < 4 / 20


def test_by_class_a_client_s_distribution_is_that_of_its_expected_samples():
    q = keyed(7, "partition", 0).dirichlet([2.0] * 5, size=4)
    due = [[n * q[c, i] for c, n in enumerate((400, 100, 50, 250))] for i in range(5)]
    parts = dirichlet_by_class(LABELS, 5, 7, alpha=2.0)
    assert np.abs(histogram(parts, LABELS) - due).max() <= 1
    assert parts.classes == pytest.approx(np.array([[n / sum(row) for n in row] for row in due]))


@pytest.mark.parametrize("partition", [dirichlet, dirichlet_by_class])
def test_draws_that_leave_a_client_too_small_are_repeated(partition):
    minimum, options = 25, {"alpha": 0.5}
    sizes = [min(map(len, partition(LABELS, 8, seed, **options).rows)) for seed in range(20)]
    assert min(sizes) < minimum < max(sizes)
    for seed, size in enumerate(sizes):
        first, large = (partition(LABELS, 8, seed, **options, minimum=least) for least in (1, minimum))
        assert min(map(len, large.rows)) >= minimum
        # The first draw stands if it will do.
        assert all(map(np.array_equal, first.rows, large.rows)) == (size >= minimum)


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


CLIENTS = [1, 0, -1, 1, 0, 2]


def test_the_rows_of_each_owner():
    rows = rows_of(np.array([3, 0, -1, 3, 1, 0, -2]), 5)
    assert [mine.tolist() for mine in rows] == [[1, 5], [4], [], [0, 3], []]


def test_rows_go_to_the_clients_that_the_file_names():
    parts = from_file(np.array([0, 1, 1, 0, 2, 2]), 3, 0, assignment=np.array(CLIENTS))
    assert [rows.tolist() for rows in parts.rows] == [[1, 4], [0, 3], [5]]  # row 2 is nobody's
    assert parts.classes.tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]]


ALPHA = {"alpha": 0.5}
SIX = {"labels": np.array([0, 1, 1, 0, 2, 2]), "clients": 3}


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("iid", {"clients": 900}, "clients: 900 is not allowed; must be at most 800 with 800 training samples"),
        ("dirichlet", {"alpha": 0.01, "clients": 700}, r"alpha: 0.01 with 700.*client \d+ \(seed 0\) with 0 samp"),
        ("dirichlet", {"alpha": -1.0}, r"partition.alpha: -1.0 .*greater than 0"),
        ("dirichlet_by_class", ALPHA | {"clients": 9, "minimum": 100}, r"clients: 9 .* at most 8 with 800 .*, 100 for"),
        ("by_label", {"sizes": [3, 3, 3]}, r"partition.sizes: \[3, 3, 3\] .*add up to 4"),
        ("by_label", {"sizes": [1, 1, 1, 1, 2], "clients": 6}, r"partition.sizes: .*2 clients are to hold label 4, .* 0 samples"),
        ("from_file", SIX | {"assignment": [0, 1, 2]}, r"assignment: int64 of shape \(3,\) .*must be 6 whole numbers"),
        ("from_file", SIX | {"assignment": [0, 1, 2, 3, 0, 0]}, r"assignment: client 3 of sample 3 .*\[-1, 2\]"),
        ("from_file", SIX | {"assignment": [0, 1, 2, 0, 0, -2]}, r"assignment: client -2 of sample 5 .*\[-1, 2\]"),
        ("from_file", SIX | {"assignment": [0, 1, 2, 0, 0, 0.5]}, r"assignment: float64 of .* must be 6 whole numbers"),
        ("from_file", SIX | {"assignment": [0, 1, 2, 0, 0, np.nan]}, "assignment: float64 of .* must be 6 whole numbers"),
    ],
)  # fmt: skip
def test_impossible_partitions_are_refused(name, options, complaint):
    settings = {"labels": LABELS, "clients": 4, "seed": 0} | options
    if name == "from_file":
        settings["assignment"] = np.array(settings["assignment"])
    with pytest.raises(ValueError, match=complaint):
        PARTITIONS[name](**settings)


def test_the_ends_of_the_parts_of_a_class_are_rounded():
    """Of three samples, 0.55 and 0.45 are due 1.65 and 1.35: two and one, not one and two."""
    (first, second) = _proportional(np.zeros(3, np.int64), np.array([[0.55], [0.45]]), np.random.default_rng(0))
    assert (len(first), len(second)) == (2, 1)


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
