"""Stacked minibatches against the feed, and against numbers by hand."""

import numpy as np
import pytest
import torch
from engine_rigs import rigs

from benchmark.engines import Feed
from benchmark.engines.stacked_minibatches import stack_minibatches
from tasks import Minibatches, ridge


@pytest.mark.parametrize("per", ["sample", "minibatch"])
def test_a_deal_is_what_the_feed_gives_bit_for_bit(per):
    sequential, vectorised, _ = rigs(per=per)
    feed, clients, first = sequential.engine.feed, torch.tensor([5, 0, 2]), 7
    rows = [[feed.minibatches.rows(client, first + k) for k in range(4)] for client in clients.tolist()]
    dealt = stack_minibatches(vectorised.engine.feed, clients, [first] * 3, rows, torch.float64)
    seen = 0
    for k in range(4):
        batch, weights = dealt.padded(k)
        for row, client in enumerate(clients.tolist()):
            expected = feed.batch(client, first + k)
            n = len(expected[0])
            for column, theirs in zip(batch, expected, strict=True):
                assert torch.equal(column[row, :n], theirs)
            assert weights[row].tolist() == [1 / n] * n + [0.0] * (16 - n)
            seen += n < 16
        for members, alike in dealt.by_length(k):
            for i, row in enumerate(members.tolist()):
                expected = feed.batch(clients[row].item(), first + k)
                assert all(torch.equal(column[i], theirs) for column, theirs in zip(alike, expected, strict=True))
    assert 4 < seen < 12


def test_full_batches_are_dealt_once_a_round():
    task, data = ridge(0, clients=3, samples=7, dimension=2)
    parts = [np.arange(3), np.arange(3, 10), np.arange(10, 21)]
    feed = Feed(task.double(), data.splits["train"], Minibatches(parts, "full", seed=0))
    clients = torch.tensor([2, 0])
    dealt = stack_minibatches(feed, clients, [7, 7], [[parts[i]] * 4 for i in (2, 0)], torch.float64)
    assert all(len(column) == 4 and column.stride(0) == 0 for column in dealt.samples)
    for k in range(4):
        batch, weights = dealt.padded(k)
        assert dealt.lengths[k].tolist() == [11, 3]
        assert weights.tolist() == [[1 / 11] * 11, [1 / 3] * 3 + [0.0] * 8]
        for row, client in enumerate((2, 0)):
            for column, given in zip(batch, data.splits["train"], strict=True):
                assert torch.equal(column[row, : len(parts[client])], given[parts[client]])
