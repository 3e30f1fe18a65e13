"""Minibatches: epochs, ragged ends, and no dependence on who was asked before; the rows of clients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from keys import keyed

from rollcall.tasks import Minibatches, quadratic
from rollcall.tasks.base import Holdings
from rollcall.tasks.streams import stream, streams

PARTS = [np.array([10, 11, 12, 13, 14, 15, 16]), np.array([3]), np.array([20, 21, 22, 23])]


def test_the_order_of_an_epoch_is_that_of_its_key():
    batches = Minibatches(PARTS, 3, seed=5)
    for client, epoch, sizes in ((0, 0, [3, 3, 1]), (0, 2, [3, 3, 1]), (2, 1, [3, 1])):
        seen = [batches.rows(client, len(sizes) * epoch + step) for step in range(len(sizes))]
        assert [len(rows) for rows in seen] == sizes
        assert np.concatenate(seen).tolist() == keyed(5, "minibatch", client, epoch).permutation(PARTS[client]).tolist()


def test_a_small_client_sees_all_it_has():
    batches = Minibatches(PARTS, 3, seed=1)
    assert [batches.rows(1, step).tolist() for step in range(3)] == [[3], [3], [3]]
    batches = Minibatches(PARTS, 4, seed=1)
    assert [batches.rows(2, step).tolist() for step in range(3)] == [[20, 21, 22, 23]] * 3
    whole = Minibatches(PARTS, "full", seed=1)
    assert [whole.rows(client, 5).tolist() for client in range(3)] == [part.tolist() for part in PARTS]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=1, max_size=30), st.integers(1, 8))
def test_a_step_is_the_same_whatever_was_asked_before(asked, size):
    used = Minibatches(PARTS, size, seed=3)
    for client, step in asked:
        assert np.array_equal(used.rows(client, step), Minibatches(PARTS, size, seed=3).rows(client, step))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=1, max_size=5),
    st.one_of(st.integers(1, 8), st.just("full")),
    st.sampled_from(["keep", "drop"]),
    st.integers(1, 9),
)
def test_stacked_minibatches_are_those_of_each_step(asked, size, last, steps):
    batches = Minibatches(PARTS, size, seed=3, last=last)
    rows, lengths = batches.stacked([client for client, _ in asked], [first for _, first in asked], steps)
    assert rows.shape == (steps, len(asked), lengths.max())
    for i, (client, first) in enumerate(asked):
        for k in range(steps):
            expected = batches.rows(client, first + k).tolist()
            assert lengths[k, i] == len(expected)
            assert rows[k, i].tolist() == expected + expected[:1] * (rows.shape[2] - len(expected))


def test_dropped_batches():
    parts = [np.arange(7), np.array([20]), np.arange(10, 14)]
    batches = Minibatches(parts, 3, seed=1, last="drop")
    assert batches.per_epoch.tolist() == [2, 1, 1]
    for epoch in range(3):
        seen = [batches.rows(0, 2 * epoch + step) for step in range(2)]
        assert [len(rows) for rows in seen] == [3, 3]
        assert len(set(np.concatenate(seen))) == 6
    assert batches.rows(1, 5).tolist() == [20]  # less than a batch is kept
    whole = Minibatches(parts, 3, seed=1)
    assert batches.rows(0, 1).tolist() == whole.rows(0, 1).tolist()
    assert batches.rows(0, 2).tolist() == whole.rows(0, 3).tolist()  # the next epoch begins a step earlier
    assert batches.mean.tolist() == [3, 1, 3]
    assert whole.mean == pytest.approx([7 / 3, 1, 2])


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**40])
def test_many_generators_are_those_of_single_keys(seed):
    keys = np.random.default_rng(0).integers(0, 2**31, (6, 2))
    keys[0], keys[1] = 0, (2**32 - 1, 5)
    for generator, key in zip(streams(seed, "minibatch", keys), keys.tolist(), strict=True):
        assert np.array_equal(generator.permutation(1000), stream(seed, "minibatch", *key).permutation(1000))


HELD = [np.array([4, 0, 2]), np.array([5]), np.array([3, 1])]


def order(loader):
    return torch.cat([targets for targets, _ in loader])[:, 0].tolist()


def test_each_epoch_has_its_own_order():
    loaders = [quadratic(seed, targets=torch.arange(100.0).numpy())[1].train_dataloader() for seed in (0, 0, 1)]
    first, again, other = ([order(loader) for _ in range(3)] for loader in loaders)
    assert [sorted(epoch) for epoch in first] == [list(range(100))] * 3
    assert len({tuple(epoch) for epoch in [*first, *other, list(range(100))]}) == 7
    assert first == again


def test_a_client_s_rows_are_those_given():
    held = Holdings.of(HELD)
    assert [rows.tolist() for rows in held] == [part.tolist() for part in HELD]
    assert [held[i].tolist() for i in (2, -1, 0)] == [[3, 1], [3, 1], [4, 0, 2]]
    assert len(held) == 3
    assert held.sizes.tolist() == [3, 1, 2]
    assert Holdings.of(held) is held
    with pytest.raises(IndexError):
        held[3]


def test_every_row_has_its_owner():
    assert Holdings.of(HELD).owners().tolist() == [0, 2, 0, 2, 0, 1]


def test_padded_rows_repeat_the_first():
    holdings = Holdings.of([np.array([4, 7]), np.array([1]), np.array([9, 8, 3])])
    assert holdings.padded(np.array([2, 0, 1]), 3).tolist() == [[9, 8, 3], [4, 7, 4], [1, 1, 1]]
    assert holdings.padded(np.array([2]), 2).tolist() == [[9, 8]]
