"""The ranking of the user's own runs: a row for each cell, mean and standard deviation over seeds, the best marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollcall.benchmark.config.digest import flatten, plain
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, is_default, places, set_by
from rollcall.benchmark.config.metric import DIRECTIONS, Metric, direction_of
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.render import SIZE, Column, Entry, Number, Table, diverged_number, finite, number
from rollcall.leaderboard.runs import Run, Settings

METHOD = "algorithm"

CONDITIONS = ("participation", "task", "rounds")
"""Rows compete if these settings and their options are equal."""

OF_PANEL = frozenset({"task", "participation", METHOD, "local", "server", "analysis"})
"""Settings that tell the trials of panels apart."""

UNCOVERED = "-"
"""The entry of a cell whose evaluations do not cover the window of final values."""


@dataclass(frozen=True)
class Axis:
    """An axis of an experiment's grid.

    Attributes:
        name: of the axis.
        settings: the dotted settings that it sets.
        labels: by all settings of a trial that are, or are below, one of `settings`.
    """

    name: str
    settings: frozenset[str]
    labels: dict[Settings, str]

    @property
    def named(self) -> bool:
        """Whether the file names its values. Otherwise a label is a choice's name or the value itself."""
        return not all(is_default(label, dict(part).get(self.name, "")) for part, label in self.labels.items())

    def covers(self, setting: str) -> bool:
        """Whether it sets this setting."""
        return any(setting == own or setting.startswith(f"{own}.") for own in self.settings)

    def part(self, settings: Mapping[str, str]) -> Settings:
        """Those of some settings that it covers."""
        return tuple(sorted((key, value) for key, value in settings.items() if self.covers(key)))

    def label(self, settings: Mapping[str, str]) -> str | None:
        """The label of a run with these settings, by dotted name; None if its values are not on the axis."""
        return self.labels.get(self.part(settings))


def axes(experiment: Experiment) -> list[Axis]:
    """The panel, and the axes of the grid without the seed, in the order of the file.

    Raises:
        SettingError: the settings of a place are not allowed.
    """
    paths = {"panel": OF_PANEL} | set_by(experiment)
    made = {name: Axis(name, settings, {}) for name, settings in paths.items() if name != "seed"}
    for place in places(experiment):
        settings = flatten(plain(place.spec))
        for name, label in place.labels.items():
            made[name].labels.setdefault(made[name].part(settings), label)
    return list(made.values())


def only(runs: Sequence[Run], axes: Sequence[Axis], conditions: Mapping[str, Sequence[Any]]) -> list[Run]:
    """The runs with these values of settings.

    Args:
        runs: of one experiment.
        axes: of its grid; `bernoulli` also selects the label `bernoulli#2`, as in `rollcall run --only`.
        conditions: labels by axis, or values by dotted setting.

    Raises:
        SettingError: no run has one of the values.
    """
    kept = list(runs)
    by_name = {axis.name: axis for axis in axes}
    for name, values in conditions.items():
        axis = by_name.get(name)
        both = [(axis.label(run.settings) if axis else None, run.settings.get(name)) for run in kept]
        texts = [[text for text in pair if text is not None] for pair in both]
        for value in values:
            if not any(_is_among(value, own) for own in texts):
                present = sorted({own[0] for own in texts if own})
                if not present:
                    settings = dict.fromkeys([*by_name, *(key for run in runs for key in run.settings)])
                    raise SettingError(f"only: {name!r} is not allowed; must be one of {', '.join(settings)}")
                raise SettingError(f"only {name}: {value!r} is not allowed; must be one of {', '.join(present)}")
        kept = [run for run, own in zip(kept, texts, strict=True) if any(_is_among(value, own) for value in values)]
    return kept


def without_diverged(runs: Sequence[Run]) -> tuple[list[Run], int]:
    """The runs of cells in which no run diverged, and the number of the other cells."""
    diverged = {run.cell for run in runs if run.diverged}
    return [run for run in runs if run.cell not in diverged], len(diverged)


def chooser(text: str, metrics: Sequence[Metric]) -> Metric:
    """The metric of `--best-by NAME` or `NAME=max|min|zero`.

    Args:
        text: the value of the option.
        metrics: of the report, whose directions are known.

    Raises:
        SettingError: the direction is not given and does not follow from the name.
    """
    for direction in DIRECTIONS:
        if text.endswith(f"={direction}"):
            return Metric(text.removesuffix(f"={direction}"), direction)
    known = direction_of(text, metrics)
    if known is not None:
        return Metric(text, known)
    raise SettingError(f"best-by: {text!r} is not allowed; must say which values are better: {text}=max, =min or =zero")


