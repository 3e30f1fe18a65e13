"""A metric: what a run is measured by, whether high or low is better, and how its values are printed."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, PlainSerializer

from rollcall.benchmark.config.errors import SettingError

Direction = Literal["max", "min", "zero"]
"""Which values are better: high ones, low ones, or those near 0 of a quantity with a sign, such as a bias."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
OVER = {"round": "round", "gradients": "cost/gradients", "floats": "cost/floats_up", "seconds": "time/seconds"}
"""What curves and tables can be over, with its column in a run's history."""

THRESHOLD = re.compile(f"({'|'.join(OVER)})_of:")
SPLITS = ("train", "test", "validation")
COSTS = {
    "cost/gradients": "client gradients",
    "cost/floats_up": "floats sent",
    "cost/floats_down": "floats received",
    "time/seconds": "seconds",
}


@dataclass(frozen=True)
class Metric:
    """A metric as an experiment file names it. Two metrics are equal if their names are.

    Attributes:
        name: `split/metric`, `split/metric/group` or the name of a quantity of an analysis. With `round_of:NAME>=VALUE`
            the value of a run is the first round whose evaluation of NAME reaches VALUE, infinite if none does. Only
            the evaluations every `evaluation.every` rounds count, not those in between of the last rounds. With
            `gradients_of:`, `floats_of:` or `seconds_of:` it is the cost of these rounds.
        direction: which values are better.

    Raises SettingError: the name is a threshold that cannot be read.
    """

    name: str
    direction: Direction = field(default="max", compare=False)

    def __post_init__(self) -> None:
        if self.threshold is not None and not (self.column and math.isfinite(self.threshold)):
            raise SettingError(f"metric: {self.name!r} is not allowed; must be round_of:NAME>=NUMBER")

    @cached_property
    def column(self) -> str:
        """The column of a run's history that it reads."""
        return self.name if self.threshold is None else THRESHOLD.sub("", self.name, count=1).partition(">=")[0]

    @cached_property
    def over(self) -> str:
        """The column of the cost that a threshold counts, or `round`."""
        counted = THRESHOLD.match(self.name)
        return OVER[counted[1]] if counted else "round"

    @cached_property
    def threshold(self) -> float | None:
        """The value to be reached; None if the metric is no threshold."""
        try:
            return float(self.name.partition(">=")[2]) if THRESHOLD.match(self.name) else None
        except ValueError:
            return math.nan

    @property
    def split(self) -> str:
        """The split that is evaluated, such as `test`; empty for a quantity of an analysis."""
        split, slash, _ = self.column.partition("/")
        return split if slash else ""

    @property
    def percent(self) -> bool:
        return "accuracy" in self.column and self.threshold is None

    @property
    def title(self) -> str:
        """Its name as people read it: `test accuracy (per client)`."""
        if self.column in COSTS:
            return COSTS[self.column]
        first, *others = self.column.replace("_", " ").split("/", 2)
        words = [first, others[0], *(f"({group})" for group in others[1:])] if first in SPLITS and others else []
        title = " ".join(words) or self.column.replace("_", " ")
        if self.threshold is None:
            return title
        value = Metric(self.column)
        first = "first round with" if self.over == "round" else f"{COSTS[self.over]} until"
        return f"{first} {title} ≥ {value.stated(self.threshold)}{' %' if value.percent else ''}"

    @property
    def head(self) -> str:
        return f"{self.title} %" if self.percent else self.title

    @property
    def scale(self) -> float:
        """The factor from its values to printed ones."""
        return 100.0 if self.percent else 1.0

    @property
    def arrow(self) -> str:
        return {"max": "↑", "min": "↓", "zero": "→ 0"}[self.direction]

    def best(self, values: Iterable[float]) -> float:
        return min(values, key=self.penalty)

    def penalty(self, value: float) -> float:
        """A number that is lower for a better value: -value, value or |value|; infinite if the value is not known."""
        if math.isnan(value):
            return math.inf
        return {"max": -value, "min": value, "zero": abs(value)}[self.direction]

    def text(self, value: float, spread: float = 0.0, more: int = 0) -> str:
        """A value as people read it: to the second digit of its spread, with five digits at most.

        As `1.23e5` from 100,000 on and below 0.001; percent with one decimal, rounds with none. `more` are decimals
        beside these, of a value that has a spread, is in percent or is a round.
        """
        if self.threshold is not None and not math.isfinite(value):
            return "not reached"
        if self.percent or (self.threshold is not None and self.over == "round"):
            return f"{self.scale * value:z.{self.percent + more}f}"
        if not (0 < spread < math.inf and math.isfinite(value)):
            return _short(f"{float(f'{value:.4g}'):.5g}")  # four digits, and an exponent from 100,000 on
        last = math.floor(math.log10(spread)) - 1  # the decimal place of the second digit
        first = math.floor(math.log10(max(abs(value), spread)))
        last = max(last, first - 4) - more
        if first >= 5 or first < -3:
            return _short(f"{value:.{max(0, math.floor(math.log10(abs(value))) - last if value else 0)}e}")
        return f"{round(value, -last):z.{max(0, -last)}f}"

    def stated(self, value: float) -> str:
        """A value that a file states, such as a bound: of percent with all its decimals, one at least."""
        return max(self.text(value), f"{self.scale * value:.6g}", key=len) if self.percent else self.text(value)


def _short(text: str) -> str:
    """A number without the zeros and the plus sign of its exponent: `1e-9` instead of `1e-09`."""
    return re.sub(r"e([+-])0*(\d)", lambda found: f"e{found[1].strip('+')}{found[2]}", text)


def direction_of(name: str, declared: Iterable[Metric] = ()) -> Direction | None:
    """Which values of a metric are better; None if that is not known.

    Args:
        name: of the metric.
        declared: metrics whose directions are known, such as those of a report. One of them counts if it has this name,
            on the same split or else on another one. Otherwise accuracies are to be high, losses low and biases near 0.
            A value is to be reached early.
    """
    known = {metric.name: metric.direction for metric in declared}
    if name in known:
        return known[name]
    known = {metric.partition("/")[2]: direction for metric, direction in known.items()}
    measure = name.partition("/")[2]
    if measure and measure in known:
        return known[measure]
    by_word: dict[str, Direction] = {"_of:": "min", "accuracy": "max", "loss": "min", "bias": "zero"}
    return next((direction for word, direction in by_word.items() if word in name), None)


def _metrics(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        value = {name: direction_of(name) for name in value}
        for name in [name for name, direction in value.items() if direction is None]:
            raise SettingError(f"{name}: which end is better is not known; write a mapping, such as {{{name}: max}}")
    if isinstance(value, Mapping):
        for name, direction in value.items():
            if direction not in DIRECTIONS:
                raise SettingError(f"{name}: {direction!r} is not allowed; must be one of {', '.join(DIRECTIONS)}")
        return tuple(Metric(str(name), direction) for name, direction in value.items())
    return value  # for pydantic to check


MetricName = Annotated[
    Metric,
    BeforeValidator(lambda value: Metric(value) if isinstance(value, str) else value),
    PlainSerializer(lambda metric: metric.name),
]
"""A field that YAML gives as a metric's name."""

Metrics = Annotated[
    tuple[Metric, ...],
    BeforeValidator(_metrics),
    PlainSerializer(lambda metrics: {metric.name: metric.direction for metric in metrics}),
]
"""A field that YAML gives as a mapping of metrics' names to `max`, `min` or `zero`, or as a list of known names."""
