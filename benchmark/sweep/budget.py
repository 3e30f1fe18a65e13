"""Reduce the rounds of experiments to a time budget. Every cell and every seed stays."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.experiment import Place, distinct
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.sweep.estimate import Estimate, wall
from rollcall.benchmark.sweep.times import duration

LEAST = Fraction(1, 10)
"""The least share of its rounds that a trial keeps; it also keeps at least two evaluations."""


def rounds_left(trial: Trial, share: Fraction) -> int:
    """The rounds of a trial that a share leaves: a multiple of the distance between two evaluations."""
    if share == 1:
        return trial.rounds
    every = trial.evaluation.step
    least = max(-int(-trial.rounds * LEAST // every), 2) * every
    return min(trial.rounds, max(int(share * trial.rounds // every) * every, least))


def spent(trials: Sequence[Trial], costs: Mapping[str, Estimate], share: Fraction, at_once: int) -> float:
    """The seconds that trials take with this share of their rounds, `at_once` at the same time."""
    return wall([costs[one.digest].seconds(rounds_left(one, share), one.evaluation) for one in trials], at_once)


def fit(trials: Sequence[Trial], costs: Mapping[str, Estimate], budget: float, at_once: int) -> Fraction:
    """The largest share of the rounds with which the trials fit a budget in seconds; the least one if none does."""
    # Between two of these shares no trial's rounds change.
    lengths = {(trial.rounds, trial.evaluation.step) for trial in trials}
    steps = {Fraction(k * step, rounds) for rounds, step in lengths for k in range(1, rounds // step + 1)}
    shares = sorted({LEAST, Fraction(1)} | {step for step in steps if step > LEAST})
    fitting = bisect_right(shares, budget, key=lambda share: spent(trials, costs, share, at_once))
    return shares[max(fitting - 1, 0)]


def trials_of(places: Sequence[Place]) -> list[Trial]:
    """The trials of an experiment, each once. Analyses are left out, since they take next to no time."""
    return [trial for trial in distinct(places) if isinstance(trial, Trial)]


@dataclass(frozen=True)
class Record:
    """The rounds that `--budget` removed; the content of `budget.json` in the folder of an experiment.

    Attributes:
        budget: seconds for all experiments that were run together.
        estimated, full: seconds that this experiment takes after the cut and before it.
        share: of the rounds.
        panels: the rounds of the trials of each panel before the cut (`full`) and after it (`cut`).
    """

    budget: float
    estimated: float
    full: float
    share: str
    panels: dict[str, Any]

    @classmethod
    def of(
        cls, places: Sequence[Place], costs: Mapping[str, Estimate], share: Fraction, budget: float, at_once: int
    ) -> "Record":
        trials = trials_of(places)
        estimated, full = (round(spent(trials, costs, each, at_once), 1) for each in (share, Fraction(1)))
        return cls(budget, estimated, full, str(share), panels(places, share))

    @classmethod
    def read(cls, folder: Path, places: Sequence[Place], budget: float) -> "Record | None":
        """The record of an earlier call with the same budget and places, so that a rerun resumes its trials."""
        try:
            earlier = cls(**json.loads((folder / "budget.json").read_text()))
        except (FileNotFoundError, TypeError):  # none, or of a version that removed seeds too
            return None
        same = earlier.budget == budget and earlier.panels == panels(places, Fraction(earlier.share))
        return earlier if same else None

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "budget.json").write_text(json.dumps(vars(self), indent=1))

    def apply(self, places: Sequence[Place]) -> list[Place]:
        """The places with the rounds that are left."""
        return [
            place
            if isinstance(trial := place.trial, Analysis)
            else Place(place.labels, place.spec | {"rounds": rounds_left(trial, Fraction(self.share))})
            for place in places
        ]

    def told(self, name: str) -> str:
        """The changes as text."""
        taken = f"{name}: about {duration(self.estimated)}"
        if self.estimated == self.full:
            return f"{taken}, nothing cut"
        lines = [f"{taken} instead of {duration(self.full)} (estimates)"]
        for panel, rounds in self.panels.items():
            full, cut = (", ".join(f"{n:,}" for n in rounds[end]) for end in ("full", "cut"))
            change = "nothing cut" if full == cut else f"rounds {full} -> {cut}"
            lines.append(f"  {panel + ': ' if panel else ''}{change}")
        return "\n".join(lines)


def panels(places: Sequence[Place], share: Fraction) -> dict[str, Any]:
    """The number of trials of each panel that has some, and their rounds before and after the cut."""
    trials: dict[str, list[Trial]] = {}
    for place in places:
        if isinstance(place.trial, Trial):
            trials.setdefault(place.labels["panel"], []).append(place.trial)
    result = {}
    for name, own in trials.items():
        one_each = {(trial.rounds, trial.evaluation.step): trial for trial in own}
        kinds = [one_each[length] for length in sorted(one_each)]
        cut = [rounds_left(trial, share) for trial in kinds]
        result[name] = {"trials": len(own), "full": [trial.rounds for trial in kinds], "cut": cut}
    return result
