"""A paper's table, measured and printed numbers side by side; and the same numbers as long rows."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.paper.reported import Printed, printed_for
from rollcall.leaderboard.render import SIZE, Column, Entry, Number, Table, diverged_number, finite, number


def paper_table(experiment: Experiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> Table:
    """The table as the paper lays it out: the report's `columns` across, the other axes that vary down the side.

    If the paper prints a number, it stands beside the measured one, with the difference where the runs have all rounds.

    Args:
        experiment: of the paper.
        cells: of the experiment, at least one.
        numbers: that the paper prints.
    """
    report, last_rounds = experiment.report, experiment.report.last_rounds
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    varying = [axis for axis in axes if len({cell.labels.get(axis, "") for cell in cells}) > 1]
    down = [axis for axis in varying if axis not in report.columns]
    if "algorithm" in axes and "algorithm" not in (*down, *report.columns):
        down.append("algorithm")  # a single method is named too
    across = [axis for axis in report.columns if axis in varying]
    heads = list(product(*(dict.fromkeys(cell.labels.get(axis, "") for cell in cells) for axis in across)))
    metrics = [metric for metric in report.metrics if any(cell.measured(metric) for cell in cells)]
    compared = {number.metric for number in numbers}
    mixed = len({run.source for cell in cells for run in cell.runs.values()}) > 1
    rows = []
    for labels in dict.fromkeys(_labels(cell, down) for cell in cells):
        in_row = [cell for cell in cells if _labels(cell, down) == labels]
        row: list[Entry] = list(labels)
        for head, metric in product(heads, metrics):
            cell = next((cell for cell in in_row if _labels(cell, across) == head), None)
            row += _entries(cell, metric, last_rounds, numbers, metric in compared)
        done = [cell for cell in in_row if cell.runs] or in_row
        row.append(f"{_range([len(cell.runs) for cell in done])} of {_range([cell.seeds for cell in done])}")
        row.append(f"{_range([cell.rounds_run for cell in done])} of {_range([cell.rounds for cell in done])}")
        if mixed:
            row.append(", ".join(sorted({run.source for cell in in_row for run in cell.runs.values()}, reverse=True)))
        rows.append(row)
    columns = [Column(axis, axis, words=True) for axis in down]
    for head, metric in product(heads, metrics):
        title, key = (" ".join([*filter(None, head), text]) for text in (metric.title, metric.name))
        columns.append(Column(title, key, measured=True, group=key))
        if metric in compared:
            columns.append(Column("paper", f"{key} paper", measured=True, group=key))
            columns.append(Column("diff", f"{key} diff", measured=True, group=key))
    columns += [Column("seeds", "seeds", group=SIZE), Column("rounds", "rounds", group=SIZE)]
    columns += [Column("runs", "runs", words=True, group=SIZE)] if mixed else []
    return Table(columns, rows, _caption(experiment, cells, metrics, numbers))


def long_rows(experiment: Experiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> list[dict[str, Any]]:
    """A row for each cell that was run and each metric of the report.

    `mean` is null where the evaluations do not cover the window or a seed diverged; `evaluations` is how many of them a
    run's mean is of; `planned` is the number of rounds that the file asks for.
    """
    last_rounds = experiment.report.last_rounds
    rows = []
    for cell, metric in product([cell for cell in cells if cell.runs], experiment.report.metrics):
        if not cell.measured(metric):
            continue
        measured, known = _measured(cell, metric, last_rounds), printed_for(cell.labels, metric, numbers)
        row = {
            "labels": {axis: label for axis, label in cell.labels.items() if label},
            "metric": metric.name,
            "mean": finite(measured.mean if measured else None),
            "sd": finite(measured.sd if measured else None),
            "seeds": len(cell.runs),
            "rounds": cell.rounds_run,
            "planned": cell.rounds,
            "evaluations": cell.evaluations(metric, last_rounds),
            "paper_mean": finite(known.value if known else None),
            "paper_sd": finite(known.sd if known else None),
            "source": ", ".join(sorted({run.source for run in cell.runs.values()})),
        }
        notes = {"diverged": cell.diverged, "note": known.note if known else ""}
        rows.append(row | {key: note for key, note in notes.items() if note})
    return rows


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
    if cell is None or known is None or known.value is None:
        return [*entries, "" if known is None else f"({known.shared})*", ""]
    entries.append(_number(metric, known.value, math.nan if known.sd is None else known.sd))
    if measured is None or cell.rounds_run < cell.rounds or not math.isfinite(measured.mean - known.value):
        return [*entries, ""]
    difference = measured.mean - known.value
    sign = "+" if measured.mean >= known.value else "-"
    return [*entries, Number(difference, math.nan, f"{sign}{metric.text(abs(difference))}")]


def _measured(cell: Cell, metric: Metric, last_rounds: int) -> Number | None:
    """The mean over seeds; None if a run did not measure it or its evaluations do not cover the window."""
    if cell.diverged:
        return diverged_number(cell.diverged, len(cell.runs))
    mean = cell.mean(metric, last_rounds)
    if math.isnan(mean):
        return None
    values = cell.finals(metric, last_rounds)
    return _number(metric, mean, float(values.std(ddof=1)) if math.isfinite(values.sum()) else math.nan)


def _number(metric: Metric, mean: float, sd: float) -> Number:
    """Mean and standard deviation with as many digits as the latter gives a meaning to."""
    return number(mean, sd, lambda value: metric.text(value, sd))


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _caption(
    experiment: Experiment, cells: Sequence[Cell], metrics: Sequence[Metric], numbers: Sequence[Printed]
) -> str:
    """How the numbers were computed."""
    last_rounds = experiment.report.last_rounds
    counts = {cell.evaluations(metric, last_rounds) for cell in cells if cell.runs for metric in metrics}
    counts.discard(0)
    over = f" ({_range(sorted(counts))} evaluations)" if counts else ""
    parts = ["last evaluation" if last_rounds == 1 else f"mean of the last {last_rounds} rounds{over}"]
    if any(metric.threshold is not None for metric in metrics):
        parts = ["first round at which the mean curve over the seeds reaches the value"]
    parts += ["mean ± standard deviation over seeds; seeds and rounds: done of planned"]
    lacking = [cell for cell in cells if cell.runs and not cell.diverged and not cell.is_analysis]
    if any(
        cell.measured(metric) and _measured(cell, metric, last_rounds) is None for cell in lacking for metric in metrics
    ):
        parts.append("empty: the evaluations do not cover these rounds")
    shared = {
        known.among for cell in cells for metric in metrics if (known := printed_for(cell.labels, metric, numbers))
    }
    parts += [
        f"*: one number for {' and '.join(among)} in our copy; whose it is, is not known" for among in shared if among
    ]
    return "; ".join(parts)
