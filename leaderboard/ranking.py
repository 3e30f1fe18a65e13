"""The ranking of the user's own runs: which of them count, their labels, and their order."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollcall.benchmark.config.axes import is_default, is_label, is_number
from rollcall.benchmark.config.digest import flatten
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points, set_by
from rollcall.benchmark.config.metric import DIRECTIONS, Metric, direction_of
from rollcall.leaderboard.cells import Cell, key_of, with_own_methods
from rollcall.leaderboard.runs import FlatSettings, Run

METHOD = "algorithm"

CONDITIONS = ("clock", "participation", "task", "rounds")
"""Rows compete if these settings and their options are equal."""

OF_PANEL = frozenset({"task", "participation", "clock", METHOD, "local", "server", "analysis"})
"""Settings that tell the trials of panels apart."""


@dataclass(frozen=True)
class Axis:
    """An axis of an experiment's grid: the dotted settings that it sets, and its labels.

    A label is by all settings of a trial that are, or are below, one of `settings`.
    """

    name: str
    settings: frozenset[str]
    labels: dict[FlatSettings, str]

    @property
    def named(self) -> bool:
        """Whether the file names its values. Otherwise a label is a choice's name or the value itself."""
        return not all(is_default(label, dict(part).get(self.name, "")) for part, label in self.labels.items())

    def covers(self, setting: str) -> bool:
        return any(setting == own or setting.startswith(f"{own}.") for own in self.settings)

    def part(self, settings: Mapping[str, str]) -> FlatSettings:
        """Those of some settings that it covers."""
        return tuple(sorted((key, value) for key, value in settings.items() if self.covers(key)))

    def label(self, settings: Mapping[str, str]) -> str | None:
        """The label of a run with these settings, by dotted name; None if its values are not on the axis."""
        return self.labels.get(self.part(settings))


def axes(experiment: Experiment, runs: Sequence[Run] = ()) -> list[Axis]:
    """The panel, and the axes of the grid without the seed, in the file's order. Own methods of runs are on one."""
    experiment = with_own_methods(experiment, runs)
    paths = {"panel": OF_PANEL} | set_by(experiment)
    made = {name: Axis(name, settings, {}) for name, settings in paths.items() if name != "seed"}
    for point in grid_points(experiment):
        settings = point.settings
        for name, label in point.labels.items():
            made[name].labels.setdefault(made[name].part(settings), label)
    return list(made.values())


def only(runs: Sequence[Run], axes: Sequence[Axis], conditions: Mapping[str, Sequence[Any]]) -> list[Run]:
    """The runs of an experiment with these conditions: labels by axis, or values by dotted setting.

    `bernoulli` also selects the label `bernoulli#2`, as in `rollcall run --only`.

    Raises SettingError: no run has one of the values.
    """
    kept = list(runs)
    by_name = {axis.name: axis for axis in axes}
    for name, values in conditions.items():
        axis = by_name.get(name)
        both = [(axis.label(run.settings) if axis else None, run.settings.get(name)) for run in kept]
        texts = [[text for text in pair if text is not None] for pair in both]
        present = sorted({own[0] for own in texts if own})
        for value in values:
            if not any(_is_among(value, own) for own in texts):
                settings = dict.fromkeys([*by_name, *(key for run in runs for key in run.settings)])
                if axis and not present:
                    raise SettingError(f"only: {name!r} is not allowed; after --set or --tuned no run is on it")
                at, wrong, allowed = (f"only {name}", value, present) if present else ("only", name, settings)
                raise SettingError(f"{at}: {wrong!r} is not allowed; must be one of {', '.join(allowed)}")
        kept = [run for run, own in zip(kept, texts, strict=True) if any(_is_among(value, own) for value in values)]
    return kept


def metric_of(option: str, text: str, known: Sequence[Metric]) -> Metric:
    """The metric of an option such as `--metric`: NAME, or NAME=max, =min or =zero; `known` ones tell a direction."""
    name, _, direction = text.rpartition("=")
    if name and direction in DIRECTIONS:
        return Metric(name, direction)
    if (follows := direction_of(text, known)) is not None:
        return Metric(text, follows)
    raise SettingError(
        f"{option}: {text!r} is not allowed; must say which values are better: {text}=max, =min or =zero"
    )


