"""Stacked minibatches against the feed, and against numbers by hand."""

import numpy as np
import pytest
import torch
from engine_rigs import rigs

from rollcall.benchmark.engines import Feed
from rollcall.benchmark.engines.feed import stack_minibatches
from rollcall.tasks import Minibatches, ridge


@pytest.mark.parametrize("per", ["sample", "minibatch"])
def test_stacked_minibatches_are_those_of_the_feed_bit_for_bit(per):
    sequential, vectorised, _ = rigs(per=per)
    feed, clients, first = sequential.engine.feed, torch.tensor([5, 0, 2]), 7
    stacked = stack_minibatches(vectorised.engine.feed, clients, clients.tolist(), [first] * 3, 4, torch.float64)
    short = 0
    for k in range(4):
        batch, weights = [column[k] for column in stacked.samples], stacked.weights[k]
        for row, client in enumerate(clients.tolist()):
            expected = feed.batch(client, first + k)
            n = len(expected[0])
            for column, values in zip(batch, expected, strict=True):
                assert torch.equal(column[row, :n], values)
            assert weights[row].tolist() == [1 / n] * n + [0.0] * (16 - n)
            short += n < 16
        for members, alike in stacked.by_length(k):
            for i, row in enumerate(members.tolist()):
                expected = feed.batch(clients[row].item(), first + k)
                assert all(torch.equal(column[i], values) for column, values in zip(alike, expected, strict=True))
    assert 4 < short < 12


def test_full_batches_are_gathered_once_a_round():
    task, data = ridge(0, clients=3, samples=7, dimension=2)
    parts = [np.arange(3), np.arange(3, 10), np.arange(10, 21)]
    feed = Feed(task.double(), data.splits["train"], Minibatches(parts, "full", seed=0))
    stacked = stack_minibatches(feed, torch.tensor([2, 0]), [2, 0], [7, 7], 4, torch.float64)
    assert all(len(column) == 4 and column.stride(0) == 0 for column in stacked.samples)
    for k in range(4):
        assert stacked.lengths[k].tolist() == [11, 3]
        assert stacked.weights[k].tolist() == [[1 / 11] * 11, [1 / 3] * 3 + [0.0] * 8]
        for row, client in enumerate((2, 0)):
            for column, samples in zip(stacked.samples, data.splits["train"], strict=True):
                assert torch.equal(column[k, row, : len(parts[client])], samples[parts[client]])
