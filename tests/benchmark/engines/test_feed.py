"""The feed of minibatches."""

import numpy as np
import pytest
import torch
from torch import nn

from rollcall.benchmark.engines import Feed
from rollcall.tasks import Minibatches, Task
from rollcall.tasks.images import Classification


class Plain(Task):
    def loss(self, batch):
        raise AssertionError

    metrics = loss


def test_a_task_prepares_samples_once_for_all_steps():
    """Pixels become normalised images; the loss is the same, bit for bit."""
    task = Classification(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), mean=(0.3,), std=(0.7,))
    samples = torch.arange(24, dtype=torch.uint8).reshape(6, 1, 2, 2), torch.tensor([0, 1, 1, 0, 1, 0])
    minibatches = Minibatches([np.array([0, 2, 4]), np.array([1, 3, 5])], 2, seed=0)
    feed = Feed(task, samples, minibatches)
    stacked = feed.stacked([0, 1], [3, 3], 2).samples[0]
    for k, batch in enumerate(feed.batches(1, range(3, 5))):
        rows = minibatches.rows(1, 3 + k)
        pixels = tuple(column[rows] for column in samples)
        assert torch.equal(batch[0], (pixels[0].float() / 255 - 0.3) / 0.7)
        assert torch.equal(stacked[k, 1, : len(rows)], batch[0])
        assert torch.equal(task.loss(batch), task.loss(pixels))


class Named(Plain):
    """Adds the key of each sample, as three columns."""

    def augment(self, batch, keys):
        return torch.cat([batch[0], keys.to(batch[0].dtype)], dim=1), batch[1]


@pytest.mark.parametrize("at_once", [1, 5, 8, 128])
def test_minibatches_of_several_steps_are_those_of_single_steps(at_once, monkeypatch):
    """Client 1 has seven samples in minibatches of three, so the last one of an epoch has one; by hand, in any groups."""
    monkeypatch.setattr("rollcall.benchmark.engines.feed.SAMPLES_AT_ONCE", at_once)
    samples = (torch.arange(20.0).reshape(10, 2), torch.arange(10.0))
    minibatches = Minibatches([np.array([0, 1, 2]), np.arange(3, 10)], 3, seed=0)
    feed = Feed(Named(lr=0.1), samples, minibatches)
    dealt = list(feed.batches(1, range(4, 11)))
    assert [len(y) for _, y in dealt] == [3, 1, 3, 3, 1, 3, 3]
    for step, (x, y) in enumerate(dealt, 4):
        rows = minibatches.rows(1, step)
        assert y.tolist() == rows.tolist()
        assert x.tolist() == [[2 * row, 2 * row + 1, 1, step, place] for place, row in enumerate(rows.tolist())]
