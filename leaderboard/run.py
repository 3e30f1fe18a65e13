"""One finished trial, as the leaderboard sees it."""

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import pandas as pd

from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import parsed
from rollcall.benchmark.config.trial import Evaluation, LastRounds

Settings = tuple[tuple[str, str], ...]
"""Settings as text, sorted by dotted name."""


@dataclass(frozen=True)
class Run:
    """One trial that finished or diverged.

    Attributes:
        tags: experiment, algorithm, participation, task, seed, commit, version, ...
        settings: as they are written, as text, by dotted name.
        history: [evaluations], indexed by round, a column for each metric.
        source: `own`: from a run folder or from the user's MLflow server; `kept`: from an archive.
    """

    tags: dict[str, str]
    settings: dict[str, str]
    history: pd.DataFrame
    source: Literal["own", "kept"] = "kept"

    @property
    def cell(self) -> Settings:
        """All settings but the seed. The runs of one cell have them in common."""
        return self.settings_without("seed")

    @property
    def identity(self) -> Settings:
        """All settings but the number of rounds, which grows when a run is continued."""
        return self.settings_without("rounds")

    def settings_without(self, *names: str) -> Settings:
        """All settings but some."""
        return tuple(sorted((key, value) for key, value in self.settings.items() if key not in names))

    @property
    def rounds(self) -> int:
        """The number of rounds; 1 for an analysis."""
        return int(self.settings.get("rounds", 1))

    @property
    def diverged(self) -> bool:
        """Whether it diverged within its rounds. It then has no final value."""
        t = self.tags.get("rollcall.diverged")
        return t is not None and int(t) <= self.rounds

    def until(self, rounds: int) -> "Run":
        """The run as it was after this many rounds; the whole run if it has fewer."""
        settings = self.settings | {"rounds": str(min(rounds, self.rounds))}
        return replace(self, settings=settings, history=self.history[self.history.index <= rounds])

    @cached_property
    def _how_evaluated(self) -> Settings:
        """Its settings of the evaluation."""
        return tuple(pair for pair in self.settings.items() if pair[0].startswith("evaluation."))

    def has(self, metric: Metric) -> bool:
        """Whether the metric was measured."""
        return metric.column in self.history

    def window(self, metric: Metric, last_rounds: int) -> pd.Series:
        """The evaluations in the last rounds, by round, of a metric that was measured.

        They are empty unless they cover the window: the run has that many rounds, and was evaluated after all rounds of
        the window after which its settings say so. The evaluation before the first round does not count.
        """
        values = self.history[metric.column].dropna()
        if "rounds" not in self.settings:  # an analysis
            return values[values.index > values.index[-1] - last_rounds]
        if self.rounds < last_rounds:
            return values[:0]
        due = _due(self._how_evaluated, metric.split, self.rounds, last_rounds)
        return values.reindex(due) if values.index.isin(due).sum() == len(due) else values[:0]

    def final(self, metric: Metric, last_rounds: int = 1, at: int | None = None, per: Metric | None = None) -> float:
        """The final value of a metric that was measured.

        Args:
            metric: with a threshold the value is the first round that reaches it, infinite if none does; see `Metric`.
            last_rounds: the value is the mean of the `window` of this many last rounds; NaN if it is empty.
            at: take the evaluation after this round instead; NaN if there is none.
            per: `at` is a value of this metric, which grows with the rounds, such as a cost: take the last evaluation
                at which it was at most `at`; NaN if the run ended earlier.
        """
        if metric.threshold is not None:
            return first_round(self.curve(metric), metric)
        history = self.history[metric.column].dropna()
        if per is not None and at is not None:
            spent = self.history[per.column].reindex(history.index) if self.has(per) else history * math.nan
            within = history[spent <= at]
            return float(within.iloc[-1]) if spent.max() >= at and len(within) else math.nan
        if at is not None:
            return float(history.get(at, math.nan))
        return float(self.window(metric, last_rounds).mean())

    def curve(self, metric: Metric) -> pd.Series:
        """The regular evaluations of a metric by round, without those in between of the last rounds."""
        values = self.history[metric.column].dropna()
        return values[values.index % _evaluation(self._how_evaluated).every == 0]


def first_round(curve: pd.Series, metric: Metric) -> float:
    """The first round at which a curve reaches the threshold of a metric; infinite if it does not."""
    reached = curve.index[curve >= metric.threshold]
    return float(reached[0]) if len(reached) else math.inf


@cache
def _evaluation(settings: Settings) -> Evaluation:
    """The evaluation that settings as text describe."""
    plain = {path.removeprefix("evaluation."): parsed(text) for path, text in settings}
    last = {name: plain[f"last.{name}"] for name in ("rounds", "every", "splits") if f"last.{name}" in plain}
    return Evaluation(
        every=plain.get("every", Evaluation().every),
        last=LastRounds.model_validate(last) if last else None,
        at=plain.get("at", ()),
        splits=plain.get("splits"),
    )


@cache
def _due(settings: Settings, split: str, rounds: int, last_rounds: int) -> list[int]:
    """The rounds among the last ones after which settings as text say that a split is measured."""
    evaluation = _evaluation(settings)
    known = {*(evaluation.splits or ()), *((evaluation.last and evaluation.last.splits) or ())}

    def measured(t: int) -> bool:
        splits = evaluation.splits_at(t, rounds)
        return evaluation.due(t, rounds) and (splits is None or split in splits or split not in known)

    return [t for t in range(rounds - last_rounds + 1, rounds + 1) if measured(t)]
