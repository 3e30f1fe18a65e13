"""A table, the model behind rankings and papers' tables, and its forms: terminal, Markdown, LaTeX, CSV."""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich import box
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from rollcall.benchmark.config.axes import is_number
from rollcall.leaderboard.names import label_names

TEX = {letter: f"\\{letter}" for letter in "%&_#${}"}
TEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
TEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "×": r"$\times$"}
TEX |= {"≤": r"$\leq$", "≥": r"$\geq$", "π": r"$\pi$", "λ": r"$\lambda$"}
TEX |= {"†": r"\dag{}", "‡": r"\ddag{}", "→": r"$\to$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"}
"""The characters that have a meaning in LaTeX, as text."""

PADDING = 2
"""Spaces between two columns in a terminal."""

SIZE = "size"
"""The group of the columns that tell how much was run: seeds and rounds."""


@dataclass(frozen=True)
class Number:
    """A mean over seeds, their sample standard deviation (NaN if it is not known), and both as printed.

    `best` marks the best of its column.
    """

    mean: float
    sd: float
    text: str
    sd_text: str = ""
    best: bool = False

    def __str__(self) -> str:
        return f"{self.text} ± {self.sd_text}" if self.sd_text else self.text


def number(mean: float, sd: float, digits: Callable[[float], str]) -> Number:
    """A mean and its standard deviation, both printed by `digits`."""
    return Number(float(mean), float(sd), digits(mean), "" if math.isnan(sd) else digits(sd))


def finite(value: float | None) -> float | None:
    """A number as JSON has it: null if it is not known or not finite."""
    return value if value is not None and math.isfinite(value) else None


Printable = str | int | Number


@dataclass(frozen=True)
class Column:
    """The head of a column of `words`, which are aligned left, or of numbers.

    `arrow` says which way is better, where a page shows it. `axis` is the one whose labels the column holds, and
    `named` the title with their display names. Columns of one `group` stay side by side where a table is split; those
    without one are repeated. Groups with one `above` stay together, too, where a part has room for all of them.
    """

    title: str
    words: bool = False
    arrow: str = ""
    axis: str = ""
    named: str = ""
    group: str = ""
    above: str = ""


@dataclass(frozen=True)
class Table:
    """Columns and rows; an entry that is missing is the empty text.

    The caption says how the numbers were computed, `best_of` among which rows a best value is the best, if not all.
    """

    columns: list[Column]
    rows: list[list[Printable]]
    caption: str
    best_of: str = ""

    @classmethod
    def of_columns(
        cls, columns: Sequence[tuple[Column, Sequence[Printable]]], caption: str, best_of: str = ""
    ) -> "Table":
        heads, entries = zip(*columns, strict=True)
        return cls(list(heads), [list(row) for row in zip(*entries, strict=True)], caption, best_of)

    @property
    def marks_best(self) -> bool:
        return any(isinstance(entry, Number) and entry.best for row in self.rows for entry in row)

    @property
    def titles(self) -> list[str]:
        return [column.title for column in self.columns]

    @property
    def named(self) -> "Table":
        """The table with display names instead of labels, for files that people read."""
        named: list[tuple[Column, Sequence[Printable]]] = []
        for index, column in enumerate(self.columns):
            entries = [row[index] for row in self.rows]
            names = label_names(column.axis, {str(entry) for entry in entries}) if column.axis else {}
            titled = replace(column, title=column.named or column.title)
            named.append((titled, [names[str(entry)] if names else entry for entry in entries]))
        return Table.of_columns(named, self.caption, self.best_of)

    def texts(self, best: str, escape: Callable[[str], str]) -> list[list[str]]:
        """The titles, and the entries row by row, as escaped text; `best % text` is the form of a best value."""

        def text(entry: Printable) -> str:
            is_best = isinstance(entry, Number) and entry.best
            return best % escape(str(entry)) if is_best else escape(str(entry))

        lines: list[Sequence[Printable]] = [self.titles, *self.rows]
        return [[text(entry) for entry in line] for line in lines]


def terminal(table: Table, title: str, width: int) -> Group:
    """Rich tables, the best values bold with a star.

    A table that is wider than the terminal is split: each part repeats the columns without a group and has as many
    groups of columns as fit. The width is in characters.
    """
    grids = [_grid(table, part, width) for part in _parts(table, width)]
    return Group(Text(title, "italic"), *grids, Text(_caption(table, "* best"), "dim italic"))


