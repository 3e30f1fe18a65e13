"""What a client's local step sees: its minibatch, augmented."""

import torch
from jaxtyping import Int
from torch import Tensor

from tasks import Minibatches, Samples, Task


class Feed:
    """The minibatches of all clients.

    Args:
        task: which augments them.
        samples: all clients' training samples, on the device of the work.
        minibatches: which of them a client's step sees.

    Attributes:
        augments: whether the task changes what a step sees.
        always_same: whether all steps of a client see the same.
    """

    def __init__(self, task: Task, samples: Samples, minibatches: Minibatches) -> None:
        self.task = task
        self.samples = samples
        self.minibatches = minibatches
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
