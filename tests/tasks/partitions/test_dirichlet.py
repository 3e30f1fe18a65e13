"""Dirichlet partitions: disjoint, complete, of the right sizes and laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollcall.tasks.partitions import dirichlet, dirichlet_by_class

LABELS = np.random.default_rng(1).permutation(np.repeat(np.arange(4), [400, 100, 50, 250]))


def shared_out(parts):
    return np.sort(np.concatenate(parts.rows))


def histogram(parts, labels):
    return np.array([np.bincount(labels[rows], minlength=labels.max() + 1) for rows in parts.rows])


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


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 2**32), st.floats(0.005, 50))
def test_equal_volumes_are_equal_and_deal_everything(clients, seed, alpha):
    parts = dirichlet(LABELS, clients, seed, alpha=alpha, volumes="equal")
    assert np.array_equal(shared_out(parts), np.arange(800))
    assert {len(rows) for rows in parts.rows} <= {800 // clients, -(-800 // clients)}


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


@pytest.mark.parametrize(("sizes", "alpha"), [([8, 5, 5], 0.4), ([28, 4, 4], 1e-4)])
def test_equal_volumes_follow_the_law_of_drawing_sample_by_sample(sizes, alpha):
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


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32), st.floats(0.5, 50))
def test_by_class_shares_everything_and_knows_what_is_due(clients, seed, alpha):
    parts = dirichlet_by_class(LABELS, clients, seed, alpha=alpha)
    assert np.array_equal(shared_out(parts), np.arange(800))
    assert np.allclose(parts.classes.sum(axis=1), 1)
    held = histogram(parts, LABELS)
    # nu comes from dues that differ from what is held by the rounding of four ends each.
    off = np.abs(held - parts.classes * held.sum(axis=1, keepdims=True))
    assert off.max() <= 5


def test_by_class_draws_proportions_over_clients():
    # A client's share of a class is Beta(alpha, (m - 1) alpha); shares of two classes are independent.
    alpha, m, C = 0.5, 4, 5
    labels = np.repeat(np.arange(C), 2000)
    shares = np.array([histogram(dirichlet_by_class(labels, m, s, alpha=alpha), labels) / 2000 for s in range(400)])
    assert shares.mean(axis=(0, 2)) == pytest.approx(np.full(m, 1 / m), abs=0.03)
    assert shares.var(axis=(0, 2)) == pytest.approx(np.full(m, (m - 1) / (m**2 * (m * alpha + 1))), rel=0.12)
    between = np.corrcoef(shares[:, 0].T)[np.triu_indices(C, 1)]
    assert np.abs(between).max() < 4 / 20


@pytest.mark.parametrize("partition", [dirichlet, dirichlet_by_class])
def test_draws_that_leave_a_client_too_small_are_repeated(partition):
    minimum = 25
    sizes = [min(map(len, partition(LABELS, 8, seed, alpha=0.5).rows)) for seed in range(20)]
    assert min(sizes) < minimum < max(sizes)
    for seed, size in enumerate(sizes):
        first, large = (partition(LABELS, 8, seed, alpha=0.5, minimum=least) for least in (1, minimum))
        assert min(map(len, large.rows)) >= minimum
        # The first draw stands if it will do.
        assert all(map(np.array_equal, first.rows, large.rows)) == (size >= minimum)


@pytest.mark.parametrize("partition", [dirichlet, dirichlet_by_class])
def test_clients_without_samples_are_refused(partition):
    with pytest.raises(ValueError, match=r"partition.alpha: 0.01 with 700 clients.*client \d+ \(seed 0\) with 0 samp"):
        partition(LABELS, 700, 0, alpha=0.01)
    with pytest.raises(ValueError, match=r"partition.alpha: 0.5 with 4 clients.*client \d \(seed 0\).*less than 200"):
        partition(LABELS, 4, 0, alpha=0.5, minimum=200)
    with pytest.raises(ValueError, match=r"partition.alpha: -1.0 .*greater than 0"):
        partition(LABELS, 5, 0, alpha=-1.0)
    with pytest.raises(ValueError, match=r"partition.minimum: 0 .*at least 1"):
        partition(LABELS, 5, 0, alpha=1.0, minimum=0)
    with pytest.raises(ValueError, match=r"clients: 9 is not allowed; must be at most 8 with 800 .*, 100 for each"):
        partition(LABELS, 9, 0, alpha=1.0, minimum=100)


def test_the_least_alpha_leaves_no_sample_behind():
    parts = dirichlet(LABELS, 2, 3, alpha=1e-5)
    assert np.array_equal(shared_out(parts), np.arange(800))
    unwanted = (parts.classes == 0).all(axis=0)
    assert unwanted.any()
    assert np.ptp(histogram(parts, LABELS)[:, unwanted], axis=0).max() <= 1  # nobody's wish: shared evenly