def _grid(table: Table, indices: Sequence[int], width: int) -> Grid:
    """Some columns of a table. Titles are broken between words if the part is too wide; entries only if it still is."""
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    broken = _width(table, indices, whole=True) > width
    for index in indices:
        title = table.columns[index].title
        title = textwrap.fill(title, _widest(table, index, title.split())) if broken else title
        justify: Literal["left", "right"] = "left" if table.columns[index].words else "right"
        grid.add_column(Text(title), justify=justify, overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(row[index], table.marks_best) for index in indices))
    return grid


def _parts(table: Table, width: int) -> list[list[int]]:
    """The indices of the columns of each part. Groups with one `above` begin where there is room for all of them."""
    repeated = {index for index, column in enumerate(table.columns) if not column.group}
    groups: dict[tuple[str, str], set[int]] = {}
    for index, column in enumerate(table.columns):
        if column.group:
            groups.setdefault((column.above or column.group, column.group), set()).add(index)
    parts: list[set[int]] = []
    begun = ""
    for (above, _), members in groups.items():
        block = members.union(*(own for (other, _), own in groups.items() if other == above))
        needed, begun = (members if above == begun else block), above
        if parts and _width(table, parts[-1] | needed) <= width:
            parts[-1] |= members
        else:
            parts.append(repeated | members)
    return [sorted(part) for part in parts or [repeated]]


def _width(table: Table, indices: Iterable[int], whole: bool = False) -> int:
    """The width of a part with whole titles, or with titles broken between words."""
    titles = {index: table.columns[index].title for index in indices}
    widths = [_widest(table, index, [title] if whole else title.split()) for index, title in titles.items()]
    return sum(widths) + PADDING * len(widths) + 1


def _widest(table: Table, index: int, title: Sequence[str]) -> int:
    """The width of a column's entries and of the parts of its title."""
    entries = (len(_cell(row[index], table.marks_best)) for row in table.rows)
    return max([1, *map(len, title), *entries])


def markdown(table: Table) -> str:
    """A GitHub table, the best values bold."""
    table = table.named
    rule = ["---" if column.words else "---:" for column in table.columns]
    head, *body = table.texts("**%s**", marked_down)
    lines = [f"| {' | '.join(line)} |" for line in (head, rule, *body)]
    return "\n".join([*lines, "", marked_down(_caption(table, "bold: best")), ""])


def marked_down(text: str) -> str:
    """Text that a Markdown file shows as it is: without tags of HTML, and in one cell of a table."""
    return escape(text, quote=False).replace("|", r"\|").replace("&gt;", ">")


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    """Long rows, as `--json` has them, as CSV: numbers with all digits, a column for each axis of the labels.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """

    def plain(entry: Any) -> Any:
        is_formula = isinstance(entry, str) and entry.startswith(("=", "+", "@", "\t", "-")) and not is_number(entry)
        return f"'{entry}" if is_formula else entry

    flat = [row["labels"] | {key: value for key, value in row.items() if key != "labels"} for row in rows]
    return pd.DataFrame(flat).map(plain).to_csv(index=False, lineterminator="\n")


def latex(table: Table) -> str:
    """A `tabular` with booktabs rules and display names, the best values bold. The caption is a comment above."""
    table = table.named
    columns = "".join("l" if column.words else "r" for column in table.columns)
    head, *lines = [" & ".join(row) + r" \\" for row in table.texts(r"\textbf{%s}", _escaped)]
    notes = [r"% needs \usepackage{booktabs}", f"% {' '.join(_caption(table, 'bold: best').split())}"]
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
    return "\n".join([*notes, *body, r"\end{tabular}", ""])


def _caption(table: Table, legend: str) -> str:
    return f"{table.caption}; {legend}{table.best_of}" if table.marks_best else table.caption


def _cell(entry: Printable, marks_best: bool) -> Text:
    if not isinstance(entry, Number) or not marks_best:
        return Text(str(entry))
    return Text(f"{entry} *", "bold green") if entry.best else Text(f"{entry}  ")  # room for the star


def _escaped(text: str) -> str:
    special = "".join(TEX.get(letter, letter) for letter in text)
    special = re.sub(r"(?<![\w.])(\d[\d.]*)e(-?\d+)(?!\w)", r"\1$\\cdot10^{\2}$", special)  # 1.2e-9
    special = re.sub(r"(?<!\w)-(?=\d)(?![^${]*})", "$-$", special)
    return f"{{[}}{special[1:]}" if special.startswith("[") else special  # after \\\\ it would begin an option


def clear(file: Path) -> None:
    """Make room for a file: its folder is made, and a link removed, as it may lead out of the folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        file.unlink()
