"""Means of metrics over splits and over groups of samples. They are exact for batches of unequal size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from benchmark.config.errors import SettingError
from benchmark.config.trial import By
from tasks import ClientData
from tasks.metrics import OverClients


@dataclass(frozen=True)
class Groups:
    """A split's samples by group.

    Attributes:
        split: the name of the split.
        names: of the groups.
        of: [n], the number of each sample's group.
        mean: the name of the unweighted mean over groups; None for no such mean.
        by: what defines the groups.
        listed: whether the groups' metrics are results; otherwise they only serve statistics over clients.
    """

    split: str
    names: Sequence[str]
    of: Int[Tensor, "n"]
    mean: str | None = None
    by: By | None = None
    listed: bool = True


def group(by: By, split: str, data: ClientData, availability: Float[np.ndarray, "m"] | None) -> Groups | None:
    """The samples of a split by class, by client, or by the availability of the client (`often` or `rare`).

    None if the samples of the split do not belong to clients. See `is_often` for `availability`.

    Raises:
        ValueError: the data have no classes, or the participation model does not provide availabilities.
    """
    if by == "class":
        if data.classes is None:
            raise ValueError("by: 'class' is not allowed; the data of this task have no classes")
        return Groups(split, [f"class{c}" for c in range(data.classes.shape[1])], data.splits[split][-1], by=by)
    owner = data.owner(split)
    if owner is None:
        return None
    if by == "client":
        return by_client(split, owner, data.clients)
    if availability is None:
        raise ValueError("by: 'availability' is not allowed; this participation model does not provide it")
    return Groups(split, ["rare", "often"], torch.from_numpy(is_often(availability)[owner].astype(np.int64)))


def by_client(split: str, owner: Int[np.ndarray, "n"], number: int, listed: bool = True) -> Groups:
    """The samples of a split by client."""
    names = [f"client{i}" for i in range(number)]
    return Groups(split, names, torch.from_numpy(owner), "per_client", by="client", listed=listed)


def client_groups(groups: Sequence[Groups], splits: Sequence[str], data: ClientData) -> list[Groups]:
    """Groups by client, not listed, of the splits that lack them among `groups`, for statistics over clients.

    Raises:
        SettingError: the clients own the samples of none of these splits.
    """
    owners = {split: owner for split in splits if (owner := data.owner(split)) is not None}
    if not owners:
        raise SettingError(
            "evaluation.metrics: a statistic over clients needs a split whose samples belong to clients, which "
            f"{', '.join(splits)} is not; add train to evaluation.splits"
        )
    present = {one.split for one in groups if one.by == "client"}
    return [
        by_client(split, owner, data.clients, listed=False) for split, owner in owners.items() if split not in present
    ]


def is_often(availability: Float[np.ndarray, "m"]) -> Bool[np.ndarray, "m"]:
    """Whether each client is available at least as often as the average client."""
    often: Bool[np.ndarray, m] = availability >= availability.mean() * (1 - 1e-6)  # the mean of equal numbers rounds
    return often


def named(measured: Mapping[str, float], model: str) -> dict[str, float]:
    """The metrics of a model by name: `test/accuracy` of the result, `test/accuracy/server` of the model `server`."""
    return {f"{name}/{model}" if model else name: value for name, value in measured.items()}


class Tally:
    """The sums of metrics in one evaluation.

    Args:
        sizes: samples of each split.
        groups: of the samples of the splits.
        over_clients: statistics by name, for splits that have groups by client.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        groups: Sequence[Groups] = (),
        over_clients: Mapping[str, OverClients] = MappingProxyType({}),
    ) -> None:
        self.sizes = sizes
        self.groups = groups
        self.over_clients = over_clients
        self.sums: dict[tuple[str, str], Tensor] = {}
        self.by_group: dict[tuple[int, str], Tensor] = {}

    def take(self, split: str, first: int, size: int, metrics: Mapping[str, Tensor]) -> None:
        """Take in a batch.

        Args:
            split: of the batch.
            first: the position of the batch's first sample in the split.
            size: how many samples.
            metrics: by name: of each sample [size], or their mean [].
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
        """`split/metric`: the mean over the split; `split/metric/group`: the mean over a group that is not empty.

        Also `split/statistic`, over the clients that have samples in the split.
        """
        means = {f"{split}/{name}": float(total) / self.sizes[split] for (split, name), total in self.sums.items()}
        for (index, metric), sums in self.by_group.items():
            groups = self.groups[index]
            counts = torch.bincount(groups.of, minlength=len(groups.names)).tolist()
            rows = zip(groups.names, sums.tolist(), counts, strict=True)
            by_group = {name: total / count for name, total, count in rows if count}
            if groups.by == "client":
                clients = np.array(list(by_group.values()))
                means |= {
                    f"{groups.split}/{name}": statistic.statistic(clients)
                    for name, statistic in self.over_clients.items()
                    if statistic.of == metric
                }
            if not groups.listed:
                continue
            if groups.mean is not None:
                by_group[groups.mean] = sum(by_group.values()) / len(by_group)
            means |= {f"{groups.split}/{metric}/{name}": mean for name, mean in by_group.items()}
        return means
