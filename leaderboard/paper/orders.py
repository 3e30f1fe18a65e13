"""Published orders of two methods, taken apart: the gap as we read the paper, and with one change at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from rollcall.benchmark.config.base import Settings, validated
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.paper.claims import Results, pairs_of, values_of
from rollcall.leaderboard.paper.experiment import Claim
from rollcall.leaderboard.paper.quantities import Estimate, estimate, geometric
from rollcall.leaderboard.paper.reported import printed, printed_for
from rollcall.leaderboard.paper.sentences import MARK, RATIO, change, interval

Part = Literal["as read", "weights", "rates", "measure", "cost", "data"]
"""What a row changes: the clients' weights, the learning rates, the number that is read, what is equal, or the data."""


class Row(Settings):
    """One setting of an order: what it changes from the first row, and how.

    Attributes:
        changes: keys of the order's `gap` that are replaced.
        variant: of the experiment.
    """

    part: Part
    setting: str
    variant: str = ""
    changes: dict[str, Any] = Field({})


class Order(Settings):
    """An order of two methods that a paper states.

    Attributes:
        title: the methods, the task and where it is stated.
        says: what the rows show; {0} stands for the gap of the first row.
        experiment: that has the runs.
        gap: as in a claim: `of`, `minus` or `over`, `metric` and so on.
        printed: the gap that is printed, where it is no difference of two numbers of a printed table.
        rows: the first one as we read the paper.
    """

    title: str
    says: str
    experiment: str
    gap: dict[str, Any]
    printed: float | None = None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Gap:
    """A row with its gap over the seeds, what it adds to that of the first row, the printed gap, and its size.

    `searched`: whether rates were searched, whose uncertainty is not in the interval."""

    row: Row
    gap: Estimate
    step: Estimate | None
    printed: float | None
    metric: Metric
    size: str
    searched: bool

    @property
    def is_ratio(self) -> bool:
        return self.gap.logarithmic

    @property
    def text(self) -> str:
        return _text(self.gap, self.metric) + MARK * self.searched

    @property
    def printed_text(self) -> str:
        """The printed gap; empty if there is none."""
        return "" if self.printed is None else f"{'+' * (self.printed >= 0)}{self.metric.text(self.printed)}"

    @property
    def step_text(self) -> str:
        """What the change adds, seed by seed; empty for the first row."""
        return f"{'× ' if self.is_ratio else ''}{_text(self.step, self.metric)}" if self.step else ""


def taken_apart(order: Order, results: Callable[[str], Results]) -> list[Gap]:
    """The gap in each row; `results` gives the experiment, or a variant of it by name, with its cells."""
    made: list[Gap] = []
    first = pd.Series(dtype=float)
    for row in order.rows:
        experiment, cells = results(row.variant)
        claim = validated(Claim, {"says": row.setting, "tag": "ours", "least": 0.0, **order.gap, **row.changes})
        metric = claim.metric or experiment.report.metrics[0]
        ((cell, other),) = pairs_of(claim, metric, cells)
        assert other is not None
        values = values_of(claim, metric, experiment, cell, other)
        known = [printed_for(one.labels, metric, printed(experiment)) for one in (cell, other)]
        of_table = [number.value for number in known if number is not None and number.value is not None]
        paper = of_table[0] - of_table[1] if len(of_table) == 2 else None if made else order.printed
        of = geometric if claim.over else estimate
        steps = (values / first if claim.over else values - first).dropna()
        first = values if first.empty else first
        planned = f" of {cell.rounds:,}" if cell.rounds_run < cell.rounds else ""
        size = f"{counted(len(values), 'seed')}, {cell.rounds_run:,}{planned} rounds"
        step, searched = of(steps.to_numpy()) if made else None, bool(cell.searched or other.searched)
        made.append(Gap(row, of(values.to_numpy()), step, paper, metric, size, searched))
    return made


def _text(quantity: Estimate, metric: Metric) -> str:
    return interval(quantity, RATIO) if quantity.logarithmic else change(quantity, metric)
