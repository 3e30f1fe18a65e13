"""The ranking of an experiment: a row for each cell, mean and standard deviation over seeds, the best marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.ranking.axes import Axis
from rollcall.leaderboard.ranking.distinctions import METHOD, distinctions
from rollcall.leaderboard.run import Run, Settings
from rollcall.leaderboard.table import SIZE, Column, Entry, Number, Table, diverged_number, finite, number

CONDITIONS = ("participation", "task", "rounds")
"""Rows compete if these settings and their options are equal."""


UNCOVERED = "-"
"""The entry of a cell whose evaluations do not cover the window of final values."""


def is_condition(setting: str) -> bool:
    """Whether competing rows must have this setting in common."""
    return setting.partition(".")[0] in CONDITIONS


@dataclass(frozen=True)
class Row:
    """A cell of the experiment.

    Attributes:
        method: the algorithm, with those of its options in which rows differ.
        settings: what else tells rows apart: labels by axis, or values by dotted setting.
        conditions: the settings of `CONDITIONS`. Rows compete if these are equal.
        seeds: number of runs, diverged ones included.
        which: the seeds of the runs.
        diverged: number of runs that diverged.
        rounds: number of rounds.
        values: final values by the name of the metric; NaN if a run diverged or does not cover the window.
        evaluations: how many evaluations of a run a final value is of, by the name of the metric.
        curves: of the first metric, [evaluations, seeds], indexed by round, without diverged runs.
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
        commits, versions: of the code that made the runs.
    """

    metrics: tuple[Metric, ...]
    rows: list[Row]
    last_rounds: int
    commits: list[str]
    versions: list[str]

    @property
    def settings(self) -> list[str]:
        """The axes and settings that tell rows apart, besides the method and the rounds."""
        return list(dict.fromkeys(key for row in self.rows for key in row.settings))

    @property
    def mixes_seeds(self) -> bool:
        """Whether rows have different seeds, as when the best settings of a search are run again with more seeds."""
        return len({row.which for row in self.rows}) > 1

    def short(self, setting: str) -> str:
        """The shortest end of a setting's dotted name that no other varying setting has."""
        parts = setting.split(".")
        ends = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in self.settings) == 1)

    @property
    def origin(self) -> str:
        """The versions and commits, in words."""
        return f"Rollcall {', '.join(self.versions)}, commit {', '.join(self.commits)}"

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
        columns = [
            Column("method", "method", words=True),
            *(Column(self.short(key), key, words=True) for key in self.settings),
            *(
                Column(metric.name, metric.name, measured=True, arrow=metric.arrow, group=metric.name)
                for metric in self.metrics
            ),
            Column("seeds", "seeds", group=SIZE),
            *([Column("which seeds", "which_seeds", words=True, group=SIZE)] if self.mixes_seeds else []),
            Column("rounds", "rounds", group=SIZE),
        ]
        rows: list[list[Entry]] = [
            [
                row.method,
                *(row.settings[key] for key in self.settings),
                *row.values.values(),
                row.seeds,
                *([row.which] if self.mixes_seeds else []),
                row.rounds,
            ]
            for row in self.rows
        ]
        when = "at the last evaluation" if self.last_rounds == 1 else f"mean of the last {self.last_rounds} rounds"
        arrows = ", ".join(f"{metric.name} {metric.arrow}" for metric in self.metrics)
        caption = f"{arrows}; {when}; mean ± standard deviation over seeds"
        if any(value.text == UNCOVERED for row in self.rows for value in row.values.values()):
            caption += f"; {UNCOVERED}: the evaluations do not cover these rounds (--last-rounds N averages fewer)"
        if self.mixes_seeds:
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
    rows.sort(key=lambda row: _order(row, metrics[0]))
    return Ranking(
        metrics=tuple(metrics),
        rows=[row for competitors in by_conditions(rows).values() for row in _marked(competitors, metrics)],
        last_rounds=last_rounds,
        commits=sorted({run.tags["commit"] for run in runs}),
        versions=sorted({run.tags["version"] for run in runs}),
    )


def by_conditions(rows: Sequence[Row]) -> dict[Settings, list[Row]]:
    """Rows that compete, in groups sorted by their conditions."""
    groups: dict[Settings, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.conditions, []).append(row)
    return dict(sorted(groups.items()))


def _order(row: Row, metric: Metric) -> tuple[int, float]:
    """What rows are sorted by: fewer diverged runs first, then better values. A value that is not known is last."""
    return row.diverged, metric.penalty(row.values[metric.name].mean)


def _marked(rows: Sequence[Row], metrics: Sequence[Metric]) -> list[Row]:
    """Competing rows, the best value of each metric marked. Values of rows with diverged runs are not marked."""
    best = {}
    for metric in metrics:
        means = [row.values[metric.name].mean for row in rows if not row.diverged]
        best[metric.name] = metric.best([mean for mean in means if not math.isnan(mean)] or [math.nan])

    def marked(row: Row, name: str, value: Number) -> Number:
        return replace(value, best=not row.diverged and value.mean == best[name])

    return [replace(row, values={name: marked(row, name, value) for name, value in row.values.items()}) for row in rows]


def _row(
    method: str,
    settings: dict[str, str],
    cell: Settings,
    by_seed: Mapping[str, Run],
    metrics: Sequence[Metric],
    last_rounds: int,
) -> Row:
    runs = list(by_seed.values())
    values, evaluations = {}, {}
    ended = {seed: run for seed, run in by_seed.items() if not run.diverged}
    diverged = len(runs) - len(ended)
    for metric in metrics:
        final = pd.Series([run.final(metric, last_rounds) for run in ended.values()], dtype=float)
        windows = [
            0 if metric.threshold is not None else len(run.window(metric, last_rounds)) for run in ended.values()
        ]
        evaluations[metric.name] = min(windows, default=0)
        if diverged:
            values[metric.name] = diverged_number(diverged, len(runs))
        elif final.isna().any():
            values[metric.name] = Number(math.nan, math.nan, UNCOVERED)
        else:
            values[metric.name] = number(final.mean(), final.std(ddof=1), "{:.4f}".format)
    return Row(
        method=method,
        settings=settings,
        conditions=tuple((key, value) for key, value in cell if is_condition(key)),
        seeds=len(runs),
        which=",".join(sorted(by_seed, key=int)),
        rounds=runs[0].rounds,
        values=values,
        evaluations=evaluations,
        curves=pd.DataFrame({seed: run.history[metrics[0].column] for seed, run in ended.items()}),
        diverged=diverged,
    )
