"""What the leaderboard of an experiment shows."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.metric import MetricName, Metrics


def _labels(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


Labels = Annotated[
    dict[str, Annotated[tuple[str, ...], BeforeValidator(_labels)]],
    Field(description="labels by axis of the grid, or by `panel`"),
]


class Report(Settings):
    """What the leaderboard shows: a table of final values and a figure of curves."""

    metrics: Metrics = Field(
        {"test/accuracy": "max"},
        validate_default=True,
        min_length=1,
        description="metrics that have a column each, and which values are better: max, min or zero; the first ranks. "
        "Accuracies, losses and biases may be a list of names",
    )
    last_rounds: PositiveInt = Field(
        1, description="a final value is the mean over the evaluations of this many last rounds"
    )
    columns: tuple[str, ...] = Field((), description="axes whose labels head the columns; by default none")
    pictures: tuple[str, ...] = Field(
        (), description="axes besides the panel with a plot for each label; by default those of `columns`"
    )
    overlay: bool = Field(False, description="draw all panels into the same plots")
    drawn: tuple[MetricName, ...] = Field(
        (),
        description="metrics that have a plot each; by default the first metric that a panel measured. Another model's "
        "metric, such as test/accuracy/server, has a line in the plot of test/accuracy",
    )
    against: tuple[MetricName, ...] = Field(
        (), description="metrics on the x axis of a plot each, which has a point for each cell instead of curves"
    )
    x: str = Field(
        "round", description="the x axis of the curves: `round`, `gradients`, `floats`, `seconds`, or an axis"
    )
    log: tuple[Literal["x", "y"], ...] = Field((), description="axes of the figure with a logarithmic scale")
