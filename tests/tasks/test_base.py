"""The order of samples in central training."""

import torch

from rollcall.tasks import quadratic


def order(loader):
    return torch.cat([targets for targets, _ in loader])[:, 0].tolist()


def test_each_epoch_has_its_own_order():
    loaders = [quadratic(seed, targets=torch.arange(100.0).numpy())[1].train_dataloader() for seed in (0, 0, 1)]
    first, again, other = ([order(loader) for _ in range(3)] for loader in loaders)
    assert [sorted(epoch) for epoch in first] == [list(range(100))] * 3
    assert len({tuple(epoch) for epoch in [*first, *other, list(range(100))]}) == 7
    assert first == again
