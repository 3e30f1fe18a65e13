"""The ranking of the user's own runs: a row for each cell, mean and standard deviation over seeds, the best marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from rollcall.benchmark.config.digest import flatten, plain
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, is_default, places, set_by
from rollcall.benchmark.config.metric import DIRECTIONS, Metric, direction_of
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
    """A cell of the experiment.

    Attributes:
        method: the algorithm, with those of its options in which rows differ.
        settings: what else tells rows apart: labels by axis, or values by dotted setting.
        conditions: the settings of `CONDITIONS`. Rows compete if these are equal.
        seeds: number of runs, diverged ones included.
        which: the seeds of the runs.
        rounds: number of rounds.
        values: final values by the name of the metric; NaN if a run diverged or does not cover the window.
        evaluations: how many evaluations of a run a final value is of, by the name of the metric.
        curves: of the first metric, [evaluations, seeds], indexed by round, without diverged runs.
        diverged: number of runs that diverged.
    """

    method: str
    settings: dict[str, str]
    conditions: Settings
    seeds: int
    which: str
    rounds: int
    values: dict[str, Number]
    evaluations: dict[str, int]
    curves: pd.DataFrame
    diverged: int = 0


@dataclass(frozen=True)
class Ranking:
    """Rows sorted by their conditions, and the best first under each. Rows with diverged runs come last.

    Attributes:
        metrics: the first one ranks.
        rows: at least one.
        last_rounds: final values are means over the evaluations of this many last rounds.
        origin: versions and commits of the code that made the runs, in words.
    """

    metrics: tuple[Metric, ...]
    rows: list[Row]
    last_rounds: int
    origin: str

    @property
    def settings(self) -> list[str]:
        """The axes and settings that tell rows apart, besides the method and the rounds."""
        return list(dict.fromkeys(key for row in self.rows for key in row.settings))

    @property
    def groups(self) -> list[list[Row]]:
        """The rows that compete, group by group."""
        return list(_competing(self.rows).values())

    def short(self, setting: str) -> str:
        """The shortest end of a setting's dotted name that no other varying setting has."""
        parts = setting.split(".")
        ends = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in self.settings) == 1)

    def long_rows(self) -> list[dict[str, Any]]:
        """A row for each cell and metric, in the form of `rollcall.leaderboard.paper.table.long_rows`."""
        return [
            {
                "labels": {METHOD: row.method, **row.settings},
                "metric": name,
                "mean": finite(value.mean),
                "sd": finite(value.sd),
                "seeds": row.seeds,
                "rounds": row.rounds,
                "planned": row.rounds,
                "evaluations": row.evaluations[name],
                "paper_mean": None,
                "paper_sd": None,
                "source": "own",
            }
            | ({"diverged": row.diverged} if row.diverged else {})
            for row in self.rows
            for name, value in row.values.items()
        ]

    def table(self) -> Table:
        """The ranking as a table."""
        mixed = len({row.which for row in self.rows}) > 1  # as when the best settings of a search run with more seeds
        columns = [Column("method", "method", words=True)]
        columns += [Column(self.short(key), key, words=True) for key in self.settings]
        columns += [Column(one.name, one.name, measured=True, arrow=one.arrow, group=one.name) for one in self.metrics]
        columns += [Column("seeds", "seeds", group=SIZE)]
        columns += [Column("which seeds", "which_seeds", words=True, group=SIZE)] if mixed else []
        columns += [Column("rounds", "rounds", group=SIZE)]
        rows: list[list[Entry]] = []
        for row in self.rows:
            which = [row.which] if mixed else []
            settings = [row.settings[key] for key in self.settings]
            rows.append([row.method, *settings, *row.values.values(), row.seeds, *which, row.rounds])
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
    cells: dict[Settings, dict[str, Run]] = {}
    for run in runs:
        cells.setdefault(run.cell, {})[run.tags["seed"]] = run
    differences = distinctions([dict(cell) for cell in cells], axes)
    rows = [
        _row(method, settings, cell, by_seed, metrics, last_rounds)
        for (method, settings), (cell, by_seed) in zip(differences, cells.items(), strict=True)
    ]
    rows.sort(key=lambda row: (row.diverged, metrics[0].penalty(row.values[metrics[0].name].mean)))
    marked = [row for competitors in _competing(rows).values() for row in _marked(competitors, metrics)]
    versions, commits = (", ".join(sorted({run.tags[tag] for run in runs})) for tag in ("version", "commit"))
    return Ranking(tuple(metrics), marked, last_rounds, f"Rollcall {versions}, commit {commits}")


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


def _competing(rows: Sequence[Row]) -> dict[Settings, list[Row]]:
    """Rows that compete, in groups sorted by their conditions."""
    groups: dict[Settings, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.conditions, []).append(row)
    return dict(sorted(groups.items()))


def _marked(rows: Sequence[Row], metrics: Sequence[Metric]) -> list[Row]:
    """Competing rows, the best value of each metric marked. Values of rows with diverged runs are not marked."""
    best = {}
    for metric in metrics:
        means = [row.values[metric.name].mean for row in rows if not row.diverged]
        best[metric.name] = metric.best([mean for mean in means if not math.isnan(mean)] or [math.nan])
    return [
        replace(
            row,
            values={
                name: replace(value, best=not row.diverged and value.mean == best[name])
                for name, value in row.values.items()
            },
        )
        for row in rows
    ]


def _row(
    method: str,
    settings: dict[str, str],
    cell: Settings,
    by_seed: Mapping[str, Run],
    metrics: Sequence[Metric],
    last_rounds: int,
) -> Row:
    """The row of a cell with its runs by seed."""
    ended = {seed: run for seed, run in by_seed.items() if not run.diverged}
    diverged = len(by_seed) - len(ended)
    values, evaluations = {}, {}
    for metric in metrics:
        final = pd.Series([run.final(metric, last_rounds) for run in ended.values()], dtype=float)
        windows = [len(run.window(metric, last_rounds)) for run in ended.values() if metric.threshold is None]
        evaluations[metric.name] = min(windows, default=0)
        if diverged:
            values[metric.name] = diverged_number(diverged, len(by_seed))
        elif final.isna().any():
            values[metric.name] = Number(math.nan, math.nan, UNCOVERED)
        else:
            values[metric.name] = number(final.mean(), final.std(ddof=1), "{:.4f}".format)
    return Row(
        method=method,
        settings=settings,
        conditions=_conditions(cell),
        seeds=len(by_seed),
        which=",".join(sorted(by_seed, key=int)),
        rounds=next(iter(by_seed.values())).rounds,
        values=values,
        evaluations=evaluations,
        curves=pd.DataFrame({seed: run.history[metrics[0].column] for seed, run in ended.items()}),
        diverged=diverged,
    )


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
