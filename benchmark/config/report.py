"""What an experiment's leaderboard shows, which printed numbers it is compared with, and what its paper claims."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from benchmark.config.base import Settings
from benchmark.config.errors import SettingError

Labels = Annotated[
    dict[str, Annotated[tuple[str, ...], BeforeValidator(lambda given: _labels(given))]],
    Field(description="axis of the grid, or `panel`, to the labels that are meant"),
]


class Report(Settings):
    """What its leaderboard shows: a table of end values, and a figure of curves."""

    metrics: dict[str, Literal["max", "min"]] = Field(
        {"test/accuracy": "max"}, min_length=1, description="columns, and which end is best; the first one ranks"
    )
    last_rounds: PositiveInt = Field(1, description="values are means over the evaluations of the last so many rounds")
    columns: tuple[str, ...] = Field((), description="axes whose labels head the columns; by default a plain ranking")
    pictures: tuple[str, ...] = Field(
        (), description="axes beside the panel whose labels have a picture each; by default those of the columns"
    )
    overlay: bool = Field(False, description="panels share pictures instead of having their own")
    drawn: tuple[str, ...] = Field(
        (), description="metrics that have a picture each; by default the first that was measured in a panel"
    )
    x: str = Field("round", description="what curves run over: rounds, or an axis whose labels are numbers")
    log: tuple[Literal["x", "y"], ...] = Field((), description="axes of the figure with a logarithmic scale")


class Claim(Settings):
    """A sentence of the paper, and the quantity that decides it.

    The quantity is the value of the cells `of`, less that of the cells `minus` or divided by that of `over`; the two
    are paired where their other labels are equal. `along` an axis it is the difference between neighbours on it. The
    claim holds where, for every such pair, the quantity lies within `least` and `most`.
    """

    says: str
    where: Labels = Field({}, description="the cells it speaks of; by default all")
    of: Labels = Field({}, description="the cells whose value it is; by default all of them")
    minus: Labels | None = None
    over: Labels | None = None
    along: str | None = Field(None, description="axis whose neighbours are compared, in the order of the file")
    metric: str | None = Field(None, description="by default the report's first")
    at: PositiveInt | None = Field(None, description="round; by default the report's last rounds")
    least: float | None = None
    most: float | None = None
    printed: float | None = Field(None, description="the quantity as the paper prints it")
    cause: str = Field("", description="why it does not hold, where that is understood, with the evidence")

    @model_validator(mode="after")
    def _is_decidable(self) -> "Claim":
        if self.least is None and self.most is None:
            raise SettingError("least: is missing; a claim must have least, most or both")
        if sum(given is not None for given in (self.minus, self.over, self.along)) > 1:
            raise SettingError("minus: is not allowed beside over or along; must be one of the three")
        return self


class Reported(Settings):
    """Numbers the paper prints, from a file of `leaderboard/reported`."""

    file: str = Field(description="its name, without .csv")
    axes: dict[str, str] = Field(description="axis of the grid, or `panel`, to the file's column of its labels")
    metric: str = Field(description="which metric a row speaks of; {column} stands for the row's entry")
    value: str = Field(description="column of the number")
    spread: str | None = Field(None, description="column of its standard deviation")
    scale: float = Field(1.0, description="what the numbers are multiplied with; 0.01 for percent")


def _labels(given: Any) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list | tuple) else (str(given),)
