"""The cells of an experiment with the runs that belong to them, and their numbers."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.digest import digest, serialised
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import GridPoint, grid_points
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.optimization import SCHEDULES
from rollcall.leaderboard.paper.quantities import Crossing
from rollcall.leaderboard.render import Number, number
from rollcall.leaderboard.runs import Run, unarchive

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cell:
    """A cell of an experiment, with its labels by axis (the panel is one too), and the runs of its trials by seed.

    `rounds` and `seeds` are planned; in a ranking, `seeds` were run. The runs are of one source and equally long.
    `searched` is the experiment in which a search found some settings, as learning rates; empty if none did.
    """

    labels: dict[str, str]
    rounds: int
    seeds: int
    runs: dict[str, Run] = field(default_factory=dict)
    searched: str = ""

    @property
    def rounds_run(self) -> int:
        return min((run.rounds for run in self.runs.values()), default=0)

    @cached_property
    def share(self) -> float:
        """The part of the planned steps that the runs made, weighted by their learning rates; there is a run.

        A schedule of the user's own, whose code is not run, counts as constant.
        """
        schedule = serialised(next(iter(self.runs.values())).spec.get("local", {}).get("schedule", "constant"))
        name = schedule["name"] if isinstance(schedule, dict) else schedule
        factor = read("schedule", schedule if name in SCHEDULES else "constant").bound()
        made, planned = (math.fsum(map(factor, range(rounds))) for rounds in (self.rounds_run, self.rounds))
        return made / planned

    @property
    def diverged(self) -> int:
        """Number of runs that diverged; with one, the cell has no mean."""
        return sum(run.diverged for run in self.runs.values())

    @property
    def trials(self) -> set[str]:
        return {run.digest for run in self.runs.values()}

    @property
    def exact(self) -> bool:
        """Whether it is an analysis that depends on no seed."""
        return self.is_analysis and self.seeds == 1

    @property
    def is_analysis(self) -> bool:
        """Whether it is computed without any rounds of training."""
        return any("analysis" in run.spec for run in self.runs.values())

    @property
    def ended(self) -> "Cell":
        return replace(self, runs={seed: run for seed, run in self.runs.items() if not run.diverged})

    def until(self, rounds: int) -> "Cell":
        return replace(self, runs={seed: run.until(rounds) for seed, run in self.runs.items()})

    def of(self, seeds: Collection[str]) -> "Cell":
        return replace(self, runs={seed: run for seed, run in self.runs.items() if seed in seeds})

    def measured(self, metric: Metric) -> bool:
        return any(run.has(metric) for run in self.runs.values())

    def finals(self, metric: Metric, last_rounds: int, at: int | None = None, per: Metric | None = None) -> pd.Series:
        """The final value of every run that has the metric and did not diverge, by seed; `at` and `per` as in `Run`."""
        key = (metric, last_rounds, at, per)
        if key not in self._finals:
            runs = {seed: run for seed, run in self.ended.runs.items() if run.has(metric)}
            values = {seed: run.final(metric, last_rounds, at, per) for seed, run in runs.items()}
            self._finals[key] = pd.Series(values, dtype=float).dropna()
        return self._finals[key]

    @cached_property
    def _finals(self) -> dict[tuple[Metric, int, int | None, Metric | None], pd.Series]:
        """The final values that were asked for: tables, claims and figures ask for the same ones many times."""
        return {}

    def over_time(self, metric: Metric, quantity: Literal["time-average", "maximum"]) -> pd.Series:
        """The mean or the largest of all evaluations of every run that did not diverge, by seed."""
        curves = {seed: run.history[metric.column].dropna() for seed, run in self.ended.runs.items() if run.has(metric)}
        values = {seed: curve.max() if quantity == "maximum" else curve.mean() for seed, curve in curves.items()}
        return pd.Series(values, dtype=float).dropna()

    def scores(self, metric: Metric, last_rounds: int) -> pd.Series:
        """The score of every run that has a final value, by seed; larger is better.

        It is -inf if the run diverged, or did not reach a threshold.
        """
        scores = self.finals(metric, last_rounds).map(lambda value: -metric.penalty(value))
        diverged = [seed for seed, run in self.runs.items() if run.diverged]
        return pd.concat([scores, pd.Series(-math.inf, index=diverged)]) if diverged else scores

    def mean(self, metric: Metric, last_rounds: int) -> float:
        """The mean of the final values over seeds; NaN if a run diverged or has no value.

        With a threshold: the first round at which the mean curve over the seeds reaches it; infinite if it does not.
        """
        if self.diverged or not self.runs or not all(run.has(metric) for run in self.runs.values()):
            return math.nan
        if metric.threshold is not None:
            return self.crossing(metric).mean
        values = self.finals(metric, last_rounds)
        return float(values.mean()) if len(values) == len(self.runs) else math.nan

    def number(self, metric: Metric, last_rounds: int) -> Number | None:
        """Mean and standard deviation over seeds, with as many digits as the latter gives a meaning to.

        Without a mean if a run diverged. None if a run did not measure it or its evaluations do not cover the window.
        """
        if self.diverged:
            share = "" if self.diverged == len(self.runs) else f"{self.diverged} of {len(self.runs)} "
            return Number(math.nan, math.nan, f"{share}diverged")
        mean = self.mean(metric, last_rounds)
        if math.isnan(mean):
            return None
        values = self.finals(metric, last_rounds)
        # The rounds of single seeds are another quantity than that of the mean curve, which is reached later.
        by_seed = metric.threshold is None and math.isfinite(values.sum())
        sd = float(values.std(ddof=1)) if by_seed else math.nan
        return number(mean, sd, lambda value: metric.text(value, sd))

    def crossing(self, metric: Metric) -> Crossing:
        """The first round at which the mean curve over the seeds reaches the threshold, or the mean cost until then."""
        assert metric.threshold is not None
        runs = list(self.runs.values())
        curves = pd.concat([run.curve(metric) for run in runs], axis=1).dropna()
        spent = np.array([run.spent(metric.over).reindex(curves.index) for run in runs])
        end = np.array([run.end(metric) for run in runs])
        return Crossing(curves.to_numpy().T, spent, end, metric.threshold)

    def evaluations(self, metric: Metric, last_rounds: int) -> int:
        """How many evaluations of a run its mean is of; 0 if they do not cover the window."""
        having = [run for run in self.runs.values() if metric.threshold is None and run.has(metric)]
        return min((len(run.window(metric, last_rounds)) for run in having), default=0)


def cells(experiment: Experiment, runs: Iterable[Run]) -> list[Cell]:
    """The cells of an experiment in the order of its file, with the runs that belong to them.

    The user's own runs of a cell replace its kept ones if they have as many rounds and seeds. No mean mixes the two.
    The runs of a cell are cut to its shortest one: no mean mixes numbers of rounds. Methods of the user's own that were
    run under the experiment follow as cells of their own.
    """
    runs = list(runs)
    grid = grid_points(with_own_methods(experiment, runs))
    # of equally long ones the later
    longest = {(run.source, run.digest): run for run in sorted(runs, key=lambda run: run.rounds)}
    by_labels: dict[Labels, list[GridPoint]] = {}
    rounds: dict[str, int] = {}
    for point in grid:
        by_labels.setdefault(tuple(point.labels.items()), []).append(point)
        rounds[point.digest] = max(point.rounds, rounds.get(point.digest, 0))

    def cell_of(same: Sequence[GridPoint], source: Literal["own", "kept"]) -> Cell:
        ran = {str(point.seed): (point, run) for point in same if (run := longest.get((source, point.digest)))}
        # another point may ask for more rounds of the same run
        until = {
            seed: run.until(point.rounds) if point.rounds < rounds[point.digest] else run
            for seed, (point, run) in ran.items()
        }
        lengths, seeds = {run.rounds for run in until.values()}, len({point.seed for point in same})
        cell = Cell(same[0].labels, same[0].rounds, seeds, until, same[0].searched)
        return cell.until(min(lengths)) if len(lengths) > 1 else cell

    pairs = [(cell_of(same, "own"), cell_of(same, "kept")) for same in by_labels.values()]
    return [
        own if own.rounds_run >= kept.rounds_run and len(own.runs) >= len(kept.runs) else kept for own, kept in pairs
    ]


def searches(experiment: Experiment, runs: Sequence[Run]) -> dict[str, str]:
    """The experiment in which a search found settings of a cell, by `key_of` the cell."""
    grid = grid_points(with_own_methods(experiment, runs))
    return {key_of(point.spec): point.searched for point in grid if point.searched}


def planned_rounds(experiment: Experiment) -> int:
    """The number of rounds that its file asks for; 0 if parts of the grid ask for different ones."""
    planned = {point.rounds for point in grid_points(experiment)}
    return planned.pop() if len(planned) == 1 else 0


def kept_runs(experiment: Experiment) -> tuple[int, int]:
    """How many runs of an experiment the kept results have with all rounds, and with fewer."""
    made = [(run, cell) for cell in cells(experiment, unarchive(experiment.home)) for run in cell.runs.values()]
    shorter = {run.digest for run, cell in made if run.rounds < cell.rounds}  # one may be in several cells
    return len({run.digest for run, _ in made} - shorter), len(shorter)


def after_equal_rounds(cell: Cell, other: Cell) -> tuple[Cell, Cell]:
    """Two cells to compare: if both should have equal numbers of rounds, the longer one is cut."""
    if cell.rounds != other.rounds or cell.rounds_run == other.rounds_run:
        return cell, other
    rounds = min(cell.rounds_run, other.rounds_run)
    return cell.until(rounds), other.until(rounds)


def with_own_methods(experiment: Experiment, runs: Sequence[Run]) -> Experiment:
    """The experiment with the user's own methods among its algorithms."""
    methods = own_methods(experiment, runs)
    return experiment.joined("algorithm", methods) if methods else experiment


def own_methods(experiment: Experiment, runs: Iterable[Run]) -> list[Any]:
    """The user's own methods, as runs have them, that no axis has and whose files or modules still exist."""
    methods = {}
    for run in runs:
        method = run.spec.get("algorithm", "")
        where, colon, _ = (method if isinstance(method, str) else method["name"]).partition(":")
        with suppress(ModuleNotFoundError):
            if Path(where).is_file() if where.endswith(".py") else colon and find_spec(where):
                methods[str(method)] = method
    points = grid_points(experiment) if methods else ()
    there = {str(serialised(point.spec.get("algorithm"))) for point in points}
    return [method for name, method in methods.items() if name not in there]


def key_of(spec: Mapping[str, Any]) -> str:
    """The digest of a cell: of the settings of its trials without the seed, arrays and data files by their copies."""
    return digest(serialised(spec) | {"seed": 0})
