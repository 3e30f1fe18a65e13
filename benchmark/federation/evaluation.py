"""Means of metrics over splits and over groups of their samples, exact however uneven the batches are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from benchmark.config.trial import By
from tasks import ClientData


@dataclass(frozen=True)
class Groups:
    """A split's samples by group.

    Attributes:
        split: whose.
        names: of the groups.
        of: [n], the number of each sample's group.
        mean: the name of the mean over groups, every group counting alike; None for no such mean.
    """

    split: str
    names: Sequence[str]
    of: Int[Tensor, "n"]
    mean: str | None = None


def group(by: By, split: str, data: ClientData, availability: Float[np.ndarray, "m"] | None) -> Groups | None:
    """The samples of a split by class, by the client that holds them, or by how often that client is there
    (`is_often`: `often`, else `rare`). None where the split's samples belong to no client.

    Raises:
        ValueError: data without classes, or clients of whose availability nothing is known.
    """
    if by == "class":
        if data.classes is None:
            raise ValueError("by: 'class' is not allowed; must be left out for data without classes")
        return Groups(split, [f"class{c}" for c in range(data.classes.shape[1])], data.splits[split][-1])
    owner = data.owner(split)
    if owner is None:
        return None
    if by == "client":
        return Groups(split, [f"client{i}" for i in range(data.clients)], torch.from_numpy(owner), "client_mean")
    if availability is None:
        raise ValueError("by: 'availability' is not allowed; the participation model must tell it, and does not")
    return Groups(split, ["rare", "often"], torch.from_numpy(is_often(availability)[owner].astype(np.int64)))


def is_often(availability: Float[np.ndarray, "m"]) -> Bool[np.ndarray, "m"]:
    """Who is there at least as often as clients are on average; the mean of equal numbers may round to just above."""
    return availability >= availability.mean() * (1 - 1e-6)


class Tally:
    """The sums of one evaluation.

    Args:
        sizes: samples of each split.
        groups: of the splits' samples.
    """

    def __init__(self, sizes: Mapping[str, int], groups: Sequence[Groups] = ()) -> None:
        self.sizes = sizes
        self.groups = groups
        self.sums: dict[tuple[str, str], Tensor] = {}
        self.by_group: dict[tuple[int, str], Tensor] = {}

    def take(self, split: str, first: int, size: int, metrics: Mapping[str, Tensor]) -> None:
        """Take in a batch.

        Args:
            split: whose.
            first: the place of its first sample in the split.
            size: how many samples.
            metrics: by name, of each sample [size], or of all of them [].
        """
        for name, values in metrics.items():
            values = values.detach().to(torch.float64)
            total = values.sum() if values.ndim else values * size
            self.sums[split, name] = self.sums.get((split, name), 0.0) + total
            if values.ndim:
                for index, groups in enumerate(self.groups):
                    if groups.split == split:
                        sums = self.by_group.setdefault((index, name), values.new_zeros(len(groups.names)))
                        sums.index_add_(0, groups.of[first : first + size].to(values.device), values)

    def means(self) -> dict[str, float]:
        """`split/metric` to its mean over the split, `split/metric/group` to that over a group that is not empty."""
        found = {f"{split}/{name}": float(total) / self.sizes[split] for (split, name), total in self.sums.items()}
        for (index, metric), sums in self.by_group.items():
            groups = self.groups[index]
            counts = torch.bincount(groups.of, minlength=len(groups.names)).tolist()
            rows = zip(groups.names, sums.tolist(), counts, strict=True)
            means = {name: total / count for name, total, count in rows if count}
            if groups.mean is not None:
                means[groups.mean] = sum(means.values()) / len(means)
            found |= {f"{groups.split}/{metric}/{name}": mean for name, mean in means.items()}
        return found
