"""The cells of a search. Each has its own space and gets the same number of samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, Place, label_of, places, put
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


def rungs(rounds: int, scheduler: Scheduler) -> list[int]:
    """The numbers of rounds after which samples are compared; the last is the number of rounds of the search."""
    if scheduler == "none":
        return [rounds]
    return sorted({max(1, -(-rounds // ETA**k)) for k in range(RUNGS)})


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
    """

    name: str
    labels: dict[str, str]
    specs: list[dict[str, Any]]
    space: dict[str, Domain]
    rungs: list[int]
    share: float
    held_out: bool

    def trials(self, settings: dict[str, Any], rounds: int) -> list[Trial]:
        """The trials of a sample, each once.

        Raises:
            SettingError: the settings are not allowed together.
        """
        trials = {}
        for spec in self.specs:
            for path, value in settings.items():
                spec = put(spec, path, value)
            trial = Trial.read(spec | {"rounds": rounds})
            trials[trial.digest] = trial
        return list(trials.values())

    def at_edge(self, path: str, value: Any) -> bool:
        """Whether a value lies at the edge of the space of a setting, and the setting allows values beyond it."""
        return any(self._allows(path, one) for one in self.space[path].beyond(value))

    def _allows(self, path: str, value: Any) -> bool:
        try:
            Trial.read(put(self.specs[0], path, value) | {"rounds": 1})
        except SettingError:
            return False
        return True


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
            raise SettingError(f"per: {axis!r} is not allowed; must be one of {', '.join(axes)}")
    chosen = [axis for axis in axes if (axis in per if per else axis not in space.settings)]
    groups: dict[tuple[tuple[str, str], ...], list[Place]] = {}
    for place in grid:
        if "analysis" not in place.spec:
            labels = tuple((axis, place.labels[axis]) for axis in chosen if place.labels.get(axis))
            groups.setdefault(labels, []).append(place)
    if not groups:
        raise SettingError(f"experiment: {experiment.name!r} is not allowed; it has no trials to search")
    cells: list[Cell] = []
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
        compared = rungs(rounds or lengths[-1], scheduler)
        pairs = zip(members, trials, strict=True)
        specs = [searched(place.spec, trial, metric, compared) for place, trial in pairs]
        share = min(1.0, last / lengths[-1]) if last > 1 else 0.0
        if any(cell.name == name for cell in cells):
            raise SettingError(f"per: two cells have the name {name!r}; choose other axes that make a cell")
        held_out = any(spec["task"] != place.spec["task"] for spec, place in zip(specs, members, strict=True))
        cells.append(Cell(name, dict(group), specs, {}, compared, share, held_out))
    return _with_spaces(cells, space)


def searched(spec: dict[str, Any], trial: Trial, metric: Metric, compared: Sequence[int]) -> dict[str, Any]:
    """The settings of a trial of the search: it evaluates the metric's split only, which is held out if need be.

    Args:
        spec: of a trial of the experiment.
        trial: the same, validated.
        metric: of the search.
        compared: the rounds after which samples are compared. The trial is evaluated after each of them, even if its
            run goes on, so a run without these evaluations has another digest and is not reused.

    Raises:
        SettingError: the method or the task cannot be searched by this metric.
    """
    every = min(trial.evaluation.every, compared[0])
    at = [rounds for rounds in compared if rounds % every]
    read = read_by(metric, spec.get("evaluation") or {})
    spec = spec | {"evaluation": {"every": every, "at": at, "splits": [metric.split], **read}}
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


def read_by(metric: Metric, evaluation: dict[str, Any]) -> dict[str, Any]:
    """The part of `evaluation.metrics` and `evaluation.by` that the metric reads; others may not fit its split."""
    _, name, *group = metric.column.split("/")
    metrics = [one for one in evaluation.get("metrics", ()) if label_of(one) == name.partition("#")[0]]
    return {
        **({"metrics": metrics} if metrics else {}),
        **({"by": evaluation["by"]} if group and "by" in evaluation else {}),
    }


def _with_spaces(cells: list[Cell], space: Space) -> list[Cell]:
    """The cells with their spaces. A common setting that a cell's method does not have is left out."""
    methods = {name for cell in cells for name in _methods(cell)}
    for name in space.methods:
        if name not in methods:
            raise SettingError(
                f"space: {name!r} is not allowed; must be a method of the experiment: {', '.join(sorted(methods))}"
            )
    refused: dict[str, SettingError] = {}
    accepted: set[str] = set()
    spaces: list[dict[str, Domain]] = []
    for cell in cells:
        own = {path: one for name in _methods(cell) for path, one in space.methods.get(name, {}).items()}
        for path, domain in own.items():
            _refusal(cell, path, domain, required=True)
        domains: dict[str, Domain] = {}
        for path, domain in space.common.items():
            refusal = None if path in own else _refusal(cell, path, domain, required=False)
            if refusal is None:
                accepted.add(path)
                domains[path] = own.get(path, domain)
            else:
                refused.setdefault(path, refusal)
        spaces.append(domains | own)
    for path, refusal in refused.items():
        if path not in accepted:
            raise SettingError(f"space: {path}: no method has this setting ({refusal})")
    return [replace(cell, space=own) for cell, own in zip(cells, spaces, strict=True)]


def _refusal(cell: Cell, path: str, domain: Domain, required: bool) -> SettingError | None:
    """The error if the method of a cell lacks a setting; raised if it allows some values or the setting is required."""
    errors: list[SettingError] = []
    changes = False
    unchanged = Trial.read(cell.specs[0] | {"rounds": 1}).complete()
    for value in domain.examples:
        try:
            changes |= Trial.read(put(cell.specs[0], path, value) | {"rounds": 1}).complete() != unchanged
        except SettingError as error:
            errors.append(error)
    if errors and (required or changes):
        raise SettingError(f"space: {cell.name}: {errors[0]}")
    return errors[0] if errors else None


def _methods(cell: Cell) -> list[str]:
    """The names by which a space can address the methods of a cell: labels and names."""
    label = cell.labels.get("algorithm")
    return list(dict.fromkeys([*([label] if label else []), *(label_of(spec["algorithm"]) for spec in cell.specs)]))