def best_settings(runs: Sequence[Run], metric: Metric, last_rounds: int) -> tuple[list[Run], int]:
    """Of each method, under equal conditions, the runs of the settings whose mean over seeds is best.

    Returns:
        the runs; and the largest number of settings among which one was chosen.
    """
    groups: dict[tuple[str, Settings], dict[Settings, list[Run]]] = {}
    for run in runs:
        by_cell = groups.setdefault((run.settings[METHOD], _conditions(run.cell)), {})
        by_cell.setdefault(run.cell, []).append(run)

    def loss(cell: list[Run]) -> float:
        """Lowest for the best settings; infinite if a run has no value."""
        values = [run.final(metric, last_rounds) for run in cell if run.has(metric) and not run.diverged]
        return metric.penalty(sum(values) / len(values) if len(values) == len(cell) else math.nan)

    best = [run for cells in groups.values() for run in min(cells.values(), key=loss)]
    return best, max(map(len, groups.values()), default=0)


@dataclass(frozen=True)
class Row:
    """A row of a ranking.

    Attributes:
        cell: its labels are the method (the algorithm, with those of its options in which rows differ) and whatever
            else tells rows apart: labels by axis, or values by dotted setting.
        values: final values by the name of the metric; NaN if a run diverged or does not cover the window.
    """

    cell: Cell
    values: dict[str, Number]


@dataclass(frozen=True)
class Ranking:
    """Rows that compete in groups, in each the best first. Rows with diverged runs come last.

    Attributes:
        metrics: the first one ranks.
        groups: rows whose settings of `CONDITIONS` are equal, sorted by these settings; at least one group.
        last_rounds: final values are means over the evaluations of this many last rounds.
    """

    metrics: tuple[Metric, ...]
    groups: list[list[Row]]
    last_rounds: int

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group]

    @property
    def settings(self) -> list[str]:
        """The axes and settings that tell rows apart, besides the method and the rounds."""
        return list(dict.fromkeys(key for row in self.rows for key in row.cell.labels if key != METHOD))

    def short(self, setting: str) -> str:
        """The shortest end of a setting's dotted name that no other varying setting has."""
        parts = setting.split(".")
        ends = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in self.settings) == 1)

    def long_rows(self) -> list[dict[str, Any]]:
        """A row for each cell and metric, in the form of `rollcall.leaderboard.paper.table.long_rows`."""
        return [
            {
                "labels": row.cell.labels,
                "metric": metric.name,
                "mean": finite(row.values[metric.name].mean),
                "sd": finite(row.values[metric.name].sd),
                "seeds": len(row.cell.runs),
                "rounds": row.cell.rounds,
                "planned": row.cell.rounds,
                "evaluations": row.cell.ended.evaluations(metric, self.last_rounds),
                "paper_mean": None,
                "paper_sd": None,
                "source": "own",
            }
            | ({"diverged": row.cell.diverged} if row.cell.diverged else {})
            for row in self.rows
            for metric in self.metrics
        ]

    def table(self) -> Table:
        """The ranking as a table."""
        seeds = [",".join(sorted(row.cell.runs, key=int)) for row in self.rows]
        mixed = len(set(seeds)) > 1  # as when the best settings of a search run with more seeds
        columns = [Column("method", "method", words=True)]
        columns += [Column(self.short(key), key, words=True) for key in self.settings]
        columns += [Column(one.name, one.name, measured=True, arrow=one.arrow, group=one.name) for one in self.metrics]
        columns += [Column("seeds", "seeds", group=SIZE)]
        columns += [Column("which seeds", "which_seeds", words=True, group=SIZE)] if mixed else []
        columns += [Column("rounds", "rounds", group=SIZE)]
        rows: list[list[Entry]] = []
        for row, which in zip(self.rows, seeds, strict=True):
            labels = [row.cell.labels[key] for key in (METHOD, *self.settings)]
            size: list[Entry] = [len(row.cell.runs), *([which] if mixed else []), row.cell.rounds]
            rows.append([*labels, *row.values.values(), *size])
        when = "at the last evaluation" if self.last_rounds == 1 else f"mean of the last {self.last_rounds} rounds"
        arrows = ", ".join(f"{metric.name} {metric.arrow}" for metric in self.metrics)
        caption = f"{arrows}; {when}; mean ± standard deviation over seeds"
        if any(value.text == UNCOVERED for row in self.rows for value in row.values.values()):
            caption += f"; {UNCOVERED}: the evaluations do not cover these rounds (--last-rounds N averages fewer)"
        if mixed:
            caption += "; rows have different seeds (to compare equal ones: --only seed=...)"
        return Table(columns, rows, caption)


