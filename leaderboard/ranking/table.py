"""Runs into a table: a row for each cell, mean and standard deviation over seeds, the best marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from leaderboard.results import Run, end

ARENA = ("participation", "task", "rounds")
"""Rows compete where these settings, their options included, are equal."""


def is_arena(setting: str) -> bool:
    """Whether it is one of the settings, or an option of one, in which competing rows are equal."""
    return setting.partition(".")[0] in ARENA


@dataclass(frozen=True)
class Value:
    """A metric over the seeds of a cell; sd is the sample standard deviation, NaN for one seed."""

    mean: float
    sd: float
    best: bool = False

    def __format__(self, plus_minus: str) -> str:
        """Four digits, the scale of an accuracy, with the sign that joins mean and deviation."""
        spread = "" if pd.isna(self.sd) else f" {plus_minus or '±'} {self.sd:.4f}"
        return f"{self.mean:.4f}{spread}"


@dataclass(frozen=True)
class Row:
    """A cell.

    Attributes:
        method: the algorithm, with those of its options in which rows differ.
        settings: the other settings in which rows differ.
        arena: the settings of `ARENA`; rows compete where it is equal.
        seeds, rounds: how many.
        values: by metric.
        curves: of the ranking metric, [evaluations, seeds], indexed by round.
    """

    method: str
    settings: dict[str, str]
    arena: tuple[tuple[str, str], ...]
    seeds: int
    rounds: int
    values: dict[str, Value]
    curves: pd.DataFrame


@dataclass(frozen=True)
class Table:
    """Rows in the order of their arenas, the best first in each; with what they were run by."""

    metrics: dict[str, Literal["max", "min"]]
    rows: list[Row]
    last_rounds: int
    commits: list[str]
    versions: list[str]

    @property
    def settings(self) -> list[str]:
        """The settings that vary between rows, besides the method and the rounds."""
        return list(dict.fromkeys(key for row in self.rows for key in row.settings))

    def short(self, setting: str) -> str:
        """The end of a setting's dotted name, as much of it as tells it from the others."""
        parts = setting.split(".")
        ends = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in self.settings) == 1)


def tabulate(runs: Sequence[Run], metrics: Mapping[str, Literal["max", "min"]], last_rounds: int) -> Table:
    """The table of an experiment.

    Args:
        runs: at least one.
        metrics: the columns, and which end is best; the first one ranks.
        last_rounds: a run's value is the mean over its evaluations after its last so many rounds.
    """
    cells: dict[tuple[tuple[str, str], ...], dict[str, Run]] = {}
    for run in runs:  # oldest first: of two runs of a seed (a contributed method that was edited) the later one counts
        cells.setdefault(run.cell, {})[run.tags["seed"]] = run
    varying = _varying([dict(cell) for cell in cells])
    rows = [_row(dict(cell), mates, metrics, last_rounds, varying) for cell, mates in cells.items()]
    ranking, end = next(iter(metrics.items()))
    rows.sort(key=lambda row: row.values[ranking].mean, reverse=end == "max")
    arenas = sorted({row.arena for row in rows})
    return Table(
        metrics=dict(metrics),
        rows=[row for arena in arenas for row in _marked([row for row in rows if row.arena == arena], metrics)],
        last_rounds=last_rounds,
        commits=sorted({run.tags["commit"] for run in runs}),
        versions=sorted({run.tags["version"] for run in runs}),
    )


def _marked(rows: Sequence[Row], metrics: Mapping[str, Literal["max", "min"]]) -> list[Row]:
    """The rows of one arena, the best value of each metric marked."""
    best = {
        metric: (max if end == "max" else min)(row.values[metric].mean for row in rows)
        for metric, end in metrics.items()
    }
    return [
        replace(row, values={m: replace(value, best=bool(value.mean == best[m])) for m, value in row.values.items()})
        for row in rows
    ]


def _varying(cells: Sequence[dict[str, str]]) -> list[str]:
    """The settings in which cells differ, an algorithm's own only among cells of that algorithm."""
    keys = sorted({key for cell in cells for key in cell} - {"algorithm", "rounds"})
    found = []
    for key in keys:
        concerned = [cell for cell in cells if key in cell] if key.startswith("algorithm.") else cells
        by_method: dict[str, set[str]] = {}
        for cell in concerned:
            method = cell["algorithm"] if key.startswith("algorithm.") else ""
            by_method.setdefault(method, set()).add(cell.get(key, ""))
        if any(len(values) > 1 for values in by_method.values()):
            found.append(key)
    return found


def _row(
    cell: dict[str, str],
    by_seed: Mapping[str, Run],
    metrics: Mapping[str, str],
    last_rounds: int,
    varying: Sequence[str],
) -> Row:
    runs = list(by_seed.values())
    own = [
        f"{key.removeprefix('algorithm.')}={cell[key]}"
        for key in varying
        if key.startswith("algorithm.") and key in cell
    ]
    values = {}
    for metric in metrics:
        ends = pd.Series([end(run, metric, last_rounds) for run in runs])
        values[metric] = Value(ends.mean(), ends.std(ddof=1))
    ranking = next(iter(metrics))
    return Row(
        method=" ".join([runs[0].tags["algorithm"], *own]),
        settings={key: cell.get(key, "") for key in varying if not key.startswith("algorithm.")},
        arena=tuple(sorted((key, value) for key, value in cell.items() if is_arena(key))),
        seeds=len(runs),
        rounds=runs[0].rounds,
        values=values,
        curves=pd.DataFrame({seed: run.history[ranking] for seed, run in by_seed.items()}),
    )
