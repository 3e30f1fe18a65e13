"""The order of samples in central training, and the rows of clients."""

import numpy as np
import pytest
import torch

from rollcall.tasks import quadratic
from rollcall.tasks.base import Holdings

PARTS = [np.array([4, 0, 2]), np.array([5]), np.array([3, 1])]


def order(loader):
    return torch.cat([targets for targets, _ in loader])[:, 0].tolist()


def test_each_epoch_has_its_own_order():
    loaders = [quadratic(seed, targets=torch.arange(100.0).numpy())[1].train_dataloader() for seed in (0, 0, 1)]
    first, again, other = ([order(loader) for _ in range(3)] for loader in loaders)
    assert [sorted(epoch) for epoch in first] == [list(range(100))] * 3
    assert len({tuple(epoch) for epoch in [*first, *other, list(range(100))]}) == 7
    assert first == again


def test_a_client_s_rows_are_those_given():
    held = Holdings.of(PARTS)
    assert [rows.tolist() for rows in held] == [part.tolist() for part in PARTS]
    assert [held[i].tolist() for i in (2, -1, 0)] == [[3, 1], [3, 1], [4, 0, 2]]
    assert [rows.tolist() for rows in held[1:]] == [[5], [3, 1]]
    assert len(held) == 3
    assert held.sizes.tolist() == [3, 1, 2]
    assert Holdings.of(held) is held
    with pytest.raises(IndexError):
        held[3]


def test_every_row_has_its_owner():
    assert Holdings.of(PARTS).owners().tolist() == [0, 2, 0, 2, 0, 1]


def test_padded_rows_repeat_the_first():
    holdings = Holdings.of([np.array([4, 7]), np.array([1]), np.array([9, 8, 3])])
    assert holdings.padded(np.array([2, 0, 1]), 3).tolist() == [[9, 8, 3], [4, 7, 4], [1, 1, 1]]
    assert holdings.padded(np.array([2]), 2).tolist() == [[9, 8]]
