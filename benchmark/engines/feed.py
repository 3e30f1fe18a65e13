"""The samples of clients: minibatches to train on, augmented, for one client or stacked for many; and held-out splits.

Stacked minibatches are drawn on the host, sent in one transfer and gathered on the device.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.tasks import ClientData, Minibatches, Samples, Task
from rollcall.tasks.base import Holdings

SAMPLES_AT_ONCE = 128
"""Samples of consecutive minibatches that are augmented together: images of this number fit in a CPU's caches."""

HeldOut: TypeAlias = Mapping[str, tuple[Samples, Holdings]]
"""Splits that clients hold but do not train on, by name: the samples, on the device, and the rows of each client."""


def held_out_splits(data: ClientData, device: torch.device) -> HeldOut:
    """The splits besides `train` whose samples belong to clients."""
    splits = {}
    for name, samples in data.splits.items():
        owner = None if name == "train" else data.owner(name)
        if owner is not None:
            rows, sizes = owner.argsort(kind="stable"), np.bincount(owner, minlength=data.clients)
            splits[name] = tuple(column.to(device) for column in samples), Holdings(rows, sizes)
    return splits


class Feed:
    """The minibatches of all clients, augmented by the task.

    The training samples of all clients are on the device of the work. `always_same`: a client's minibatch is the same
    in all steps.
    """

    def __init__(self, task: Task, samples: Samples, minibatches: Minibatches, held_out: HeldOut | None = None) -> None:
        self.task = task
        self.samples = samples
        self.minibatches = minibatches
        self.held_out = held_out or {}
        self.augments = task.augments
        self.always_same = minibatches.size == "full" and not self.augments

    def batch(self, client: int, step: int) -> Samples:
        """A client's minibatch in a step, counted from the start of the trial."""
        return next(self.batches(client, range(step, step + 1)))

    def batches(self, client: int, steps: range) -> Iterator[Samples]:
        """A client's minibatches in these steps, as `batch` gives them. Several are gathered and augmented at once."""
        device, at_once = self.samples[0].device, max(1, SAMPLES_AT_ONCE // int(self.minibatches.longest[client]))
        for first in range(0, len(steps), at_once):
            some = steps[first : first + at_once]
            rows = [self.minibatches.rows(client, step) for step in some]
            lengths = [len(own) for own in rows]
            index = to_device(np.concatenate(rows), device)
            columns = tuple(column.index_select(0, index) for column in self.samples)
            if self.augments:
                keys = np.empty((len(index), 3), dtype=np.int64)
                keys[:, 0], keys[:, 1] = client, np.repeat(some, lengths)
                keys[:, 2] = np.concatenate([np.arange(length) for length in lengths])
                columns = self.task.augment(columns, to_device(keys, device))
            columns = self.task.prepare(columns)
            yield from zip(*(torch.split(column, lengths) for column in columns), strict=True)

    def stacked(self, ids: list[int], first_steps: list[int], steps: int) -> "Stacked":
        """The minibatches of several clients in K steps. First steps are counted from the start of the trial."""
        rows, lengths = self.minibatches.stacked(ids, first_steps, 1 if self.always_same else steps)
        K, a, b = rows.shape
        device = self.samples[0].device
        ragged = bool((lengths != b).any())
        # The lengths follow the rows, so that one transfer takes both.
        sent = to_device(np.concatenate([rows, lengths[:, :, None]], axis=2) if ragged else rows, device)
        index = sent[:, :, :b].flatten()
        columns = tuple(column.index_select(0, index) for column in self.samples)
        if self.augments:
            keys = np.empty((*rows.shape, 3), dtype=np.int64)  # client, step and position in the minibatch
            keys[..., 0] = np.array(ids)[:, None]
            keys[..., 1] = (np.arange(K)[:, None] + np.array(first_steps))[:, :, None]
            keys[..., 2] = np.arange(b)
            columns = self.task.augment(columns, to_device(keys.reshape(-1, 3), device))
        columns = self.task.prepare(columns)
        weights = None
        if ragged:
            length, dtype = sent[:, :, b:], next(self.task.parameters()).dtype
            weights = ((torch.arange(b, device=device) < length).to(dtype) / length).expand(steps, a, b)
        samples = (column.reshape(K, a, b, *column.shape[1:]) for column in columns)
        return Stacked(
            tuple(column.expand(steps, *column.shape[1:]) for column in samples),
            lengths.repeat(steps // K, axis=0),
            weights,
        )


@dataclass(frozen=True)
class Stacked:
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

    @property
    def columns(self) -> Samples:
        """The samples, and the weights if there are any: [K, a, b, ...]."""
        return self.samples if self.weights is None else (*self.samples, self.weights)

    def first(self) -> "Stacked":
        """The minibatches of the first step, copied."""
        weights = None if self.weights is None else self.weights[:1].clone()
        return Stacked(tuple(column[:1].clone() for column in self.samples), self.lengths[:1], weights)

    def by_length(self, k: int) -> list[tuple[Int[Tensor, "n"] | None, Samples]]:
        """The minibatches of step k without padding, by length: which clients (positions; None: all), and samples."""
        groups: list[tuple[Tensor | None, Samples]] = []
        for length in np.unique(self.lengths[k]).tolist():
            members = np.flatnonzero(self.lengths[k] == length)
            if len(members) == self.lengths.shape[1]:
                return [(None, tuple(column[k, :, :length] for column in self.samples))]
            rows = to_device(members, self.samples[0].device)
            groups.append((rows, tuple(column[k].index_select(0, rows)[:, :length] for column in self.samples)))
        return groups


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy on the device. The host does not wait for the transfer."""
    tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
