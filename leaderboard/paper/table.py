"""A paper's table, measured and printed numbers side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from benchmark.config.experiment import Experiment
from benchmark.config.metric import Metric
from leaderboard.paper.cells import Cell
from leaderboard.paper.reported import Printed, printed_for
from leaderboard.table import SIZE, Column, Entry, Number, Table, diverged_number, number


@dataclass(frozen=True)
class Layout:
    """What stands where.

    Attributes:
        down: axes whose labels stand at the left of a row.
        across: axes whose labels head the columns.
        heads: their combinations of labels.
        metrics: measured ones; a column each below every head.
        compared: metrics of which the paper prints numbers; two more columns each.
    """

    down: list[str]
    across: list[str]
    heads: list[tuple[str, ...]]
    metrics: list[Metric]
    compared: set[Metric]


def paper_table(experiment: Experiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> Table:
    """The table as the paper lays it out: the report's `columns` across, the other axes that vary down the side.

    If the paper prints a number, it stands beside the measured one, with the difference.

    Args:
        experiment: of the paper.
        cells: of the experiment, at least one.
        numbers: that the paper prints.
    """
    layout = _layout(experiment, cells, numbers)
    last_rounds = experiment.report.last_rounds
    mixed = len({run.source for cell in cells for run in cell.runs.values()}) > 1
    rows = []
    for labels in dict.fromkeys(_labels(cell, layout.down) for cell in cells):
        in_row = [cell for cell in cells if _labels(cell, layout.down) == labels]
        row: list[Entry] = list(labels)
        for head, metric in product(layout.heads, layout.metrics):
            cell = next((cell for cell in in_row if _labels(cell, layout.across) == head), None)
            row += _entries(cell, metric, last_rounds, numbers, metric in layout.compared)
        row.append(_range([len(cell.runs) for cell in in_row], in_row[0].seeds))
        row.append(_range([cell.rounds_run for cell in in_row], in_row[0].rounds))
        if mixed:
            row.append(", ".join(sorted({run.source for cell in in_row for run in cell.runs.values()}, reverse=True)))
        rows.append(row)
    columns = _columns(layout) + ([Column("runs", "runs", words=True, group=SIZE)] if mixed else [])
    return Table(columns, rows, _caption(last_rounds, cells))


def _layout(experiment: Experiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> Layout:
    report = experiment.report
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    varying = [axis for axis in axes if len({cell.labels.get(axis, "") for cell in cells}) > 1]
    down = [axis for axis in varying if axis not in report.columns]
    if "algorithm" in axes and "algorithm" not in (*down, *report.columns):
        down.append("algorithm")  # a single method is named too
    across = [axis for axis in report.columns if axis in varying]
    return Layout(
        down=down,
        across=across,
        heads=list(product(*(dict.fromkeys(cell.labels.get(axis, "") for cell in cells) for axis in across))),
        metrics=[
            metric for metric in report.metrics if any(cell.diverged or len(cell.finals(metric, 1)) for cell in cells)
        ],
        compared={number.metric for number in numbers},
    )


def _columns(layout: Layout) -> list[Column]:
    columns = [Column(axis, axis, words=True) for axis in layout.down]
    for head, metric in product(layout.heads, layout.metrics):
        title = " ".join([*filter(None, head), metric.title])
        key = " ".join([*filter(None, head), metric.name])
        columns.append(Column(title, key, measured=True, group=key))
        if metric in layout.compared:
            columns.append(Column("paper", f"{key} paper", measured=True, group=key))
            columns.append(Column("diff", f"{key} diff", measured=True, group=key))
    return [*columns, Column("seeds", "seeds", group=SIZE), Column("rounds", "rounds", group=SIZE)]


def _labels(cell: Cell, axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell.labels.get(axis, "") for axis in axes)


def _entries(
    cell: Cell | None, metric: Metric, last_rounds: int, numbers: Sequence[Printed], compared: bool
) -> list[Entry]:
    """The measured number; if the paper prints the metric anywhere, also the printed number and the difference."""
    measured = None if cell is None else _measured(cell, metric, last_rounds)
    known = None if cell is None else printed_for(cell.labels, metric, numbers)
    entries: list[Entry] = ["" if measured is None else measured]
    if not compared:
        return entries
    if known is None:
        return [*entries, "", ""]
    entries.append(_number(metric, known.value, math.nan if known.sd is None else known.sd))
    if measured is None or not (math.isfinite(measured.mean) and math.isfinite(known.value)):
        return [*entries, ""]
    difference = measured.mean - known.value
    sign = "+" if measured.mean >= known.value else "-"
    return [*entries, Number(difference, math.nan, f"{sign}{metric.text(abs(difference))}")]


def _measured(cell: Cell, metric: Metric, last_rounds: int) -> Number | None:
    values = cell.finals(metric, last_rounds)
    if len(values):
        mean = float(values.mean())
        sd = float(values.std(ddof=1)) if math.isfinite(mean) else math.nan
        return replace(_number(metric, mean, sd), diverged=cell.diverged, seeds=len(cell.runs))
    return diverged_number(len(cell.runs)) if cell.diverged else None


def _number(metric: Metric, mean: float, sd: float) -> Number:
    """Mean and standard deviation with as many digits as the latter gives a meaning to."""
    return number(mean, sd, lambda value: metric.text(value, sd))


def _range(counts: Sequence[int], planned: int) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,} of {planned:,}" if low == high else f"{low:,} to {high:,} of {planned:,}"


def _caption(last_rounds: int, cells: Sequence[Cell]) -> str:
    when = "last evaluation" if last_rounds == 1 else f"mean of the last {last_rounds} rounds"
    exceptions = ["of a shortened run: at most its last fifth"] if last_rounds > 1 else []
    if any(cell.rounds < last_rounds and not cell.is_analysis for cell in cells):
        exceptions.append("of a shorter run: of all its rounds")
    when += f" ({'; '.join(exceptions)})" if exceptions else ""
    over = "over seeds that did not diverge" if any(cell.diverged for cell in cells) else "over seeds"
    return f"{when}; mean ± standard deviation {over}; seeds and rounds: done of planned"
