"""The interface of a partition, and functions that partitions share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int, Num

from tasks.streams import stream

ATTEMPTS = 100
"""Number of draws of a random partition before it is refused because a client is too small."""


@dataclass(frozen=True)
class Parts:
    """The samples of each client.

    Attributes:
        rows: for each client the samples that it holds.
        classes: [m, C], nu, the class distribution that its samples were drawn from.
    """

    rows: list[Int[np.ndarray, "_"]]
    classes: Float[np.ndarray, "m C"]

    def fault(self, samples: int, clients: int) -> str:
        """What is wrong with the samples of the clients; empty if nothing is."""
        if len(self.rows) != clients:
            return f"the partition has {len(self.rows)} parts; must have {clients}, one for each client"
        taken = np.zeros(samples, dtype=np.int64)
        for client, mine in enumerate(self.rows):
            if len(mine) == 0:
                return f"client {client} has no samples; every client must have one"
            if mine.dtype.kind not in "iu":
                return f"the samples of client {client} are {mine.dtype}; must be whole numbers (positions of samples)"
            if mine.min() < 0 or mine.max() >= samples:
                outside = mine.max() if mine.max() >= samples else mine.min()
                return f"client {client} has sample {outside}; must be in 0 to {samples - 1}"
            taken += np.bincount(mine, minlength=samples)
        if taken.max() > 1:
            return f"sample {int(taken.argmax())} belongs to {taken.max()} clients; must belong to one at most"
        return ""


Partition: TypeAlias = Callable[[Num[np.ndarray, "n"], int, int], Parts]
"""From the targets [n] of the training samples, the number of clients and the seed to the parts. Targets are labels
(whole numbers from 0), or real numbers for regression."""


def need_classes(labels: Num[np.ndarray, "n"], partition: str) -> None:
    """Refuse a partition by classes for targets that are real numbers.

    Raises:
        ValueError: the targets are no labels.
    """
    if labels.dtype.kind == "f":
        raise ValueError(
            f"partition: {partition} is not allowed; it divides samples by class, and the targets of this task are "
            "real numbers. Use iid, natural, by_sizes or from_file"
        )


def shares(labels: Num[np.ndarray, "n"]) -> Float[np.ndarray, "C"]:
    """The share [C] of each class; one class if the targets are real numbers."""
    if labels.dtype.kind == "f":
        return np.ones(1)
    return np.bincount(labels) / len(labels)


def realised(labels: Num[np.ndarray, "n"], rows: list[Int[np.ndarray, "_"]]) -> Float[np.ndarray, "m C"]:
    """The actual class distribution [m, C] of each client; one class if the targets are real numbers."""
    if labels.dtype.kind == "f":
        return np.ones((len(rows), 1))
    return np.stack([np.bincount(labels[mine], minlength=labels.max() + 1) / len(mine) for mine in rows])


def parts_of(rows: Sequence[Any], labels: Num[np.ndarray, "n"]) -> Parts:
    """Parts from a list of the samples of each client, with the actual class distributions if the samples are valid."""
    arrays = [np.asarray(mine) for mine in rows]
    parts = Parts(arrays, np.ones((len(arrays), 1)))
    if labels.dtype.kind not in "iu" or parts.fault(len(labels), len(arrays)):
        return parts
    return Parts(arrays, realised(labels, arrays))


def in_proportion(samples: Int[np.ndarray, "n"], weights: Float[np.ndarray, "m"]) -> list[Int[np.ndarray, "_"]]:
    """Divide samples in proportion to weights [m]; each size is off by at most one sample."""
    bounds = np.cumsum(weights) / weights.sum() * len(samples)
    return np.split(samples, np.rint(bounds[:-1]).astype(np.int64))


def need_samples(labels: Num[np.ndarray, "n"], clients: int, minimum: int = 1) -> None:
    """Refuse a number of clients for which there are too few samples.

    Raises:
        ValueError: fewer than `minimum` samples for each client, or a `minimum` below 1.
    """
    if minimum < 1:
        raise ValueError(f"partition.minimum: {minimum} is not allowed; must be at least 1")
    if len(labels) < clients * minimum:
        each = "" if minimum == 1 else f", {minimum} for each"
        raise ValueError(
            f"clients: {clients} is not allowed; must be at most {len(labels) // minimum} with {len(labels)} training "
            f"samples{each}"
        )


def drawn(draw: Callable[[np.random.Generator], Parts], seed: int, minimum: int, cause: str) -> Parts:
    """Draw a partition up to `ATTEMPTS` times, until every client has at least `minimum` samples.

    Args:
        draw: draws a partition from a generator.
        seed: the trial's seed.
        minimum: smallest number of samples of a client.
        cause: setting and value that the error names.

    Raises:
        ValueError: no draw gave every client enough samples.
    """
    for attempt in range(ATTEMPTS):
        parts = draw(stream(seed, "partition", attempt))
        sizes = [len(mine) for mine in parts.rows]
        if min(sizes) >= minimum:
            return parts
    client = int(np.argmin(sizes))
    raise ValueError(
        f"{cause} with {len(sizes)} clients is not allowed here; the last of {ATTEMPTS} draws leaves client {client} "
        f"(seed {seed}) with {sizes[client]} samples, less than {minimum}: must be larger, or the clients fewer"
    )
