"""A table, however it is shown: the model behind rankings and the papers' tables. See `rollcall.leaderboard.render`."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """A mean over seeds and how it is printed.

    Attributes:
        mean: over seeds.
        sd: sample standard deviation; NaN if it is not known, as with one seed.
        text: the mean as printed.
        sd_text: the standard deviation as printed; empty if it is not known.
        best: whether it is marked as the best of its column.
        diverged: of how many seeds the run diverged; with one of them there is no mean.
        seeds: number of all seeds, where `diverged` is not 0.
    """

    mean: float
    sd: float
    text: str
    sd_text: str = ""
    best: bool = False
    diverged: int = 0
    seeds: int = 0

    def __str__(self) -> str:
        return f"{self.text} ± {self.sd_text}" if self.sd_text else self.text


def number(mean: float, sd: float, digits: Callable[[float], str]) -> Number:
    """A mean and its standard deviation, both printed by `digits`."""
    return Number(float(mean), float(sd), digits(mean), "" if math.isnan(sd) else digits(sd))


def diverged_number(diverged: int, seeds: int) -> Number:
    """The entry of a cell of which runs diverged: it has no mean."""
    text = "diverged" if diverged == seeds else f"{diverged} of {seeds} diverged"
    return Number(math.nan, math.nan, text, diverged=diverged, seeds=seeds)


def finite(value: float | None) -> float | None:
    """A number as JSON has it: null if it is not known or not finite."""
    return value if value is not None and math.isfinite(value) else None


Entry = str | int | Number


SIZE = "size"
"""The group of the columns that tell how much was run: seeds and rounds."""


@dataclass(frozen=True)
class Column:
    """The head of a column.

    Attributes:
        title: as people read it.
        key: unique name in JSON and in a CSV file of all digits.
        words: whether it holds words, which are aligned left; numbers are aligned right.
        measured: whether its entries are of type `Number`, or empty.
        arrow: which way is better, where a page shows it.
        group: columns of one group stay side by side where a table is split; empty for those that every part repeats.
    """

    title: str
    key: str
    words: bool = False
    measured: bool = False
    arrow: str = ""
    group: str = ""


@dataclass(frozen=True)
class Table:
    """Columns and rows.

    Attributes:
        columns: their heads.
        rows: as long as `columns`; an entry that is missing is the empty text.
        caption: how the numbers were computed.
    """

    columns: list[Column]
    rows: list[list[Entry]]
    caption: str

    @property
    def marks_best(self) -> bool:
        """Whether a best value is marked."""
        return any(isinstance(entry, Number) and entry.best for row in self.rows for entry in row)
