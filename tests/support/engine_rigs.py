"""The same local work in both engines, for tasks with and without BatchNorm; and in plain PyTorch."""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn.functional import batch_norm, cross_entropy

from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised
from rollcall.tasks import AUGMENTATIONS, Minibatches, digits
from rollcall.tasks.base import Task
from rollcall.tasks.partitions import Parts

STEPS, LR, T = 5, 0.1, 3


def ragged(labels, m):
    """Clients with 5, 10, 20, ... samples: fewer than a minibatch, one and a bit, many."""
    bounds = 5 * np.cumsum(2 ** np.arange(m))
    return Parts(np.split(np.arange(bounds[-1]), bounds[:-1]), np.full((m, 10), 0.1))


def rigs(batch_size=16, local=LocalTraining(STEPS), wrap=lambda task: task, momentum=None):  # noqa: B008
    """Works of round T by both engines, of the same augmented digits in float64, and the model."""
    found = []
    for engine in (Sequential, Vectorised):
        crop = lambda seed: AUGMENTATIONS["crop_flip"](seed, padding=1, fill="mean")  # noqa: E731
        task, data = digits(0, clients=6, augmentation=crop, partition=lambda labels, m, seed: ragged(labels, m))
        task = wrap(task).double()
        feed = Feed(task, data.splits["train"], Minibatches(data.parts, batch_size, seed=0))
        found.append(engine(FlatTask(task), feed, local).round(T, LR, momentum))
    return *found, FlatTask(task).vector()


class Normalising(Task):
    """Digits through BatchNorm, with an idle parameter and a dropout or not."""

    def __init__(self, task, dropout=0.0):
        super().__init__(lr=0.1)
        torch.manual_seed(0)
        self.given = task
        self.network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 10))
        self.idle = nn.Parameter(torch.ones(2))
        self.dropout = dropout

    def augment(self, batch, keys):
        return self.given.augment(batch, keys)

    def loss(self, batch):
        logits = self.network(self.given.normalised(batch[0]))
        if self.dropout:
            logits = nn.functional.dropout(logits, self.dropout)
        return cross_entropy(logits, batch[1]) + self.given.loss(batch)

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


class Standardising(Task):
    """Samples depend on each other although the model has no buffers."""

    def __init__(self, task):
        super().__init__(lr=0.1)
        self.given = task
        self.weights = nn.Parameter(torch.ones(10))

    def augment(self, batch, keys):
        return self.given.augment(batch, keys)

    def loss(self, batch):
        logits = batch_norm(self.given(batch[0]), None, None, self.weights, training=True)
        return cross_entropy(logits, batch[1])

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


class Viewing(nn.Module):
    """Flattens by `view`, which wants the channels of an image apart."""

    def forward(self, x):
        return x.view(len(x), -1)


def by_torch(work, make, start, client, lr=LR, correction=None, t=T):
    """A copy of the task after the client's steps of round t by a torch optimizer, from a sequential work."""
    model = copy.deepcopy(work.model.task)
    nn.utils.vector_to_parameters(start.clone(), model.parameters())
    optimizer = make(model.parameters(), lr=lr)
    (K,) = work.local.of([client])
    for step in range(t * K, (t + 1) * K):
        optimizer.zero_grad()
        model.loss(work.feed.batch(client, step)).backward()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        if correction is not None:
            for parameter, piece in zip(model.parameters(), work.model.split(correction), strict=True):
                parameter.grad += piece
        optimizer.step()
    return model


WRAPS = {"plain": lambda task: task, "batchnorm": Normalising}
