"""One evaluation: means of metrics over splits and groups of samples, the metrics of `evaluation.metrics`, and costs.

The means are exact for batches of unequal size.
"""

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rollcall.algorithms import Traffic
from rollcall.benchmark.config.axes import numbered
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.source import contributed_line, told
from rollcall.benchmark.config.trial import By
from rollcall.tasks import ClientData, Task, evaluating
from rollcall.tasks.metrics import Accumulated, ClassScores, OverClients, TaskMetric


@dataclass(frozen=True)
class Groups:
    """A split's samples by group.

    Attributes:
        split: the name of the split.
        names: of the groups.
        of: [n], the number of each sample's group.
        by: the property that defines the groups.
        listed: whether the groups' metrics are results; otherwise they only serve statistics over clients.
    """

    split: str
    names: Sequence[str]
    of: Int[Tensor, "n"]
    by: By | None = None
    listed: bool = True


def group(by: By, split: str, data: ClientData, availability: Float[np.ndarray, "m"] | None) -> Groups | None:
    """The samples of a split by class, by client, or by the availability of the client (`often` or `rare`).

    None if the samples of the split do not belong to clients. See `is_often` for `availability`.

    Raises ValueError: the data have no classes, or the participation model does not provide availabilities.
    """
    if by == "class":
        if data.classes is None:
            raise ValueError("by: 'class' is not allowed; the data of this task have no classes")
        return Groups(split, [f"class{c}" for c in range(data.classes.shape[1])], data.splits[split][-1], by=by)
    owner = data.owner(split)
    if owner is None:
        return None
    if by == "client":
        names = [f"client{i}" for i in range(data.clients)]
        return Groups(split, names, torch.from_numpy(owner), by="client")
    if availability is None:
        raise ValueError("by: 'availability' is not allowed; this participation model does not provide it")
    return Groups(split, ["rare", "often"], torch.from_numpy(is_often(availability)[owner].astype(np.int64)))


def is_often(availability: Float[np.ndarray, "m"]) -> Bool[np.ndarray, "m"]:
    """Whether each client is available at least as often as the average client."""
    return availability >= availability.mean() * (1 - 1e-6)  # the mean of equal numbers rounds


def metrics_of(choices: Sequence[Choice], task: Task, data: ClientData) -> Mapping[str, TaskMetric]:
    """Metrics by name, besides the means of `Task.metrics`: the task's own and the chosen ones.

    Of two chosen ones with one name, the second is called `f1#2`. They are tried on one training sample.

    Raises SettingError: not a metric, or the task does not give what it needs.
    """
    if not choices and not task.accumulated:
        return {}
    sample = tuple(column[:1] for column in data.splits["train"])
    with torch.no_grad(), evaluating(task):
        measured = task.metrics(sample)
        chosen: dict[str, Any] = {}
        for choice in choices:
            taken = {*measured, *task.accumulated, *chosen}
            chosen[next(name for name in numbered(choice.label) if name not in taken)] = choice.build()
        metrics = {**task.accumulated, **chosen}
        for name, metric in metrics.items():
            if isinstance(metric, OverClients):
                if metric.of not in measured or not measured[metric.of].ndim:
                    raise SettingError(
                        f"evaluation.metrics: {name} needs the {metric.of} of each sample, which this task does not "
                        "measure"
                    )
                continue
            try:
                _fresh(metric).update(*task.outputs(sample))
            except Exception as error:
                raise SettingError(
                    f"evaluation.metrics: {name} cannot be computed from the predictions of this task: "
                    f"{contributed_line(error)}{told(error)}"
                ) from error
    return metrics


def named(measured: Mapping[str, float], model: str) -> dict[str, float]:
    """The metrics of a model by name: `test/accuracy` of the result, `test/accuracy/server` of the model `server`."""
    return {f"{name}/{model}" if model else name: value for name, value in measured.items()}


