"""The feed: the minibatch, augmented, of each client's local step."""

from collections.abc import Mapping

import torch
from jaxtyping import Int
from torch import Tensor

from benchmark.engines.held_out import HeldOut
from tasks import Minibatches, Samples, Task


class Feed:
    """The minibatches of all clients.

    Args:
        task: augments the minibatches.
        samples: the training samples of all clients, on the device of the work.
        minibatches: the rows of each client's minibatch in each step.
        held_out: the other splits whose samples belong to clients, by name.

    Attributes:
        augments: whether the task augments samples.
        always_same: whether a client's minibatch is the same in all steps.
    """

    def __init__(
        self, task: Task, samples: Samples, minibatches: Minibatches, held_out: Mapping[str, HeldOut] | None = None
    ) -> None:
        self.task = task
        self.samples = samples
        self.minibatches = minibatches
        self.held_out = held_out or {}
        self.augments = task.augments
        self.always_same = minibatches.size == "full" and not self.augments

    def batch(self, client: int, step: int) -> Samples:
        """A client's minibatch in a step, counted from the start of the trial."""
        rows = torch.from_numpy(self.minibatches.rows(client, step)).to(self.samples[0].device)
        batch = tuple(column.index_select(0, rows) for column in self.samples)
        return self.task.augment(batch, augmentation_keys(client, step, rows)) if self.augments else batch


def augmentation_keys(client: int, step: int, rows: Int[Tensor, "n"]) -> Int[Tensor, "n 3"]:
    """The key of each sample's augmentation: client, step and position in the minibatch."""
    keys = torch.empty(len(rows), 3, dtype=torch.int64, device=rows.device)
    keys[:, 0], keys[:, 1] = client, step
    torch.arange(len(rows), out=keys[:, 2])
    return keys
