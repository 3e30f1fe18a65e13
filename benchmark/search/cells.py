"""The cells of a search. Each has its own space and gets the same number of samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.experiment import Experiment, GridPoint, label_of, places, put
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.search.space import Domain, Space

VALIDATION = 0.2
"""The share of the training samples that is held out if the experiment holds out none."""

Scheduler = Literal["none", "asha", "median"]

RUNGS = 3
"""The number of rungs of a scheduler that stops samples."""

ETA = 3
"""Reduction factor: a rung has this multiple of the rounds of the rung below, and `asha` promotes 1 of this number."""


@dataclass(frozen=True)
class Cell:
    """A part of the grid that is searched by itself, such as a method.

    Attributes:
        name: the labels of its axes.
        labels: by axis.
        specs: plain settings of its trials, one for each seed and each place of the grid.
        space: the settings to search, in the order of the space.
        rungs: the numbers of rounds after which its samples are compared, ascending; the last is of whole samples.
        share: the share of the last rounds over which the metric is averaged; 0 for the last evaluation alone.
        held_out: whether the search holds out validation samples although the experiment does not.
        shared: the settings to search that all cells draw alike.
    """

    name: str
    labels: dict[str, str]
    specs: list[dict[str, Any]]
    space: dict[str, Domain]
    rungs: list[int]
    share: float
    held_out: bool
    shared: dict[str, Domain] = field(default_factory=dict)

    def trials(self, settings: dict[str, Any], rounds: int) -> list[Trial]:
        """The trials of a sample, each once; refused if the settings are not allowed together."""
        trials = {}
        for spec in self.specs:
            for path, value in settings.items():
                spec = put(spec, path, value)
            trial = Trial.read(spec | {"rounds": rounds})
            trials[trial.digest] = trial
        return list(trials.values())

    def example(self, path: str, value: Any) -> Trial | SettingError:
        """A trial of the cell with this value of a setting, or the error if it is not allowed."""
        try:
            return Trial.read(put(self.specs[0], path, value) | {"rounds": 1})
        except SettingError as error:
            return error

    def at_edge(self, path: str, value: Any) -> bool:
        """Whether a value lies at the edge of the space of a setting, and the setting allows values beyond it."""
        return any(isinstance(self.example(path, one), Trial) for one in self.space[path].beyond(value))

    @property
    def methods(self) -> set[str]:
        """The names by which a space can address the methods of the cell: label and names."""
        label = self.labels.get("algorithm")
        return {*([label] if label else ()), *(label_of(spec["algorithm"]) for spec in self.specs)}

    def refusal(self, path: str, domain: Domain, required: bool) -> SettingError | None:
        """The error if the method lacks a setting; raised if it allows some values or the setting is required."""
        unchanged = Trial.read(self.specs[0] | {"rounds": 1}).complete()
        examples = [self.example(path, value) for value in domain.examples]
        errors = [one for one in examples if isinstance(one, SettingError)]
        changes = any(isinstance(one, Trial) and one.complete() != unchanged for one in examples)
        if errors and (required or changes):
            raise SettingError(f"space: {self.name}: {errors[0]}")
        return errors[0] if errors else None


def cells_of(
    experiment: Experiment,
    space: Space,
    per: Sequence[str],
    metric: Metric,
    rounds: int | None = None,
    scheduler: Scheduler = "none",
) -> list[Cell]:
    """The cells of an experiment, with the seeds that it has.

    Args:
        experiment: with the seeds of the search.
        space: of the search.
        per: the axes that make a cell; empty for all axes that are not searched.
        metric: evaluated in the trials, and no other split is.
        rounds: of a sample; by default those of the cell in the experiment.
        scheduler: which samples are stopped early.

    Raises:
        SettingError: an axis or a setting does not exist, or a value is not allowed; or the places of a cell have
            different numbers of rounds.
    """
    grid = places(experiment)
    axes = list(dict.fromkeys(axis for place in grid for axis in place.labels))
    for axis in per:
        if axis not in axes:
            raise SettingError(f"per: {axis!r} is not allowed; must be one of {listed(axes, axis)}")
    chosen = [axis for axis in axes if (axis in per if per else axis not in space.settings)]
    groups: dict[tuple[tuple[str, str], ...], list[GridPoint]] = {}
    for place in grid:
        if "analysis" not in place.spec:
            labels = tuple((axis, place.labels[axis]) for axis in chosen if place.labels.get(axis))
            groups.setdefault(labels, []).append(place)
    if not groups:
        raise SettingError(f"experiment: {experiment.name!r} is not allowed; it has no trials to search")
    cells: dict[str, Cell] = {}
    last = experiment.report.last_rounds
    for group, members in groups.items():
        # An axis that `--set` made with one value tells nothing.
        shown = [label for axis, label in group if "." not in axis or len({d.labels.get(axis) for d in grid}) > 1]
        name = "/".join(shown) or "all"
        trials = [Trial.read(({} if rounds is None else {"rounds": rounds}) | place.spec) for place in members]
        lengths = sorted({trial.rounds for trial in trials})
        if rounds is None and len(lengths) > 1:
            raise SettingError(
                f"rounds: cell {name} has trials of {' and '.join(map(str, lengths))} rounds; give the rounds of all "
                "samples (--rounds), or other axes that make a cell (--per)"
            )
        whole = rounds or lengths[-1]
        rungs = [whole] if scheduler == "none" else sorted({max(1, -(-whole // ETA**k)) for k in range(RUNGS)})
        specs = [searched(place.spec, trial, metric, rungs) for place, trial in zip(members, trials, strict=True)]
        share = min(1.0, last / lengths[-1]) if last > 1 else 0.0
        if name in cells:
            raise SettingError(f"per: two cells have the name {name!r}; choose other axes that make a cell")
        held_out = any(spec["task"] != place.spec["task"] for spec, place in zip(specs, members, strict=True))
        cells[name] = Cell(name, dict(group), specs, {}, rungs, share, held_out)
    return _with_spaces(list(cells.values()), space)


def searched(spec: dict[str, Any], trial: Trial, metric: Metric, rungs: Sequence[int]) -> dict[str, Any]:
    """The settings of a trial of the search: it evaluates the metric's split only, which is held out if need be.

    Of `evaluation.metrics` and `evaluation.by`, only what the metric reads is kept: others may not fit its split. The
    trial is evaluated after each rung, even if its run goes on, so a run without these evaluations has another digest.
    A method or a task that cannot be searched by this metric is refused.
    """
    every = min(trial.evaluation.every, rungs[0])
    at = [rounds for rounds in rungs if rounds % every]
    evaluation: dict[str, Any] = {"every": every, "at": at, "splits": [metric.split]}
    written = spec.get("evaluation") or {}
    _, name, *group = metric.column.split("/")
    metrics = [one for one in written.get("metrics", ()) if label_of(one) == name.partition("#")[0]]
    if metrics:
        evaluation["metrics"] = metrics
    if group and "by" in written:
        evaluation["by"] = written["by"]
    spec = spec | {"evaluation": evaluation}
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


def _with_spaces(cells: list[Cell], space: Space) -> list[Cell]:
    """The cells with their spaces. A common setting that a cell's method does not have is left out."""
    methods = {name for cell in cells for name in cell.methods}
    for name in space.methods:
        if name not in methods:
            raise SettingError(
                f"space: {name!r} is not allowed; must be a method of the experiment: {listed(sorted(methods), name)}"
            )
    refused: dict[str, SettingError] = {}
    spaced = []
    for cell in cells:
        own: dict[str, Domain] = {}
        for name in sorted(cell.methods & space.methods.keys()):
            own |= space.methods[name]
        for path, domain in own.items():
            cell.refusal(path, domain, required=True)
        common: dict[str, Domain] = {}
        for path, domain in space.common.items():
            refusal = None if path in own else cell.refusal(path, domain, required=False)
            if refusal is None:
                common[path] = domain
            else:
                refused.setdefault(path, refusal)
        spaced.append(replace(cell, space=common | own, shared=space.common))
    for path, refusal in refused.items():
        if not any(path in cell.space for cell in spaced):
            raise SettingError(f"space: {path}: no method has this setting ({refusal})")
    return spaced
