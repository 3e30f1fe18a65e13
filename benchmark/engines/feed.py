"""The minibatches of clients, augmented: one client after another, or those of many clients stacked.

Stacked minibatches are drawn on the host, sent in one transfer and gathered on the device.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.benchmark.engines.held_out import HeldOut
from rollcall.tasks import Minibatches, Samples, Task


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


@dataclass(frozen=True)
class StackedMinibatches:
    """The minibatches of a clients in K steps.

    Attributes:
        samples: augmented, [K, a, b, ...] with b the longest minibatch. A shorter minibatch is padded with its own
            first sample.
        lengths: without padding, [K, a]; on the host.
        weights: 1 / length for samples and 0 for padding, [K, a, b]; None if nothing is padded.
    """

    samples: Samples
    lengths: Int[np.ndarray, "K a"]
    weights: Float[Tensor, "K a b"] | None

    def by_length(self, k: int) -> list[tuple[Int[Tensor, "n"] | None, Samples]]:
        """The minibatches of step k without padding, by length: which clients (positions; None: all), and samples."""
        device = self.samples[0].device
        groups: list[tuple[Tensor | None, Samples]] = []
        for length in np.unique(self.lengths[k]).tolist():
            members = np.flatnonzero(self.lengths[k] == length)
            if len(members) == self.lengths.shape[1]:
                return [(None, tuple(column[k, :, :length] for column in self.samples))]
            positions = to_device(members, device)
            groups.append(
                (positions, tuple(column[k].index_select(0, positions)[:, :length] for column in self.samples))
            )
        return groups


def stack_minibatches(
    feed: Feed,
    clients: Int[Tensor, "a"],
    ids: list[int],
    first_steps: list[int],
    steps: int,
    dtype: torch.dtype,
) -> StackedMinibatches:
    """Gather, augment and stack minibatches.

    Args:
        feed: the samples, on the device.
        clients: ids [a], on the device.
        ids: the same, on the host.
        first_steps: of each client, counted from the start of the trial.
        steps: K.
        dtype: of the weights.
    """
    distinct = 1 if feed.always_same else steps
    rows, lengths = feed.minibatches.stacked(ids, first_steps, distinct)
    K, a, b = rows.shape
    device = feed.samples[0].device
    ragged = bool((lengths != b).any())
    # The lengths follow the rows, so that one transfer takes both.
    sent = to_device(np.concatenate([rows, lengths[:, :, None]], axis=2) if ragged else rows, device)
    index = sent[:, :, :b].flatten()
    columns = tuple(column.index_select(0, index) for column in feed.samples)
    if feed.augments:
        columns = feed.task.augment(columns, _augmentation_keys(clients, first_steps, (K, a, b), device))
    weights = None
    if ragged:
        length = sent[:, :, b:]
        weights = ((torch.arange(b, device=device) < length).to(dtype) / length).expand(steps, a, b)
    samples = tuple(column.reshape(K, a, b, *column.shape[1:]) for column in columns)
    return StackedMinibatches(
        tuple(column.expand(steps, *column.shape[1:]) for column in samples),
        lengths.repeat(steps // K, axis=0),
        weights,
    )


def _augmentation_keys(
    clients: Int[Tensor, "a"], first_steps: list[int], shape: tuple[int, int, int], device: torch.device
) -> Int[Tensor, "n 3"]:
    """See `augmentation_keys`; for all samples [K, a, b], flattened."""
    K, a, b = shape
    keys = torch.empty(K, a, b, 3, dtype=torch.int64, device=device)
    keys[..., 0] = clients[:, None]
    first = to_device(np.array(first_steps, dtype=np.int64), device)
    keys[..., 1] = (torch.arange(K, device=device)[:, None] + first)[:, :, None]
    keys[..., 2] = torch.arange(b, device=device)
    return keys.view(-1, 3)


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy on the device. The host does not wait for the transfer."""
    tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
