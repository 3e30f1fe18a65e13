"""Runs sorted into the places of an experiment."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from benchmark.config.digest import array_file, flatten, known_since
from benchmark.config.experiment import Experiment
from benchmark.config.grid import distinct, places
from leaderboard.results import Run, end, has

FREE = ("rounds", "seed", "evaluation", "numerics.engine", "numerics.device", "numerics.client_memory")
"""Settings in which a run may differ from the experiment's file and still stand for a trial of it."""


@dataclass(frozen=True)
class Cell:
    """A place of an experiment, and the runs that stand for its trials.

    Attributes:
        labels: by axis, the panel among them.
        rounds, seeds: of the file.
        runs: by seed; of several runs of a seed the longest.
    """

    labels: dict[str, str]
    rounds: int
    seeds: int
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def rounds_run(self) -> int:
        """Of the shortest run."""
        return min((run.rounds for run in self.runs.values()), default=0)

    @property
    def reduced(self) -> bool:
        """Whether the runs are shorter or fewer than in the file."""
        return self.rounds_run < self.rounds or len(self.runs) < self.seeds

    def window(self, last_rounds: int) -> int:
        """The last rounds that values are means over: of a shortened run, a fifth of it at most."""
        return last_rounds if self.rounds_run >= self.rounds else min(last_rounds, max(1, self.rounds_run // 5))

    def ends(self, metric: str, last_rounds: int, at: int | None = None) -> pd.Series:
        """The value of every run that has it, by seed."""
        found = {
            seed: end(run, metric, self.window(last_rounds), at) for seed, run in self.runs.items() if has(run, metric)
        }
        return pd.Series(found, dtype=float).dropna()


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its 95 % interval; of one seed the interval is the whole line, for it says nothing."""

    mean: float
    sd: float
    low: float
    high: float
    seeds: int


def estimate(values: Sequence[float] | pd.Series, exact: bool = False) -> Estimate:
    """Student's interval over seeds.

    Args:
        values: at least one.
        exact: whether they depend on no seed, so that the interval has no width.
    """
    from scipy import stats

    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean())
    if exact:
        return Estimate(mean, 0.0, mean, mean, len(numbers))
    if len(numbers) == 1:
        return Estimate(mean, math.nan, -math.inf, math.inf, 1)
    sd = float(numbers.std(ddof=1))
    half = float(stats.t.ppf(0.975, len(numbers) - 1)) * sd / math.sqrt(len(numbers))
    return Estimate(mean, sd, mean - half, mean + half, len(numbers))


def cells(experiment: Experiment, runs: Iterable[Run]) -> list[Cell]:
    """The cells of an experiment in the order of its file, with the runs that belong to them; then the user's own."""
    runs = list(runs)
    by_key: dict[tuple[tuple[str, str], ...], dict[str, Run]] = {}
    for run in runs:
        seeds = by_key.setdefault(_key(run.settings), {})
        seed = run.tags["seed"]
        if seed not in seeds or seeds[seed].rounds <= run.rounds:  # of equals the later one
            seeds[seed] = run
    found: dict[tuple[tuple[str, str], ...], Cell] = {}
    wanted: dict[tuple[tuple[str, str], ...], set[str]] = {}
    there = places(_with_guests(experiment, runs))
    longest = {trial.digest: trial.rounds for trial in distinct(there)}
    for place in there:
        where = tuple(place.labels.items())
        wanted.setdefault(where, set()).add(str(place.trial.seed))
        known = by_key.get(_key(flatten(place.trial.spec(array_file))), {})
        cell = found.get(where, Cell(place.labels, place.trial.rounds, 0))
        mine = {seed: run for seed, run in known.items() if seed == str(place.trial.seed)}
        if place.trial.rounds < longest[place.trial.digest]:  # another place asks for more rounds of the same run
            mine = {seed: run.until(place.trial.rounds) for seed, run in mine.items()}
        found[where] = Cell(cell.labels, cell.rounds, len(wanted[where]), cell.runs | mine)
    return list(found.values())


def _with_guests(experiment: Experiment, runs: Sequence[Run]) -> Experiment:
    """With the methods of the user's own that were run under it; whose files are gone are left out."""
    guests: dict[str, dict[str, Any]] = {}
    for run in runs:
        name = run.settings.get("algorithm", "")
        if Path(name.partition(".py:")[0] + ".py").is_file():
            given = {key: value for key, value in run.settings.items() if key.startswith("algorithm.")}
            options = {key.removeprefix("algorithm."): yaml.safe_load(value) for key, value in given.items()}
            guests[str({name: options})] = {"name": name, **options}
    return experiment.joined("algorithm", guests.values()) if guests else experiment


def _key(settings: dict[str, str]) -> tuple[tuple[str, str], ...]:
    kept = {
        key: value
        for key, value in known_since(settings).items()
        if not any(key == free or key.startswith(f"{free}.") for free in FREE)
    }
    return tuple(sorted(kept.items()))