@dataclass(frozen=True)
class Ranking:
    """Cells that compete in groups, in each the best first. Cells with diverged runs come last.

    The labels of a cell are its method (the algorithm, with those of its options in which competing cells differ) and
    whatever else tells cells apart: labels by axis, or values by dotted setting.

    The first metric ranks. There is at least one group: cells whose settings of `CONDITIONS` are equal.
    """

    metrics: tuple[Metric, ...]
    groups: list[list[Cell]]
    last_rounds: int

    @property
    def cells(self) -> list[Cell]:
        return [cell for group in self.groups for cell in group]

    @property
    def settings(self) -> list[str]:
        """The axes and settings that tell cells apart, besides the method and the rounds."""
        return list(dict.fromkeys(key for cell in self.cells for key in cell.labels if key != METHOD))

    @property
    def equal(self) -> list[str]:
        """The settings, by their short names, that are equal within each group and differ between groups."""
        cells = [[cell.labels | {"rounds": str(cell.rounds)} for cell in group] for group in self.groups]
        names = [*self.settings, "rounds"]
        within = [name for name in names if all(len({one[name] for one in group}) == 1 for group in cells)]
        differing = [name for name in within if len({group[0][name] for group in cells}) > 1]
        return [name if name == "rounds" else self.short(name) for name in differing]

    def short(self, setting: str) -> str:
        """The shortest end of a setting's dotted name that no other varying setting has."""
        parts = setting.split(".")
        ends = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
        others = [f".{other}" for other in self.settings]
        return next((end for end in ends if sum(other.endswith(f".{end}") for other in others) == 1), setting)


def rank(
    runs: Sequence[Run], metrics: Sequence[Metric], last_rounds: int, axes: Sequence[Axis] = (), planned: int = 0,
    searched: Mapping[str, str] | None = None,
) -> Ranking:  # fmt: skip
    """The ranking of an experiment by its runs, at least one, oldest first: of two runs of a seed the later counts.

    The user's own runs replace all kept ones of equal settings and rounds: no mean mixes the two.
    The first metric ranks; a final value is the mean over the evaluations of the last rounds. `axes` are of the grid,
    see `row_labels`. `planned` is the number of rounds that the file asks for, 0 if panels ask for different ones. For
    `searched` see `rollcall.leaderboard.cells.searches`.
    """
    by_settings: dict[FlatSettings, dict[str, Run]] = {}
    own = {run.cell for run in runs if run.source == "own"}
    for run in (run for run in runs if run.source == "own" or run.cell not in own):
        by_settings.setdefault(run.cell, {})[run.tags["seed"]] = run
    differences = row_labels([dict(settings) for settings in by_settings], axes)
    groups: dict[FlatSettings, list[Cell]] = {}
    for (method, labels), (settings, by_seed) in zip(differences, by_settings.items(), strict=True):
        rounds = next(iter(by_seed.values())).rounds
        search = searched.get(key_of(next(iter(by_seed.values())).spec), "") if searched else ""
        cell = Cell({METHOD: method, **labels}, max(rounds, planned), len(by_seed), by_seed, searched=search)
        groups.setdefault(conditions_of(settings), []).append(cell)

    def in_order(group: tuple[FlatSettings, list[Cell]]) -> list[tuple[str, float, str]]:
        return [(name, float(value) if is_number(value) else math.inf, value) for name, value in group[0]]

    def place(cell: Cell) -> tuple[int, float]:
        return cell.diverged, metrics[0].penalty(cell.mean(metrics[0], last_rounds))

    in_groups = [sorted(group, key=place) for _, group in sorted(groups.items(), key=in_order)]
    return Ranking(tuple(metrics), in_groups, last_rounds)


