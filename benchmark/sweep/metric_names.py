"""The columns that a trial will record, known before it runs."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.evaluation import Costs, named
from rollcall.benchmark.federation.module import Federation


def check_metrics(metrics: Mapping[str, Iterable[Metric]], *sweeps: Iterable[Trial | Analysis]) -> None:
    """Refuse a metric that no trial will record. The columns of an analysis are not known in advance.

    Args:
        metrics: by the setting that names them, such as `report.metrics`.
        sweeps: the trials that will run; then further trials of the experiment, which are not run now.

    Raises:
        SettingError: names the metric and the columns that are recorded.
    """
    unknown: dict[str, str] = {}
    for field, metrics_named in metrics.items():
        for metric in metrics_named:
            unknown.setdefault(metric.column, field)
    recorded: dict[str, None] = {}
    seen = set()
    for sweep, trials in enumerate(sweeps):
        for trial in trials:
            if not unknown or isinstance(trial, Analysis):
                return
            kind = trial.model_copy(update={"seed": 0, "rounds": 1}).digest
            if kind in seen:
                continue
            seen.add(kind)
            try:
                federation = build(trial)
            except SettingError:
                if sweep:  # such as a data set that is not here, which nobody has asked for
                    return
                raise
            names, whole = columns(federation, trial), over_whole_splits(federation, trial)
            recorded |= dict.fromkeys([*names, *whole])
            groups = tuple(f"{name}/" for name in whole)
            unknown = {
                column: field
                for column, field in unknown.items()
                if column not in (*names, *whole) and not column.startswith(groups)
            }
    for column, field in unknown.items():
        raise SettingError(f"{field}: {column!r} is not allowed; no trial records it. Recorded: {', '.join(recorded)}")


def columns(federation: Federation, trial: Trial) -> list[str]:
    """The columns of the history of a trial, without `round` and without those of `over_whole_splits`."""
    names = []
    federation.model.task.eval()
    for split in _splits(federation, trial):
        batch = tuple(column[:2] for column in federation.data.splits[split])
        with torch.no_grad():
            metrics = federation.model.task.metrics(batch)
        names += [f"{split}/{name}" for name in metrics]
        for groups in federation.groups:
            if groups.split == split:
                ends = [*groups.names, *([groups.mean] if groups.mean else [])]
                names += [f"{split}/{name}/{end}" for name, values in metrics.items() if values.ndim for end in ends]
    names = _of_every_model(names, federation)
    weights = {} if federation.weights is None else federation.weights.measured()
    return [*names, *weights, *Costs().named(memory=0)]


def over_whole_splits(federation: Federation, trial: Trial) -> list[str]:
    """The metrics of `evaluation.metrics`, `split/metric`.

    The columns of groups, and those of a metric with several values, begin with such a name and a slash. Which they
    are is known after the first evaluation.
    """
    by_client = {groups.split for groups in federation.groups if groups.by == "client"}
    names = [
        f"{split}/{name}"
        for split in _splits(federation, trial)
        for name in [*federation.metrics.accumulated, *(federation.metrics.over_clients if split in by_client else ())]
    ]
    return _of_every_model(names, federation)


def _of_every_model(names: Sequence[str], federation: Federation) -> list[str]:
    """The names of metrics for each model that is evaluated."""
    measured = dict.fromkeys(names, 0.0)
    return [name for model in federation.eval_models for name in named(measured, model)]


def _splits(federation: Federation, trial: Trial) -> list[str]:
    last = trial.evaluation.last
    return list(dict.fromkeys([*federation.splits_at(0), *((last and last.splits) or ())]))