class Tally:
    """The sums of metrics, and the accumulated metrics, in one evaluation of a model.

    Args:
        sizes: samples of each split that is evaluated.
        groups: of the samples of the splits.
        metrics: by name; copies are used. Statistics over clients need groups by client.
    """

    def __init__(
        self, sizes: Mapping[str, int], groups: Sequence[Groups] = (), metrics: Mapping[str, TaskMetric] | None = None
    ) -> None:
        self.sizes = sizes
        self.groups = groups
        every = (metrics or {}).items()
        self.over_clients = {name: metric for name, metric in every if isinstance(metric, OverClients)}
        self.sums: dict[tuple[str, str], Tensor] = {}
        self.by_group: dict[tuple[int, str], Tensor] = {}
        whole = {name: metric for name, metric in every if not isinstance(metric, OverClients)}
        self.accumulated = {split: {name: _fresh(metric) for name, metric in whole.items()} for split in sizes}

    def take(self, split: str, first: int, size: int, metrics: Mapping[str, Tensor]) -> None:
        """Take in a batch of a split from its first sample on: metrics of each sample [size], or their mean []."""
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
                    f"{groups.split}/{name}": float(statistic.statistic(clients))
                    for name, statistic in self.over_clients.items()
                    if statistic.of == metric
                }
            if not groups.listed:
                continue
            if groups.by == "client":
                by_group["per_client"] = sum(by_group.values()) / len(by_group)
            means |= {f"{groups.split}/{metric}/{name}": mean for name, mean in by_group.items()}
        return means

    def take_outputs(self, split: str, predictions: Tensor, targets: Tensor) -> None:
        """Take in the next batch of a split, for the accumulated metrics: predictions and targets [n, ...]."""
        predictions, targets = predictions.detach().cpu(), targets.detach().cpu()
        if predictions.dtype in (torch.bfloat16, torch.float16):
            predictions = predictions.float()
        for metric in self.accumulated[split].values():
            metric.update(predictions, targets)

    def scores(self) -> dict[str, float]:
        """The accumulated metrics: `split/metric`, and `split/metric/class0` and so on of a score of classes.

        A value that is undefined (NaN) or infinite is left out.
        """
        values: dict[str, float] = {}
        of_classes: dict[str, float] = {}
        by_class = {one.split for one in self.groups if one.by == "class"}
        for split, metrics in self.accumulated.items():
            for name, metric in metrics.items():
                values |= _numbers(f"{split}/{name}", _defined(metric))
                if split in by_class and isinstance(metric, ClassScores):
                    for number, score in enumerate(metric.per_class()):
                        of_classes |= _numbers(f"{split}/{name}/class{number}", score)
        return values | of_classes


def _fresh(metric: Accumulated) -> Accumulated:
    metric = copy.deepcopy(metric)
    metric.reset()
    return metric


def _defined(metric: Accumulated) -> Any:
    """The value of a metric; NaN where torchmetrics gives 0 and warns that it is meaningless."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*meaningless")
        try:
            return metric.compute()
        except UserWarning:
            return math.nan


def _numbers(name: str, value: Any) -> dict[str, float]:
    """A value by name; the entries of a mapping or a vector by the name and their key or number."""
    if isinstance(value, Mapping):
        entries = [_numbers(f"{name}/{key}", entry) for key, entry in value.items()]
    elif getattr(value, "ndim", 0):
        entries = [_numbers(f"{name}/{index}", entry) for index, entry in enumerate(value)]
    else:
        return {name: float(value)} if math.isfinite(value) else {}
    return {key: number for entry in entries for key, number in entry.items()}


@dataclass
class Costs:
    """Sums over the rounds so far.

    Attributes:
        gradients: local minibatch gradients that the clients computed.
        floats_up, floats_down: sent from clients to server and back, as the method declares.
        seconds: that the rounds lasted; None without a clock.
    """

    gradients: int = 0
    floats_up: int = 0
    floats_down: int = 0
    seconds: float | None = None

    def add(self, gradients: int, traffic: Traffic, d: int, seconds: float | None = None) -> None:
        """Add a round with models of d floats."""
        if seconds is not None:
            self.seconds = (self.seconds or 0.0) + seconds
        self.gradients += gradients
        self.floats_up += int(traffic.up) * d
        self.floats_down += int(traffic.down) * d

    def named(self, memory: int) -> dict[str, float]:
        """As columns of the history, with the floats that the method stores between rounds (`memory`)."""
        costs = asdict(self) | {"memory": memory}
        seconds = costs.pop("seconds")
        return {f"cost/{name}": value for name, value in costs.items()} | (
            {} if seconds is None else {"time/seconds": seconds}
        )