def rank(runs: Sequence[Run], metrics: Sequence[Metric], last_rounds: int, axes: Sequence[Axis] = ()) -> Ranking:
    """The ranking of an experiment.

    Args:
        runs: at least one, oldest first. The later one of two runs of a seed counts.
        metrics: at least one; the first one ranks.
        last_rounds: a final value is the mean over the evaluations of this many last rounds.
        axes: of the experiment's grid, see `distinctions`.
    """
    by_settings: dict[Settings, dict[str, Run]] = {}
    for run in runs:
        by_settings.setdefault(run.cell, {})[run.tags["seed"]] = run
    differences = distinctions([dict(settings) for settings in by_settings], axes)
    groups: dict[Settings, list[Row]] = {}
    for (method, labels), (settings, by_seed) in zip(differences, by_settings.items(), strict=True):
        rounds = next(iter(by_seed.values())).rounds
        cell = Cell({METHOD: method, **labels}, rounds, len(by_seed), by_seed)
        row = Row(cell, {metric.name: _number(cell, metric, last_rounds) for metric in metrics})
        groups.setdefault(_conditions(settings), []).append(row)
    ranked = [_ranked(group, metrics) for _, group in sorted(groups.items())]
    return Ranking(tuple(metrics), ranked, last_rounds)


def distinctions(cells: Sequence[dict[str, str]], axes: Sequence[Axis]) -> list[tuple[str, dict[str, str]]]:
    """For each cell its method, and the labels or settings in which cells differ, by axis or dotted setting.

    Args:
        cells: their settings as text, by dotted name.
        axes: cells show their labels on an axis. If a cell is not on it, as after `run --set`, they show instead the
            settings of the axis in which cells differ.
    """
    shown = [axis for axis in axes if _is_shown(axis, cells)]
    columns = [axis for axis in shown if axis.name != METHOD and len({axis.label(cell) for cell in cells}) > 1]
    rest = [
        {key: text for key, text in cell.items() if not any(axis.covers(key) for axis in columns)} for cell in cells
    ]
    differing = [key for key in _differing(rest) if not _is_method(key)]
    options = [key for key in _differing(cells) if _is_method(key) and key != METHOD]
    named = next((axis for axis in shown if axis.name == METHOD), None)
    methods = [(named and named.label(cell)) or _method(cell, cells, options) for cell in cells]
    labels = [{axis.name: axis.label(cell) or "" for axis in columns} for cell in cells]
    settings = [{key: cell.get(key, "") for key in differing} for cell in cells]
    return [(method, own | other) for method, own, other in zip(methods, labels, settings, strict=True)]


def _is_among(value: Any, texts: Sequence[str]) -> bool:
    """Whether a value is one of these texts; a class of a user's file may be named without its file."""
    wanted = value if isinstance(value, str) else flatten({"": value})[""]
    return any(wanted in (text, text.rpartition("#")[0], text.rpartition(":")[2]) for text in texts)


def _conditions(cell: Settings) -> Settings:
    """The settings of a cell that competing rows have in common."""
    return tuple(pair for pair in cell if pair[0].partition(".")[0] in CONDITIONS)


def _ranked(rows: Sequence[Row], metrics: Sequence[Metric]) -> list[Row]:
    """Competing rows in order, the best value of each metric marked; rows with diverged runs have no best value."""

    def mark(row: Row, metric: Metric) -> Number:
        value = row.values[metric.name]
        return replace(value, best=not row.cell.diverged and value.mean == best[metric.name])

    first, best = metrics[0], {}
    for metric in metrics:
        means = [row.values[metric.name].mean for row in rows]  # NaN if a run diverged
        best[metric.name] = metric.best([mean for mean in means if not math.isnan(mean)] or [math.nan])
    ordered = sorted(rows, key=lambda row: (row.cell.diverged, first.penalty(row.values[first.name].mean)))
    return [replace(row, values={metric.name: mark(row, metric) for metric in metrics}) for row in ordered]


def _number(cell: Cell, metric: Metric, last_rounds: int) -> Number:
    """The mean of the runs' final values."""
    if cell.diverged:
        return diverged_number(cell.diverged, len(cell.runs))
    values = cell.finals(metric, last_rounds)
    if len(values) < len(cell.runs):
        return Number(math.nan, math.nan, UNCOVERED)
    return number(values.mean(), values.std(ddof=1), "{:.4f}".format)


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
    """The class of a cell's method, with its file if another method has the same name, and these of its options."""
    method, methods = cell[METHOD], {other[METHOD] for other in cells}
    name = method.rpartition(":")[2]
    is_unique = [other.rpartition(":")[2] for other in methods].count(name) == 1
    chosen = [f"{key.removeprefix(f'{METHOD}.')}={cell[key]}" for key in options if key in cell]
    return " ".join([name if is_unique else method, *chosen])
