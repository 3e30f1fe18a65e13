"""What the leaderboard of an experiment shows, which printed numbers it is compared with, and what its paper claims."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from benchmark.config.base import Settings
from benchmark.config.errors import SettingError
from benchmark.config.metric import MetricName, Metrics

Labels = Annotated[
    dict[str, Annotated[tuple[str, ...], BeforeValidator(lambda labels: _labels(labels))]],
    Field(description="labels by axis of the grid, or by `panel`"),
]


class Report(Settings):
    """What the leaderboard shows: a table of final values and a figure of curves."""

    metrics: Metrics = Field(
        {"test/accuracy": "max"},
        validate_default=True,
        min_length=1,
        description="metrics that have a column each, and which values are better: max, min or zero; the first ranks",
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
        (), description="metrics that have a plot each; by default the first metric that a panel measured"
    )
    x: str = Field("round", description="the x axis of the curves: rounds, or an axis whose labels are numbers")
    log: tuple[Literal["x", "y"], ...] = Field((), description="axes of the figure with a logarithmic scale")


class Claim(Settings):
    """A statement of the paper, and the quantity that decides it.

    The quantity is the final value of each cell in `of`. With `minus` it is the difference to the matching cell in
    `minus`, with `over` the ratio to the matching cell in `over`: the cell whose other labels are equal. With `along`
    it is the difference between neighbours on that axis. The claim holds if the quantity lies between `least` and
    `most` everywhere.
    """

    says: str = Field(description="the statement, in words")
    where: Labels = Field({}, description="the cells that the claim is about; by default all")
    of: Labels = Field({}, description="the cells whose value is compared; by default all of them")
    minus: Labels | None = Field(None, description="cells whose value is subtracted")
    over: Labels | None = Field(None, description="cells whose value is divided by")
    along: str | None = Field(None, description="axis whose neighbours are compared, in the order of the file")
    metric: MetricName | None = Field(None, description="by default the report's first")
    at: PositiveInt | None = Field(None, description="the round to look at; by default the report's last rounds")
    per: MetricName | None = Field(
        None, description="`at` is a value of this metric instead of a round, such as `cost/floats_up`"
    )
    least: float | None = Field(None, description="lower bound of the quantity")
    most: float | None = Field(None, description="upper bound of the quantity")
    printed: float | None = Field(None, description="the quantity as the paper prints it")
    cause: str = Field("", description="why the claim does not hold, if that is known, with the evidence")

    @model_validator(mode="after")
    def _is_decidable(self) -> "Claim":
        if self.least is None and self.most is None:
            raise SettingError("least: is missing; a claim must have least, most or both")
        if sum(option is not None for option in (self.minus, self.over, self.along)) > 1:
            raise SettingError("minus: is not allowed beside over or along; must be one of the three")
        if self.per is not None and self.at is None:
            raise SettingError("at: is missing; must be given beside per")
        return self


class Reported(Settings):
    """Numbers that the paper prints, from a file in `leaderboard/reported`."""

    file: str = Field(description="name of the file, without .csv")
    axes: dict[str, str] = Field(description="the file's column of labels, by axis of the grid or by `panel`")
    metric: str = Field(description="the metric of a row; {column} stands for the row's entry in that column")
    value: str = Field(description="column of the number")
    spread: str | None = Field(None, description="column of its standard deviation")
    scale: float = Field(1.0, description="factor that converts the numbers; 0.01 for percent")


def _labels(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
