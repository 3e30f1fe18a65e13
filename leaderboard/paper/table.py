"""A paper's table, measured and printed side by side, and the forms it is shown in."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd
import rich.box
from rich.table import Table as Grid

from benchmark.config.experiment import Experiment
from leaderboard.paper.cells import Cell
from leaderboard.paper.reported import Printed


@dataclass(frozen=True)
class Sheet:
    """Text in rows and columns.

    Attributes:
        header: column titles.
        rows: of text, as long as the header.
        left: how many columns hold words; the others hold numbers.
        caption: how the numbers came to be.
    """

    header: list[str]
    rows: list[list[str]]
    left: int
    caption: str


def paper_table(experiment: Experiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> Sheet:
    """The table as the paper lays it out: the report's `columns` across, the other axes that vary down the side.

    Each value is `mean ± sd`; where the paper prints one, its number and the difference stand beside it.
    """
    report = experiment.report
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    varying = [axis for axis in axes if len({cell.labels.get(axis, "") for cell in cells}) > 1]
    down = [axis for axis in varying if axis not in report.columns]
    if "algorithm" in axes and "algorithm" not in (*down, *report.columns):
        down.append("algorithm")
    across = [axis for axis in report.columns if axis in varying]
    heads = list(product(*(dict.fromkeys(cell.labels.get(axis, "") for cell in cells) for axis in across)))
    metrics = [metric for metric in report.metrics if any(len(cell.ends(metric, 1)) for cell in cells)]
    compared = {number.metric for number in numbers}
    header = list(down)
    for head, metric in product(heads, metrics):
        name = " ".join([*filter(None, head), f"{metric} %" if is_share(metric) else metric])
        header += [name, "paper", "diff"] if metric in compared else [name]
    rows = []
    for labels in dict.fromkeys(tuple(cell.labels.get(axis, "") for axis in down) for cell in cells):
        mine = [cell for cell in cells if tuple(cell.labels.get(axis, "") for axis in down) == labels]
        row = list(labels)
        for head, metric in product(heads, metrics):
            there = [cell for cell in mine if tuple(cell.labels.get(axis, "") for axis in across) == head]
            row += _entry(there[0] if there else None, metric, report.last_rounds, numbers, metric in compared)
        rows.append(
            [
                *row,
                _span([len(cell.runs) for cell in mine], mine[0].seeds),
                _span([cell.rounds_run for cell in mine], mine[0].rounds),
            ]
        )
    when = (
        "last evaluation"
        if report.last_rounds == 1
        else f"mean of the last {report.last_rounds} rounds (of a shortened run, of its last fifth at most)"
    )
    caption = f"{when}; mean ± standard deviation over seeds; seeds and rounds: run of the paper's"
    return Sheet([*header, "seeds", "rounds"], rows, len(down), caption)


def shown(metric: str, value: float, spread: float = 0.0) -> str:
    """A value of a metric as people read it: accuracies in percent, others down to the second digit of their spread."""
    if is_share(metric):
        return f"{100 * value:.1f}"
    if not 1e-6 < spread < 1e6:
        return f"{value:.4g}"
    return f"{value:.{max(0, 1 - math.floor(math.log10(spread)))}f}"


def with_spread(metric: str, mean: float, sd: float) -> str:
    """`mean ± sd`."""
    return f"{shown(metric, mean, sd)} ± {shown(metric, sd, sd)}"


def terminal(sheet: Sheet, title: str) -> Grid:
    """A rich table."""
    grid = Grid(
        title=title, title_justify="left", box=rich.box.SIMPLE_HEAD, caption=sheet.caption, caption_justify="left"
    )
    for index, name in enumerate(sheet.header):
        grid.add_column(name, justify="left" if index < sheet.left else "right", overflow="fold")
    for row in sheet.rows:
        grid.add_row(*row)
    return grid


def markdown(sheet: Sheet) -> str:
    """A GitHub table, its columns aligned in the text too."""
    rule = ["---" if index < sheet.left else "---:" for index in range(len(sheet.header))]
    lines = [sheet.header, rule, *sheet.rows]
    widths = [max(len(row[index]) for row in lines) for index in range(len(sheet.header))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in lines
    ]
    return "\n".join([*text, "", sheet.caption, ""])


def comma_separated(sheet: Sheet) -> str:
    """The same cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([sheet.header, *sheet.rows])
    return text.getvalue()


def latex(sheet: Sheet) -> str:
    """A `tabular` with booktabs' rules."""
    columns = "l" * sheet.left + "r" * (len(sheet.header) - sheet.left)
    lines = [" & ".join(map(_escaped, row)) + r" \\" for row in (sheet.header, *sheet.rows)]
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    return "\n".join([*body, r"\end{tabular}", ""])


def _entry(cell: Cell | None, metric: str, last_rounds: int, numbers: Sequence[Printed], compared: bool) -> list[str]:
    """Measured, and where the paper prints the metric anywhere in the table, printed and difference."""
    values = pd.Series(dtype=float) if cell is None else cell.ends(metric, last_rounds)
    mean = float(values.mean()) if len(values) else None
    measured = "" if mean is None else shown(metric, mean)
    if mean is not None and len(values) > 1:
        measured = with_spread(metric, mean, float(values.std(ddof=1)))
    if not compared:
        return [measured]
    known = None if cell is None else printed_beside(cell, metric, numbers)
    if known is None:
        return [measured, "", ""]
    paper = shown(metric, known.value) if known.sd is None else with_spread(metric, known.value, known.sd)
    difference = (
        "" if mean is None else f"{'+' if mean >= known.value else '-'}{shown(metric, abs(mean - known.value))}"
    )
    return [measured, paper, difference]


def printed_beside(cell: Cell, metric: str, numbers: Sequence[Printed]) -> Printed | None:
    """The printed number of a cell, if there is one."""
    for number in numbers:
        if number.metric == metric and all(cell.labels.get(axis) == label for axis, label in number.labels.items()):
            return number
    return None


def _span(run: list[int], full: int) -> str:
    low, high = min(run), max(run)
    return f"{low:,} of {full:,}" if low == high else f"{low:,} to {high:,} of {full:,}"


def is_share(metric: str) -> bool:
    """Whether values of a metric are shown in percent."""
    return not metric.startswith("round_of:") and "accuracy" in metric


def _escaped(text: str) -> str:
    found = "".join(f"\\{letter}" if letter in "%&_#$" else letter for letter in text)
    return found.replace("±", r"$\pm$").replace(" -", " $-$") if not found.startswith("-") else f"$-${found[1:]}"
