"""Reduce experiments to a time budget. Every cell stays; rounds are reduced first, then seeds."""

import json
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.experiment import Place, distinct
from rollcall.benchmark.config.trial import Evaluation, Trial
from rollcall.benchmark.sweep.estimate import Estimate, wall
from rollcall.benchmark.sweep.times import duration

LEAST = Fraction(1, 10)
"""The least share of its rounds that a trial keeps; it also keeps at least two evaluations."""


@dataclass(frozen=True)
class Item:
    """A trial as a budget sees it.

    Attributes:
        rounds, evaluation: its settings.
        rank: the position of its seed among the seeds of its panel, from 0.
        estimate: of its duration.
    """

    rounds: int
    evaluation: Evaluation
    rank: int
    estimate: Estimate


@dataclass(frozen=True)
class Cut:
    """The part of the trials that a budget leaves.

    Attributes:
        factor: the share of the rounds.
        seeds: how many of the first seeds of each panel.
    """

    factor: Fraction
    seeds: int

    def rounds(self, full: int, every: int) -> int:
        """The rounds that are left: a multiple of `every`, at least a tenth of `full` and two evaluations."""
        if self.factor == 1:
            return full
        least = max(-int(-full * LEAST // every), 2) * every
        return min(full, max(int(self.factor * full // every) * every, least))


WHOLE = Cut(Fraction(1), sys.maxsize)


def fit(items: Sequence[Item], budget: float, at_once: int) -> Cut:
    """The largest cut that fits: as many seeds as possible, then as many rounds. If none fits, the smallest one.

    Args:
        items: the trials.
        budget: seconds.
        at_once: trials at the same time.
    """
    # Between two of these factors no trial's rounds change.
    lengths = {(item.rounds, item.evaluation.step) for item in items}
    steps = {Fraction(k * step, rounds) for rounds, step in lengths for k in range(1, rounds // step + 1)}
    factors = sorted({LEAST, Fraction(1)} | {step for step in steps if step > LEAST})
    for seeds in range(max((item.rank + 1 for item in items), default=1), 0, -1):
        fitting = bisect_right(factors, budget, key=lambda factor: spent(items, Cut(factor, seeds), at_once))
        if fitting:
            return Cut(factors[fitting - 1], seeds)
    return Cut(factors[0], 1)


def spent(items: Sequence[Item], cut: Cut, at_once: int) -> float:
    """The seconds that the remaining trials take."""
    left = [item for item in items if item.rank < cut.seeds]
    seconds = [item.estimate.seconds(cut.rounds(item.rounds, item.evaluation.step), item.evaluation) for item in left]
    return wall(seconds, at_once)


def items(places: Sequence[Place], estimates: dict[str, Estimate]) -> list[Item]:
    """The trials of an experiment, each once. Analyses are left out, since they take next to no time."""
    ranks: dict[str, int] = {}
    for place, rank in _ranked(places):
        ranks[place.trial.digest] = min(rank, ranks.get(place.trial.digest, rank))
    return [
        Item(trial.rounds, trial.evaluation, ranks[trial.digest], estimates[trial.digest])
        for trial in distinct(places)
        if isinstance(trial, Trial)
    ]


def apply(places: Sequence[Place], cut: Cut) -> list[Place]:
    """The places that a cut leaves of an experiment."""
    left = []
    for place, rank in _ranked(places):
        trial = place.trial
        if isinstance(trial, Analysis):
            left.append(place)
        elif rank < cut.seeds:
            rounds = cut.rounds(trial.rounds, trial.evaluation.step)
            left.append(Place(place.labels, place.spec | {"rounds": rounds}))
    return left


@dataclass(frozen=True)
class Record:
    """The trials that `--budget` removed; the content of `budget.json` in the folder of an experiment.

    Attributes:
        budget: seconds for all experiments that were run together.
        estimated, full: seconds that this experiment takes after the cut and before it.
        factor, seeds: see `Cut`.
        panels: for each panel, `rounds` and `seeds` before the cut (`full`) and after it (`cut`).
    """

    budget: float
    estimated: float
    full: float
    factor: str
    seeds: int
    panels: dict[str, Any]

    @classmethod
    def of(
        cls, places: Sequence[Place], estimates: dict[str, Estimate], cut: Cut, budget: float, at_once: int
    ) -> "Record":
        trials = items(places, estimates)
        estimated, full = (round(spent(trials, each, at_once), 1) for each in (cut, WHOLE))
        return cls(budget, estimated, full, str(cut.factor), cut.seeds, panels(places, cut))

    @classmethod
    def read(cls, folder: Path, places: Sequence[Place], budget: float) -> "Record | None":
        """The record of an earlier call with the same budget and places, so that a rerun resumes its trials."""
        file = folder / "budget.json"
        if not file.is_file():
            return None
        earlier = cls(**json.loads(file.read_text()))
        same = earlier.budget == budget and earlier.panels == panels(places, earlier.cut)
        return earlier if same else None

    @property
    def cut(self) -> Cut:
        return Cut(Fraction(self.factor), self.seeds)

    def told(self, name: str) -> str:
        """The changes as text."""
        taken = f"{name}: about {duration(self.estimated)}"
        if self.estimated == self.full:
            return f"{taken}, nothing cut"
        lines = [f"{taken} instead of {duration(self.full)} (estimates)"]
        for panel, ends in self.panels.items():
            changes = [
                f"{kind} " + " -> ".join(", ".join(f"{n:,}" for n in ends[kind][end]) for end in ("full", "cut"))
                for kind in ("rounds", "seeds")
                if ends[kind]["full"] != ends[kind]["cut"]
            ]
            lines.append(f"  {panel + ': ' if panel else ''}{'; '.join(changes) or 'nothing cut'}")
        return "\n".join(lines)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "budget.json").write_text(json.dumps(vars(self), indent=1))


def panels(places: Sequence[Place], cut: Cut) -> dict[str, Any]:
    """Rounds and seeds of each panel with trials, before and after the cut."""
    trials: dict[str, list[Trial]] = {}
    for place in places:
        if isinstance(place.trial, Trial):
            trials.setdefault(place.labels["panel"], []).append(place.trial)
    result = {}
    for name, own in trials.items():
        lengths = sorted({(trial.rounds, trial.evaluation.step) for trial in own})
        seeds = list(dict.fromkeys(trial.seed for trial in own))
        result[name] = {
            "trials": len(own),
            "rounds": {"full": [rounds for rounds, _ in lengths], "cut": [cut.rounds(*length) for length in lengths]},
            "seeds": {"full": seeds, "cut": seeds[: cut.seeds]},
        }
    return result


def _ranked(places: Sequence[Place]) -> list[tuple[Place, int]]:
    """Each place with the rank of its seed among the seeds of its panel."""
    seeds: dict[str, list[int]] = {}
    for place in places:
        there = seeds.setdefault(place.labels["panel"], [])
        if place.trial.seed not in there:
            there.append(place.trial.seed)
    return [(place, seeds[place.labels["panel"]].index(place.trial.seed)) for place in places]
