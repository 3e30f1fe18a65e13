"""The minibatches of several clients at once: drawn by the host, sent in one piece, put together on the device."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmark.engines.feed import Feed
from tasks import Samples


@dataclass(frozen=True)
class Deal:
    """What a clients see in K steps.

    Attributes:
        samples: augmented, [K, a, b, ...] with b the longest minibatch; a shorter one is filled up with its own first
            sample.
        lengths: how many are meant, [K, a]; on the host.
        weights: 1 / length for these and 0 for the rest, [K, a, b]; None where all are meant.
    """

    samples: Samples
    lengths: Int[np.ndarray, "K a"]
    weights: Float[Tensor, "K a b"] | None

    def padded(self, k: int) -> tuple[Samples, Float[Tensor, "a b"] | None]:
        """The batches of step k, and what each sample weighs in its client's mean."""
        return tuple(column[k] for column in self.samples), None if self.weights is None else self.weights[k]

    def alike(self, k: int) -> list[tuple[Int[Tensor, "n"] | None, Samples]]:
        """The batches of step k by length, without padding, and which of the clients they belong to (None: all)."""
        device = self.samples[0].device
        groups: list[tuple[Tensor | None, Samples]] = []
        for length in np.unique(self.lengths[k]).tolist():
            members = np.flatnonzero(self.lengths[k] == length)
            if len(members) == self.lengths.shape[1]:
                return [(None, tuple(column[k, :, :length] for column in self.samples))]
            rows = to_device(members, device)
            groups.append((rows, tuple(column[k].index_select(0, rows)[:, :length] for column in self.samples)))
        return groups


def deal(
    feed: Feed,
    clients: Int[Tensor, "a"],
    firsts: list[int],
    rows: list[list[Int[np.ndarray, "_"]]],
    dtype: torch.dtype,
    shortest: int = 0,
) -> Deal:
    """Gather and augment.

    Args:
        feed: the samples, on the device.
        clients: ids [a], on the device.
        firsts: of each client, the step, counted from the first round on, that its `rows` begin with.
        rows: of each client, for each of K steps, what `Minibatches` drew.
        dtype: of the weights.
        shortest: minibatches are padded to this length at least.
    """
    steps = len(rows[0])
    if feed.always_same:
        rows = [theirs[:1] for theirs in rows]
    lengths = np.array([[len(batch) for batch in theirs] for theirs in rows]).T
    K, a, b = *lengths.shape, max(int(lengths.max()), shortest)
    # A row more for the lengths, so that one transfer takes all.
    drawn = np.empty((K, a, b + 1), dtype=np.int64)
    drawn[:, :, b] = lengths
    for i, theirs in enumerate(rows):
        for k, batch in enumerate(theirs):
            drawn[k, i, : len(batch)] = batch
            drawn[k, i, len(batch) : b] = batch[0]
    device = feed.samples[0].device
    sent = to_device(drawn, device)
    index = sent[:, :, :b].flatten()
    seen = tuple(column.index_select(0, index) for column in feed.samples)
    if feed.augments:
        keys = torch.empty(K, a, b, 3, dtype=torch.int64, device=device)
        keys[..., 0] = clients[:, None]
        first = to_device(np.array(firsts, dtype=np.int64), device)
        keys[..., 1] = (torch.arange(K, device=device)[:, None] + first)[:, :, None]
        keys[..., 2] = torch.arange(b, device=device)
        seen = feed.task.augment(seen, keys.view(-1, 3))
    weights = None
    if (lengths != b).any():
        length = sent[:, :, b:]
        weights = ((torch.arange(b, device=device) < length).to(dtype) / length).expand(steps, a, b)
    samples = tuple(column.reshape(K, a, b, *column.shape[1:]) for column in seen)
    return Deal(
        tuple(column.expand(steps, *column.shape[1:]) for column in samples),
        lengths.repeat(steps // K, axis=0),
        weights,
    )


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy there, for which the host does not wait."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
