"""A metric: what a run is measured by, whether high or low is better, and how its values are printed."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from rollcall.benchmark.config.errors import SettingError

Direction = Literal["max", "min", "zero"]
"""Which values are better: high ones, low ones, or those near 0 of a quantity with a sign, such as a bias."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
THRESHOLD = "round_of:"


@dataclass(frozen=True)
class Metric:
    """A metric as an experiment file names it. Two metrics are equal if their names are.

    Attributes:
        name: `split/metric`, `split/metric/group` or the name of a quantity of an analysis. With `round_of:NAME>=VALUE`
            the value of a run is the first round whose evaluation of NAME reaches VALUE, infinite if none does. Only
            the evaluations every `evaluation.every` rounds count, not those in between of the last rounds.
        direction: which values are better.

    Raises:
        SettingError: the name is a threshold that cannot be read.
    """

    name: str
    direction: Direction = field(default="max", compare=False)

    def __post_init__(self) -> None:
        if self.threshold is not None and not (self.column and math.isfinite(self.threshold)):
            raise SettingError(f"metric: {self.name!r} is not allowed; must be {THRESHOLD}NAME>=NUMBER")

    @cached_property
    def column(self) -> str:
        """The column of a run's history that it reads."""
        return self.name if self.threshold is None else self.name.removeprefix(THRESHOLD).partition(">=")[0]

    @cached_property
    def threshold(self) -> float | None:
        """The value to be reached; None if the metric is no threshold."""
        try:
            return float(self.name.partition(">=")[2]) if self.name.startswith(THRESHOLD) else None
        except ValueError:
            return math.nan

    @property
    def split(self) -> str:
        """The split that is evaluated, such as `test`; empty for a quantity of an analysis."""
        split, slash, _ = self.column.partition("/")
        return split if slash else ""

    @property
    def percent(self) -> bool:
        """Whether its values are printed in percent."""
        return "accuracy" in self.column and self.threshold is None

    @property
    def title(self) -> str:
        """Its name and unit."""
        return f"{self.name} %" if self.percent else self.name

    @property
    def arrow(self) -> str:
        """Which way is better."""
        return {"max": "↑", "min": "↓", "zero": "→ 0"}[self.direction]

    def best(self, values: Iterable[float]) -> float:
        """The best of at least one value."""
        return min(values, key=self.penalty)

    def penalty(self, value: float) -> float:
        """A number that is lower for a better value: -value, value or |value|; infinite if the value is not known."""
        if math.isnan(value):
            return math.inf
        return {"max": -value, "min": value, "zero": abs(value)}[self.direction]

    def text(self, value: float, spread: float = 0.0) -> str:
        """A value as people read it: accuracies in percent, others down to the second digit of their spread."""
        if self.threshold is not None and not math.isfinite(value):
            return "not reached"
        if self.percent:
            return f"{100 * value:.1f}"
        if not 1e-6 < spread < 1e6:
            return f"{value:.4g}"
        return f"{value:.{max(0, 1 - math.floor(math.log10(spread)))}f}"


def direction_of(name: str, declared: Iterable[Metric] = ()) -> Direction | None:
    """Which values of a metric are better; None if that is not known.

    Args:
        name: of the metric.
        declared: metrics whose directions are known, such as those of a report. One of them counts if it has this name,
            on the same split or else on another one. Otherwise accuracies are to be high, losses low and biases near 0.
    """
    known = {metric.name: metric.direction for metric in declared}
    if name in known:
        return known[name]
    known = {metric.partition("/")[2]: direction for metric, direction in known.items()}
    measure = name.partition("/")[2]
    if measure and measure in known:
        return known[measure]
    by_word: dict[str, Direction] = {"accuracy": "max", "loss": "min", "bias": "zero"}
    return next((direction for word, direction in by_word.items() if word in name), None)


def _metric(value: Any) -> Any:
    return Metric(value) if isinstance(value, str) else value


def _metrics(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
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
    BeforeValidator(_metric),
    PlainSerializer(lambda metric: metric.name),
    WithJsonSchema({"type": "string"}),
]
"""A field that YAML gives as a metric's name."""

Metrics = Annotated[
    tuple[Metric, ...],
    BeforeValidator(_metrics),
    PlainSerializer(lambda metrics: {metric.name: metric.direction for metric in metrics}),
    WithJsonSchema({"type": "object", "additionalProperties": {"enum": list(DIRECTIONS)}}),
]
"""A field that YAML gives as a mapping of metrics' names to `max`, `min` or `zero`, or as a list of known names."""