def row_labels(cells: Sequence[dict[str, str]], axes: Sequence[Axis]) -> list[tuple[str, dict[str, str]]]:
    """For each cell its method, and the labels or settings in which cells differ, by axis or dotted setting.

    A method has an option in its name only if cells of it that compete differ in the option: a method whose options
    were searched for each condition keeps one name. Cells show their labels on an axis. If a cell is not on it, as
    after `run --set`, they show instead the settings of the axis in which cells differ.
    """
    shown = [axis for axis in axes if _is_shown(axis, cells)]
    naming = [axis for axis in shown if axis.name != "panel" and METHOD in axis.settings][:1]
    others = [axis for axis in shown if axis not in naming and axis.name != METHOD]
    columns = [axis for axis in others if len({axis.label(cell) for cell in cells}) > 1]
    on_axes = [*naming, *columns]
    rest = [
        {key: text for key, text in cell.items() if not any(axis.covers(key) for axis in on_axes)} for cell in cells
    ]
    differing = [key for key in _differing(rest) if not _is_method(key)]
    competing: dict[tuple[FlatSettings, tuple[str | None, ...]], list[dict[str, str]]] = {}
    for cell in cells:
        place = conditions_of(tuple(sorted(cell.items()))), tuple(axis.label(cell) for axis in columns)
        competing.setdefault(place, []).append(cell)
    among = {key for group in competing.values() for key in _differing(group)}
    options = sorted(key for key in among if _is_method(key) and key != METHOD)
    methods = [next((axis.label(cell) for axis in naming), None) or _method(cell, cells, options) for cell in cells]
    labels = [{axis.name: axis.label(cell) or "" for axis in columns} for cell in cells]
    settings = [{key: cell.get(key, "") for key in differing} for cell in cells]
    return [(method, own | other) for method, own, other in zip(methods, labels, settings, strict=True)]


def _is_among(value: Any, texts: Sequence[str]) -> bool:
    """Whether a value is one of these texts; a class of a user's file may be named without its file."""
    wanted = value if isinstance(value, str) else flatten({"": value}).get("", "")
    return any(is_label(text, value) or wanted in (text, text.rpartition(":")[2]) for text in texts)


def conditions_of(cell: FlatSettings) -> FlatSettings:
    """The settings of a cell that competing rows have in common."""
    return tuple(pair for pair in cell if pair[0].partition(".")[0] in CONDITIONS)


def _is_shown(axis: Axis, cells: Sequence[dict[str, str]]) -> bool:
    """Whether cells show their labels on this axis. Methods show their options, unless the file names them."""
    if axis.name == "rounds" or (_is_method(axis.name) and not (axis.name == METHOD and axis.named)):
        return False
    return all(axis.label(cell) is not None for cell in cells)


def _is_method(setting: str) -> bool:
    return setting.partition(".")[0] == METHOD


def _differing(cells: Sequence[dict[str, str]]) -> list[str]:
    """The settings in which cells differ, without the rounds; an option of a choice if cells of that choice differ."""
    keys = sorted({key for cell in cells for key in cell} - {"rounds"})
    differing = []
    for key in keys:
        above = [other for other in keys if key.startswith(f"{other}.")]
        texts: dict[tuple[str, ...], set[str]] = {}
        for cell in cells:
            if all(other in cell for other in above):
                texts.setdefault(tuple(cell[other] for other in above), set()).add(cell.get(key, ""))
        if any(len(distinct) > 1 for distinct in texts.values()):
            differing.append(key)
    return differing


def _method(cell: dict[str, str], cells: Sequence[dict[str, str]], options: Sequence[str]) -> str:
    """The class of a cell's method or its analysis, with the file if two have its name, and these options."""
    method, *others = (one.get(METHOD) or one["analysis"] for one in (cell, *cells))
    name = method.rpartition(":")[2]
    is_unique = [other.rpartition(":")[2] for other in {*others}].count(name) == 1
    chosen = [f"{key.removeprefix(f'{METHOD}.')}={cell[key]}" for key in options if key in cell]
    return " ".join([name if is_unique else method, *chosen])
