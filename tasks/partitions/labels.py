"""Label skew with few classes for each client, without Dirichlet draws."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Num

from tasks.partitions.base import Parts, need_classes, need_samples, realised
from tasks.streams import stream


def shards(labels: Num[np.ndarray, "n"], clients: int, seed: int, *, each: int = 2) -> Parts:
    """Samples are sorted by label and divided into shards, of which each client gets some (McMahan 2017).

    There are m * each shards, whose sizes differ by one sample at most. Samples of the same label keep their order.

    Args:
        labels: [n], of the training samples.
        clients: m, the number of clients.
        seed: the trial's seed.
        each: number of shards for each client, at least 1.

    Raises:
        ValueError: `each` below 1, or more shards than samples.
    """
    need_classes(labels, "shards")
    if each < 1:
        raise ValueError(f"partition.each: {each} is not allowed; must be at least 1")
    need_samples(labels, clients, each)
    pieces = np.array_split(np.argsort(labels, kind="stable"), clients * each)
    hands = stream(seed, "partition").permutation(len(pieces)).reshape(clients, each)
    rows = [np.concatenate([pieces[shard] for shard in hand]) for hand in hands]
    return Parts(rows, realised(labels, rows))


def by_label(
    labels: Num[np.ndarray, "n"],
    clients: int,
    seed: int,
    *,
    sizes: Sequence[int],
    only: Sequence[int] | None = None,
) -> Parts:
    """Groups of clients that hold one label only ([HAR] Fig. 1).

    The samples of a label are divided at random among its clients; sizes differ by one at most. Samples of other labels
    are left out.

    Args:
        labels: [n], of the training samples.
        clients: m, the number of clients.
        seed: the trial's seed.
        sizes: number of clients of each group, in the order of ids.
        only: label of each group. Default: 0, 1, ... Groups may share a label.

    Raises:
        ValueError: sizes that do not add up to m, or a label with fewer samples than clients.
    """
    need_classes(labels, "by_label")
    if sum(sizes) != clients or min(sizes, default=0) < 1:
        raise ValueError(f"partition.sizes: {list(sizes)} is not allowed; must be from 1 and add up to {clients}")
    if only is not None and len(only) != len(sizes):
        raise ValueError(f"partition.only: {list(only)} is not allowed; must be {len(sizes)} labels, one for each size")
    label = np.repeat(range(len(sizes)) if only is None else only, sizes)
    rows: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * clients
    draw = stream(seed, "partition")
    for c in np.unique(label):
        group = np.flatnonzero(label == c)
        samples = draw.permutation(np.flatnonzero(labels == c))
        if len(samples) < len(group):
            raise ValueError(
                f"partition.sizes: {list(sizes)} is not allowed; {len(group)} clients are to hold label {c}, "
                f"of which there are {len(samples)} samples"
            )
        for client, mine in zip(group, np.array_split(samples, len(group)), strict=True):
            rows[client] = mine
    return Parts(rows, np.eye(labels.max() + 1)[label])
