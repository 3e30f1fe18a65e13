"""The minibatches of several clients, stacked: drawn on the host, sent in one transfer, gathered on the device."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmark.engines.feed import Feed
from tasks import Samples

Rows = Sequence[Sequence[Int[np.ndarray, "_"]]]
"""Of each client, for each of K steps: the rows of its minibatch."""


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

    def padded(self, k: int) -> tuple[Samples, Float[Tensor, "a b"] | None]:
        """The minibatches of step k, and the weight of each sample in its client's mean."""
        return tuple(column[k] for column in self.samples), None if self.weights is None else self.weights[k]

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
    first_steps: list[int],
    rows: Rows,
    dtype: torch.dtype,
    shortest: int = 0,
) -> StackedMinibatches:
    """Gather, augment and stack minibatches.

    Args:
        feed: the samples, on the device.
        clients: ids [a], on the device.
        first_steps: of each client, the step that its `rows` begin with, counted from the start of the trial.
        rows: of each client, for each of K steps, what `Minibatches` drew.
        dtype: of the weights.
        shortest: minibatches are padded to at least this length.
    """
    steps = len(rows[0])
    if feed.always_same:
        rows = [client_rows[:1] for client_rows in rows]
    lengths = np.array([[len(batch) for batch in client_rows] for client_rows in rows]).T
    K, a, b = *lengths.shape, max(int(lengths.max()), shortest)
    device = feed.samples[0].device
    sent = to_device(_padded_rows(rows, lengths, b), device)
    index = sent[:, :, :b].flatten()
    columns = tuple(column.index_select(0, index) for column in feed.samples)
    if feed.augments:
        columns = feed.task.augment(columns, _augmentation_keys(clients, first_steps, (K, a, b), device))
    weights = None
    if (lengths != b).any():
        length = sent[:, :, b:]
        weights = ((torch.arange(b, device=device) < length).to(dtype) / length).expand(steps, a, b)
    samples = tuple(column.reshape(K, a, b, *column.shape[1:]) for column in columns)
    return StackedMinibatches(
        tuple(column.expand(steps, *column.shape[1:]) for column in samples),
        lengths.repeat(steps // K, axis=0),
        weights,
    )


def _padded_rows(rows: Rows, lengths: Int[np.ndarray, "K a"], b: int) -> Int[np.ndarray, "K a length"]:
    """The rows padded to b, then the length without padding, so that one transfer takes both."""
    padded = np.empty((*lengths.shape, b + 1), dtype=np.int64)
    padded[:, :, b] = lengths
    for i, client_rows in enumerate(rows):
        for k, batch in enumerate(client_rows):
            padded[k, i, : len(batch)] = batch
            padded[k, i, len(batch) : b] = batch[0]
    return padded


def _augmentation_keys(
    clients: Int[Tensor, "a"], first_steps: list[int], shape: tuple[int, int, int], device: torch.device
) -> Int[Tensor, "n 3"]:
    """See `benchmark.engines.feed.augmentation_keys`; for all samples [K, a, b], flattened."""
    K, a, b = shape
    keys = torch.empty(K, a, b, 3, dtype=torch.int64, device=device)
    keys[..., 0] = clients[:, None]
    first = to_device(np.array(first_steps, dtype=np.int64), device)
    keys[..., 1] = (torch.arange(K, device=device)[:, None] + first)[:, :, None]
    keys[..., 2] = torch.arange(b, device=device)
    return keys.view(-1, 3)


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy on the device. The host does not wait for the transfer."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
