"""The cells of an experiment with the runs that belong to them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from benchmark.config.digest import array_file, flatten, known_since
from benchmark.config.experiment import Experiment
from benchmark.config.grid import Place, distinct, places
from benchmark.config.metric import Metric
from benchmark.config.yaml_text import parsed
from leaderboard.run import Run, Settings

Labels = tuple[tuple[str, str], ...]

FREE = (
    "rounds",
    "seed",
    "evaluation",
    "numerics.engine",
    "numerics.device",
    "numerics.client_memory",
    "numerics.devices",
)
"""Settings in which a run may differ from the experiment's file and still count as a run of its trial."""


@dataclass(frozen=True)
class Cell:
    """A cell of an experiment and the runs of its trials.

    Attributes:
        labels: by axis; the panel is an axis too.
        rounds, seeds: numbers that the experiment's file asks for.
        runs: by seed, of one source and equally long; the longest one if a seed was run several times.
    """

    labels: dict[str, str]
    rounds: int
    seeds: int
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def rounds_run(self) -> int:
        """Number of rounds of its runs; 0 without runs."""
        return min((run.rounds for run in self.runs.values()), default=0)

    @property
    def reduced(self) -> bool:
        """Whether runs are shorter or fewer than the file asks for."""
        return self.rounds_run < self.rounds or len(self.runs) < self.seeds

    @property
    def diverged(self) -> int:
        """Number of runs that diverged. They have no final values."""
        return sum(run.diverged for run in self.runs.values())

    @property
    def exact(self) -> bool:
        """Whether it is an analysis that depends on no seed."""
        return self.is_analysis and self.seeds == 1

    @property
    def is_analysis(self) -> bool:
        """Whether it is computed without any rounds of training."""
        return any("analysis" in run.settings for run in self.runs.values())

    @property
    def where(self) -> str:
        """Its labels in one line."""
        return ", ".join(label for label in self.labels.values() if label)

    def window(self, last_rounds: int) -> int:
        """The number of last rounds for final values; at most a fifth of a shortened run."""
        return last_rounds if self.rounds_run >= self.rounds else min(last_rounds, max(1, self.rounds_run // 5))

    def until(self, rounds: int) -> "Cell":
        """The cell with its runs cut to this many rounds."""
        return replace(self, runs={seed: run.until(rounds) for seed, run in self.runs.items()})

    def measured(self, metric: Metric) -> bool:
        """Whether a run has the metric."""
        return any(run.has(metric) for run in self.runs.values())

    def finals(self, metric: Metric, last_rounds: int, at: int | None = None, per: Metric | None = None) -> pd.Series:
        """The final value of every run that has the metric and did not diverge, by seed; `at` and `per` as in `Run`."""
        window = self.window(last_rounds)
        ended = {seed: run for seed, run in self.runs.items() if run.has(metric) and not run.diverged}
        values = {seed: run.final(metric, window, at, per) for seed, run in ended.items()}
        return pd.Series(values, dtype=float).dropna()


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its 95 % interval. With one seed the interval is infinite.

    Attributes:
        mean, low, high: of the values; if `logarithmic`, computed from their logarithms.
        sd: standard deviation of the values, or of their logarithms.
        seeds: number of values.
        logarithmic: whether it was computed from logarithms.
    """

    mean: float
    sd: float
    low: float
    high: float
    seeds: int
    logarithmic: bool = False

    @property
    def wide(self) -> bool:
        """Whether the interval is over more than a decade of a logarithmic axis: no number of decimals fits it."""
        return self.logarithmic and self.high > 10 * self.low

    def interval(self, level: float) -> tuple[float, float]:
        """The interval of another level than 95 %."""
        if self.low == self.high or self.seeds == 1:
            return self.low, self.high
        half = _half_width(self.sd, self.seeds, level)
        if self.logarithmic:
            return self.mean * _exp(-half), self.mean * _exp(half)
        return self.mean - half, self.mean + half

    def seeds_to_exclude(self, bound: float, power: float = 0.8, level: float = 0.95) -> int | None:
        """Number of seeds whose interval leaves out a bound with a probability of `power`, if mean and sd are as here.

        The usual approximation ((z_a + z_power) sd / gap)^2 + z_a^2 / 2 with quantiles z of the normal distribution,
        a = (1 + level) / 2. None with fewer than three seeds, or if no number of seeds is enough.
        """
        if self.logarithmic and bound <= 0:
            return 1
        gap = abs(math.log(self.mean / bound)) if self.logarithmic else abs(self.mean - bound)
        if self.seeds < 3 or gap == 0 or not math.isfinite(gap):
            return None
        z_level, z_power = NormalDist().inv_cdf((1 + level) / 2), NormalDist().inv_cdf(power)
        return math.ceil(((z_level + z_power) * self.sd / gap) ** 2 + z_level**2 / 2)


def estimate(values: Sequence[float] | pd.Series, exact: bool = False) -> Estimate:
    """A mean and its 95 % interval by Student's t.

    Args:
        values: one for each seed, at least one.
        exact: they depend on no seed, so the interval has no width.
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean())
    never = len(numbers) > 1 and math.isinf(mean) and bool((numbers == mean).all())  # no run reached a threshold
    if exact or never:
        return Estimate(mean, 0.0, mean, mean, len(numbers))
    if len(numbers) == 1:
        return Estimate(mean, math.nan, -math.inf, math.inf, 1)
    sd = float(numbers.std(ddof=1)) if math.isfinite(mean) else math.nan
    half = _half_width(sd, len(numbers), 0.95)
    return Estimate(mean, sd, mean - half, mean + half, len(numbers))


def _half_width(sd: float, seeds: int, level: float) -> float:
    """Half the width of Student's t interval of a mean over at least two seeds."""
    from scipy import stats

    return float(stats.t.ppf((1 + level) / 2, seeds - 1)) * sd / math.sqrt(seeds)


def geometric(values: Float[np.ndarray, "seeds"], exact: bool = False) -> Estimate:
    """Mean and interval of the logarithms; of the values themselves if one is not above 0."""
    if not (values > 0).all():
        return estimate(values.tolist(), exact)
    logs = estimate(np.log(values).tolist(), exact)
    return Estimate(math.exp(logs.mean), logs.sd, _exp(logs.low), _exp(logs.high), logs.seeds, logarithmic=True)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def cells(experiment: Experiment, runs: Iterable[Run]) -> list[Cell]:
    """The cells of an experiment in the order of its file, with the runs that belong to them.

    If a cell has runs of the user's own, its kept runs do not count, however long they are: no mean mixes the two.
    The runs of a cell are cut to its shortest one, so that no mean mixes numbers of rounds.
    Methods of the user's own that were run under the experiment follow as cells of their own.
    """
    runs = list(runs)
    by_key = _longest_by_seed(runs)
    grid = places(_with_own_methods(experiment, runs))
    rounds = {trial.digest: trial.rounds for trial in distinct(grid)}
    made: dict[Labels, Cell] = {}
    seeds: dict[Labels, set[str]] = {}
    for place in grid:
        labels = tuple(place.labels.items())
        seeds.setdefault(labels, set()).add(str(place.trial.seed))
        cell = made.get(labels, Cell(place.labels, place.trial.rounds, 0))
        # Another place may ask for more rounds of the same run.
        own = _runs_of(place, by_key, shorten=place.trial.rounds < rounds[place.trial.digest])
        made[labels] = Cell(cell.labels, cell.rounds, len(seeds[labels]), cell.runs | own)
    return [_equally_long(replace(cell, runs=_of_one_source(cell.runs))) for cell in made.values()]


def after_equal_rounds(cell: Cell, other: Cell) -> tuple[Cell, Cell]:
    """Two cells to compare: if both should have equal numbers of rounds, the longer one is cut."""
    if cell.rounds != other.rounds or cell.rounds_run == other.rounds_run:
        return cell, other
    rounds = min(cell.rounds_run, other.rounds_run)
    return cell.until(rounds), other.until(rounds)


def _longest_by_seed(runs: Iterable[Run]) -> dict[Settings, dict[str, Run]]:
    """Runs by their settings and seed: the user's own first, then the longest; of equally long ones the later."""
    by_key: dict[Settings, dict[str, Run]] = {}
    for run in runs:
        seeds = by_key.setdefault(_key(run.settings), {})
        seed = run.tags["seed"]
        if seed not in seeds or _preference(seeds[seed]) <= _preference(run):
            seeds[seed] = run
    return by_key


def _preference(run: Run) -> tuple[bool, int]:
    return run.source == "own", run.rounds


def _of_one_source(runs: dict[str, Run]) -> dict[str, Run]:
    """The user's own runs if there are any, else all."""
    return {seed: run for seed, run in runs.items() if run.source == "own"} or runs


def _equally_long(cell: Cell) -> Cell:
    """The cell with its runs cut to the shortest one."""
    return cell if len({run.rounds for run in cell.runs.values()}) <= 1 else cell.until(cell.rounds_run)


def _runs_of(place: Place, by_key: dict[Settings, dict[str, Run]], shorten: bool) -> dict[str, Run]:
    """The run of a place by its seed, cut to the place's rounds if asked; empty if there is none."""
    seed = str(place.trial.seed)
    run = by_key.get(_key(flatten(place.trial.spec(array_file))), {}).get(seed)
    if run is None:
        return {}
    return {seed: run.until(place.trial.rounds) if shorten else run}


def _with_own_methods(experiment: Experiment, runs: Sequence[Run]) -> Experiment:
    """The experiment with the user's own methods among its algorithms, if their files still exist."""
    methods: dict[str, dict[str, Any]] = {}
    for run in runs:
        name = run.settings.get("algorithm", "")
        if _is_own_and_there(name):
            options = {
                key.removeprefix("algorithm."): parsed(value)
                for key, value in run.settings.items()
                if key.startswith("algorithm.")
            }
            methods[str({name: options})] = {"name": name, **options}
    return experiment.joined("algorithm", methods.values()) if methods else experiment


def _is_own_and_there(name: str) -> bool:
    """Whether the name of a method is FILE.py:NAME or package.module:NAME, and the file or module still exists."""
    where, colon, _ = name.partition(":")
    if where.endswith(".py"):
        return Path(where).is_file()
    try:
        return bool(colon) and find_spec(where) is not None
    except ModuleNotFoundError:
        return False


def _key(settings: dict[str, str]) -> Settings:
    kept = {
        key: value
        for key, value in known_since(settings).items()
        if not any(key == free or key.startswith(f"{free}.") for free in FREE)
    }
    return tuple(sorted(kept.items()))
