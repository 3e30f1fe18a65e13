"""The cells of a search. Each has its own space and gets the same number of samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollcall.benchmark.config.axes import label_of
from rollcall.benchmark.config.dotted import put, put_all
from rollcall.benchmark.config.errors import SettingError, check_one_of, listed
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import GridPoint, grid_points
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.search.space import Domain, domain

VALIDATION = 0.2
"""The share of the training samples that is held out if the experiment holds out none."""


@dataclass(frozen=True)
class SearchCell:
    """A part of the grid that is searched by itself, such as a method.

    Attributes:
        name: the labels of its axes.
        labels: by axis.
        specs: plain settings of its trials, one for each seed and each point of the grid.
        space: the settings to search, in the order of the space.
        milestones: the numbers of rounds after which its samples are compared, ascending; the last is of whole samples.
        share: the share of the last rounds over which the metric is averaged; 0 for the last evaluation alone.
        held_out: whether the search holds out validation samples although the experiment does not.
    """

    name: str
    labels: dict[str, str]
    specs: list[dict[str, Any]]
    space: dict[str, Domain]
    milestones: list[int]
    share: float
    held_out: bool

    def trials(self, settings: Mapping[str, Any]) -> list[Trial]:
        """The trials of a sample, each once; refused if the settings are not allowed together."""
        try:
            trials = (Trial.read(put_all(spec, settings)) for spec in self.specs)
            return list({trial.digest: trial for trial in trials}.values())
        except SettingError as error:
            raise SettingError(f"{self.name}: sample {dict(settings)}: {error}") from None

    @property
    def methods(self) -> set[str]:
        """The names by which a space can address the methods of the cell: label and names."""
        label = self.labels.get("algorithm")
        return {*([label] if label else ()), *(label_of(spec["algorithm"]) for spec in self.specs)}


def refusal(spec: dict[str, Any], path: str, domain: Domain) -> SettingError | None:
    """The error if a trial with these settings does not allow the values of a domain; None if it allows them."""
    try:
        for value in domain.examples:
            Trial.read(put(spec, path, value))
    except SettingError as error:
        return error
    return None


def cells_of(
    experiment: Experiment,
    space: Mapping[str, Any],
    per: Sequence[str],
    metric: Metric,
    rounds: int | None = None,
    parts: int = 1,
) -> list[SearchCell]:
    """The cells of an experiment that has the seeds of the search.

    Samples are compared `parts` times, at equal distances. See `tune` for the others.

    Raises SettingError: an axis or a setting does not exist, or a value is not allowed; or the points of a cell have
    different numbers of rounds.
    """
    grid = grid_points(experiment)
    axes = list(dict.fromkeys(axis for point in grid for axis in point.labels))
    for axis in per:
        check_one_of("per", axis, axes)
    searched_for = {key.rpartition(":")[2] for key in space}
    chosen = [axis for axis in axes if (axis in per if per else axis not in searched_for)]
    groups: dict[tuple[tuple[str, str], ...], list[GridPoint]] = {}
    for point in grid:
        if "analysis" not in point.spec:
            labels = tuple((axis, point.labels[axis]) for axis in chosen if point.labels.get(axis))
            groups.setdefault(labels, []).append(point)
    if not groups:
        raise SettingError(f"experiment: {experiment.name!r} is not allowed; it has no trials to search")
    cells: dict[str, SearchCell] = {}
    last = experiment.report.last_rounds
    for group, members in groups.items():
        # An axis that `--set` made with one value tells nothing.
        shown = [label for axis, label in group if "." not in axis or len({d.labels.get(axis) for d in grid}) > 1]
        name = "/".join(shown) or "all"
        trials = [Trial.read(({} if rounds is None else {"rounds": rounds}) | point.spec) for point in members]
        lengths = sorted({trial.rounds for trial in trials})
        if rounds is None and len(lengths) > 1:
            raise SettingError(
                f"rounds: cell {name} has trials of {' and '.join(map(str, lengths))} rounds; give the rounds of all "
                "samples (--rounds), or other axes that make a cell (--per)"
            )
        if name in cells:
            raise SettingError(f"per: two cells have the name {name!r}; choose other axes that make a cell")
        whole = rounds or lengths[-1]
        milestones = sorted({-(-whole * part // parts) for part in range(1, parts + 1)})
        every = min(milestones[0], *(trial.evaluation.every for trial in trials))
        specs = [
            searched(point.spec, trial, metric, every, milestones) for point, trial in zip(members, trials, strict=True)
        ]
        share = min(1.0, last / lengths[-1]) if last > 1 else 0.0
        held_out = any(spec["task"] != point.spec["task"] for spec, point in zip(specs, members, strict=True))
        cells[name] = SearchCell(name, dict(group), specs, {}, milestones, share, held_out)
    return _with_spaces(list(cells.values()), space)


def searched(
    spec: dict[str, Any], trial: Trial, metric: Metric, every: int, milestones: Sequence[int]
) -> dict[str, Any]:
    """The settings of a trial of the search: it evaluates the metric's split only, which is held out if need be.

    Of `evaluation.metrics` and `evaluation.by`, only what the metric reads is kept: others may not fit its split.
    A method or a task that cannot be searched by this metric is refused.
    """
    at = [rounds for rounds in milestones if rounds % every]
    evaluation: dict[str, Any] = {"every": every, "at": at, "splits": [metric.split]}
    written = spec.get("evaluation") or {}
    _, name, *group = metric.column.split("/")
    metrics = [one for one in written.get("metrics", ()) if label_of(one) == name.partition("#")[0]]
    if metrics:
        evaluation["metrics"] = metrics
    if group and "by" in written:
        evaluation["by"] = written["by"]
    spec = spec | {"evaluation": evaluation, "rounds": milestones[-1]}
    if metric.split != "validation":
        return spec
    if "test" in trial.algorithm.options.values():
        raise SettingError(
            f"algorithm: {trial.algorithm.label} trains with the test split here; a search must not read it"
        )
    if "validation" in trial.task.options:
        return spec if trial.task.options["validation"] else put(spec, "task.validation", VALIDATION)
    if trial.task.source is None:
        raise SettingError(
            f"task: {trial.task.label} cannot hold out validation data; use --metric with another split, such as "
            "train/loss"
        )
    return spec  # a task of the user's own may have a validation split anyway


def _with_spaces(cells: list[SearchCell], space: Mapping[str, Any]) -> list[SearchCell]:
    """The cells with their spaces. A common setting that a cell's method does not allow is left out."""
    methods = sorted({name for cell in cells for name in cell.methods})
    refused: dict[str, SettingError] = {}
    spaces: list[dict[str, Domain]] = [{} for _ in cells]
    for key in sorted(space, key=lambda key: ":" in key):  # those of a method replace common ones
        method, _, path = key.rpartition(":")
        if method and method not in methods:
            raise SettingError(
                f"space: {method!r} is not allowed; must be a method of the experiment: {listed(methods, method)}"
            )
        values = domain(path, space[key])
        for cell, own in zip(cells, spaces, strict=True):
            replaced = any(f"{name}:{path}" in space for name in cell.methods) and not method
            if (method and method not in cell.methods) or replaced:
                continue
            error = refusal(cell.specs[0], path, values)
            if error is None:
                own[path] = values
            elif method:
                raise SettingError(f"space: {cell.name}: {error}")
            else:
                refused.setdefault(path, error)
    for path, error in refused.items():
        if not any(path in own for own in spaces):
            raise SettingError(f"space: {path}: no method allows it ({error})")
    return [replace(cell, space=own) for cell, own in zip(cells, spaces, strict=True)]
