"""One finished trial, as the leaderboard sees it."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from benchmark.config.digest import known_since
from benchmark.config.metric import Metric
from benchmark.config.trial import Evaluation, LastRounds
from benchmark.config.yaml_text import parsed

Settings = tuple[tuple[str, str], ...]
"""Settings as text, sorted by dotted name."""


@dataclass(frozen=True)
class Run:
    """One trial that finished or diverged.

    Attributes:
        tags: experiment, algorithm, participation, task, seed, commit, version, ...
        settings: all settings as text, by dotted name.
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
        """All settings but some, and but `numerics.devices`, which changes no result."""
        out = (*names, "numerics.devices")
        return tuple(sorted((key, value) for key, value in known_since(self.settings).items() if key not in out))

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

    def in_one_go(self) -> "Run":
        """The run without the last evaluations of a shorter run that it continued: one run of all rounds has none."""
        keys = {name: f"evaluation.last.{name}" for name in ("rounds", "every")}
        last = {name: int(self.settings[key]) for name, key in keys.items() if key in self.settings}
        evaluation = Evaluation(
            every=int(self.settings.get("evaluation.every", 1)),
            last=LastRounds.model_validate(last) if last else None,
            at=parsed(self.settings.get("evaluation.at", "[]")),
        )
        due = [evaluation.due(int(t), self.rounds) for t in self.history.index]
        return replace(self, history=self.history[np.array(due, dtype=bool)])

    def has(self, metric: Metric) -> bool:
        """Whether the metric was measured."""
        return metric.column in self.history

    def final(self, metric: Metric, last_rounds: int = 1, at: int | None = None, per: Metric | None = None) -> float:
        """The final value of a metric that was measured.

        Args:
            metric: with a threshold the value is the first round that reaches it, see `Metric`.
            last_rounds: the value is the mean over the evaluations of this many last rounds; NaN if there are none.
                The evaluation before the first round does not count.
            at: take the evaluation after this round instead; NaN if there is none.
            per: `at` is a value of this metric, which grows with the rounds, such as a cost: take the last evaluation
                at which it was at most `at`; NaN if the run ended earlier.
        """
        history = self.history[metric.column].dropna()
        if per is not None and at is not None:
            spent = self.history[per.column].reindex(history.index) if self.has(per) else history * math.nan
            within = history[spent <= at]
            return float(within.iloc[-1]) if spent.max() >= at and len(within) else math.nan
        if metric.threshold is not None:
            regular = history.index % int(self.settings.get("evaluation.every", 1)) == 0
            reached = history.index[regular & (history >= metric.threshold)]
            return float(reached[0]) if len(reached) else math.inf
        if at is not None:
            return float(history.get(at, math.nan))
        if "rounds" not in self.settings:  # an analysis
            return float(history[history.index > history.index[-1] - last_rounds].mean())
        last = max([self.rounds, *history.index[-1:]])
        return float(history[history.index > max(last - last_rounds, 0)].mean())
