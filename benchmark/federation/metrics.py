"""The metrics of `evaluation.metrics`: which they are, and their values over whole splits and groups of samples."""

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from benchmark.config.choice import Choice
from benchmark.config.errors import SettingError
from benchmark.config.source import contributed_line
from benchmark.federation.evaluation import Groups
from tasks import ClientData, Samples, Task
from tasks.metrics import Accumulated, ClassScores, OverClients


@dataclass(frozen=True)
class Metrics:
    """Metrics by name, besides the means of `tasks.Task.metrics`.

    Attributes:
        accumulated: computed from the predictions and targets of a whole split.
        over_clients: statistics of the clients' means.
    """

    accumulated: Mapping[str, Accumulated] = field(default_factory=dict)
    over_clients: Mapping[str, OverClients] = field(default_factory=dict)


def metrics_of(choices: Sequence[Choice], task: Task, data: ClientData) -> Metrics:
    """The task's own metrics and the chosen ones; of two chosen ones with one name, the second is called `f1#2`.

    They are tried on one training sample.

    Raises:
        SettingError: not a metric, or the task does not give what it needs.
    """
    if not choices and not task.accumulated:
        return Metrics()
    sample = tuple(column[:1] for column in data.splits["train"])
    training = task.training
    with torch.no_grad():
        measured = task.eval().metrics(sample)
        chosen: dict[str, Any] = {}
        for choice in choices:
            chosen[_unused(choice.label, {*measured, *chosen})] = choice.build()
        metrics = {**task.accumulated, **chosen}
        for name, metric in metrics.items():
            _try(name, metric, task, sample, measured)
    task.train(training)
    over_clients = {name: metric for name, metric in metrics.items() if isinstance(metric, OverClients)}
    return Metrics({name: metric for name, metric in metrics.items() if name not in over_clients}, over_clients)


def _unused(name: str, used: set[str]) -> str:
    count, label = 1, name
    while label in used:
        count += 1
        label = f"{name}#{count}"
    return label


def _try(name: str, metric: Any, task: Task, sample: Samples, measured: Mapping[str, Tensor]) -> None:
    """Refuse what is not a metric, and a metric that cannot be computed for a task."""
    if isinstance(metric, OverClients):
        if metric.of not in measured or not measured[metric.of].ndim:
            raise SettingError(
                f"evaluation.metrics: {name} needs the {metric.of} of each sample, which this task does not measure"
            )
        return
    if not isinstance(metric, Accumulated):
        raise SettingError(
            f"evaluation.metrics: {name} is a {type(metric).__name__}; must have update, compute and reset, "
            "as a torchmetrics.Metric has"
        )
    try:
        predictions, targets = task.outputs(sample)
    except NotImplementedError:
        raise SettingError(
            f"evaluation.metrics: {name} needs predictions, which this task does not give; "
            "a task gives them by `forward` or by `outputs`"
        ) from None
    try:
        _fresh(metric).update(predictions, targets)
    except Exception as error:
        raise SettingError(
            f"evaluation.metrics: {name} cannot be computed from predictions {list(predictions.shape)} and targets "
            f"{list(targets.shape)} ({targets.dtype}): {contributed_line(error)}"
            f"{type(error).__name__}: {' '.join(str(error).split())}"
        ) from error


class Scores:
    """The accumulated metrics in one evaluation.

    Args:
        metrics: by name; copies are used.
        splits: that are evaluated.
        groups: of the samples of the splits.
    """

    def __init__(self, metrics: Mapping[str, Accumulated], splits: Sequence[str], groups: Sequence[Groups]) -> None:
        self.metrics = {split: {name: _fresh(metric) for name, metric in metrics.items()} for split in splits}
        self.groups = [group for group in groups if group.listed and group.split in self.metrics]
        self.outputs: dict[str, list[tuple[Tensor, Tensor]]] = {group.split: [] for group in self.groups}

    def take(self, split: str, predictions: Tensor, targets: Tensor) -> None:
        """Take in the next batch of a split: predictions and targets [n, ...]."""
        predictions, targets = predictions.detach().cpu(), targets.detach().cpu()
        if predictions.dtype in (torch.bfloat16, torch.float16):
            predictions = predictions.float()
        for metric in self.metrics[split].values():
            metric.update(predictions, targets)
        if split in self.outputs:
            self.outputs[split].append((predictions, targets))

    def values(self) -> dict[str, float]:
        """`split/metric`, and `split/metric/group`. A value that is undefined (NaN) or infinite is left out."""
        values: dict[str, float] = {}
        for split, metrics in self.metrics.items():
            for name, metric in metrics.items():
                values |= _numbers(f"{split}/{name}", _defined(metric))
        for group in self.groups:
            predictions, targets = (torch.cat(column) for column in zip(*self.outputs[group.split], strict=True))
            rows = _rows(group, len(targets))
            for name, metric in self.metrics[group.split].items():
                values |= _by_group(f"{group.split}/{name}", metric, group, predictions, targets, rows)
        return values


def _by_group(
    name: str, metric: Accumulated, group: Groups, predictions: Tensor, targets: Tensor, rows: Sequence[Tensor]
) -> dict[str, float]:
    """A metric of each group; of a score of classes, the score of each class on the whole split."""
    values: dict[str, float] = {}
    if group.by == "class" and isinstance(metric, ClassScores):
        for number, score in enumerate(metric.per_class()):
            values |= _numbers(f"{name}/class{number}", score)
        return values
    for label, mine in zip(group.names, rows, strict=True):
        if len(mine):
            part = _fresh(metric)
            values |= _numbers(f"{name}/{label}", _of_rows(part, predictions[mine], targets[mine]))
    if group.mean is not None:
        means = [values[f"{name}/{label}"] for label in group.names if f"{name}/{label}" in values]
        values |= {f"{name}/{group.mean}": sum(means) / len(means)} if means else {}
    return values


def _rows(group: Groups, n: int) -> Sequence[Tensor]:
    """The samples of each group, among the first n."""
    of = group.of[:n].cpu()
    return of.argsort(stable=True).split(torch.bincount(of, minlength=len(group.names)).tolist())  # type: ignore[no-untyped-call]


def _fresh(metric: Accumulated) -> Accumulated:
    metric = copy.deepcopy(metric)
    metric.reset()
    return metric


def _of_rows(metric: Accumulated, predictions: Tensor, targets: Tensor) -> Any:
    """The value on a group; NaN if the metric refuses the group, for example because it is too small."""
    try:
        metric.update(predictions, targets)
        return _defined(metric)
    except ValueError:
        return math.nan


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
