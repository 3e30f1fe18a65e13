"""What a client's local step sees: its minibatch, augmented."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmark.engines.flat import FlatTask
from tasks import ClientData, Minibatches, Samples, Task
from tasks.holdings import Holdings


@dataclass(frozen=True)
class HeldOut:
    """The clients' shares of a split that nobody trains on.

    Attributes:
        samples: of the split, on the device of the work.
        holdings: the rows that each client holds.
    """

    samples: Samples
    holdings: Holdings


class Feed:
    """The minibatches of all clients.

    Args:
        task: which augments them.
        samples: all clients' training samples, on the device of the work.
        minibatches: which of them a client's step sees.
        held_out: the other splits whose samples belong to clients, by name.

    Attributes:
        augments: whether the task changes what a step sees.
        always_same: whether all steps of a client see the same.
    """

    def __init__(
        self, task: Task, samples: Samples, minibatches: Minibatches, held_out: Mapping[str, HeldOut] | None = None
    ) -> None:
        self.task = task
        self.samples = samples
        self.minibatches = minibatches
        self.held_out = held_out or {}
        self.augments = type(task).augment is not Task.augment
        self.always_same = minibatches.size == "full" and not self.augments

    def batch(self, client: int, step: int) -> Samples:
        """What a client sees in a step, counted from the first round on."""
        rows = torch.from_numpy(self.minibatches.rows(client, step)).to(self.samples[0].device)
        batch = tuple(column.index_select(0, rows) for column in self.samples)
        return self.task.augment(batch, keys(client, step, rows)) if self.augments else batch


def keys(client: int, step: int, rows: Int[Tensor, "n"]) -> Int[Tensor, "n 3"]:
    """Client, step and position within the minibatch of each sample: what its augmentation is drawn by."""
    found = torch.empty(len(rows), 3, dtype=torch.int64, device=rows.device)
    found[:, 0], found[:, 1] = client, step
    torch.arange(len(rows), out=found[:, 2])
    return found


def held_out(data: ClientData, device: torch.device) -> dict[str, HeldOut]:
    """The splits besides `train` whose samples belong to clients."""
    found = {}
    for split, samples in data.splits.items():
        owner = None if split == "train" else data.owner(split)
        if owner is not None:
            rows, sizes = owner.argsort(kind="stable"), np.bincount(owner, minlength=data.clients)
            found[split] = HeldOut(tuple(column.to(device) for column in samples), Holdings(rows, sizes))
    return found


@torch.no_grad()
def held_out_losses(
    model: FlatTask, feed: Feed, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str
) -> Float[Tensor, "a"]:
    """See `algorithms.LocalWork.losses`; one client after another, in evaluation mode."""
    if split not in feed.held_out:
        allowed = ", ".join(feed.held_out) or "another option, this task's clients hold out no samples"
        raise ValueError(f"losses: {split!r} is not allowed with this task; must be {allowed}")
    held = feed.held_out[split]
    losses = x.new_empty(len(clients))
    training = model.task.training
    model.task.eval()
    for row, client in enumerate(clients.tolist()):
        if row == 0 or x.stride(0):  # a model that is the same for all is moved to once
            model.move(x[row])
        mine = torch.from_numpy(held.holdings[client]).to(x.device)
        losses[row] = model.task.loss(tuple(column.index_select(0, mine) for column in held.samples))
    model.task.train(training)
    return losses
