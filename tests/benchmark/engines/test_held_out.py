"""Losses on held-out samples, against a logistic regression written out."""

import numpy as np
import pytest
import torch

from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised, held_out_splits
from rollcall.tasks import ClientData, Minibatches, Task, leaf_synthetic


def test_losses_on_held_out_samples():
    task, data = leaf_synthetic(0, clients=5, validation=0.2)
    task = task.double()
    data.splits = {name: (x.double(), y) for name, (x, y) in data.splits.items()}
    minibatches = Minibatches(data.parts, 16, seed=0)
    feed = Feed(task, data.splits["train"], minibatches, held_out_splits(data, torch.device("cpu")))
    model = FlatTask(task)
    x = model.vector() + torch.tensor([[0.0], [0.3], [-0.2]], dtype=torch.float64)
    clients = torch.tensor([4, 0, 2])
    for split in ("validation", "test"):
        features, labels = data.splits[split]
        for engine in (Sequential, Vectorised):
            work = engine(model, feed, LocalTraining(1)).round(0, 0.1)
            losses = work.losses(clients, x, split)
            for row, client in enumerate(clients.tolist()):
                W, b = x[row][:600].view(10, 60), x[row][600:]
                mine = torch.from_numpy(data.owner(split) == client)
                logits = features[mine] @ W.T + b
                picked = logits[torch.arange(int(mine.sum())), labels[mine]]
                assert losses[row].item() == pytest.approx((logits.logsumexp(1) - picked).mean().item(), rel=1e-10)
            same = work.losses(clients, x[:1].expand(3, -1), split)
            assert same[0] == work.losses(clients[:1], x[:1], split)[0]
    with pytest.raises(ValueError, match="losses: 'train' is not allowed with this task; must be validation, test"):
        work.losses(clients, x, "train")


class Largest(Task):
    """Its loss cannot be computed for no samples."""

    def __init__(self):
        super().__init__(lr=0.1)
        self.x = torch.nn.Parameter(torch.zeros(1))

    def metrics(self, batch):
        return {}

    def loss(self, batch):
        return (batch[0] @ self.x).max()


def test_a_client_without_samples_has_no_loss():
    """The clients 0, 1, 2 hold the held-out samples [2], none, [3, 5]; at x = 2 the largest products are 4 and 10."""
    task, samples = Largest(), torch.tensor([[2.0], [3.0], [5.0]])
    data = ClientData(
        {"train": (samples,), "test": (samples,)}, list(np.arange(3)[:, None]), owners={"test": np.array([0, 2, 2])}
    )
    feed = Feed(task, data.splits["train"], Minibatches(data.parts, 1, seed=0), held_out_splits(data, samples.device))
    x = torch.tensor([[2.0]])
    for clients, expected in (([0, 1, 2], [4.0, None, 10.0]), ([1, 2], [None, 10.0])):
        for engine in (Sequential, Vectorised):
            work = engine(FlatTask(task), feed, LocalTraining(1)).round(0, 0.1)
            losses = work.losses(torch.tensor(clients), x.expand(len(clients), -1), "test").tolist()
            assert [None if loss != loss else loss for loss in losses] == expected
