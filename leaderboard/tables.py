"""The tables: a ranking of the user's own runs, a paper's table with its printed numbers, and both as long rows."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import COSTS, Metric
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.comparison import Comparison, how
from rollcall.leaderboard.names import label_name, method_name
from rollcall.leaderboard.paper.experiment import Printed, printed_for
from rollcall.leaderboard.ranking import METHOD, Ranking
from rollcall.leaderboard.render import SIZE, Column, Entry, Number, Table, finite, number


def ranking_table(
    ranking: Ranking, baseline: str = "", beside: Mapping[str, Sequence[Comparison | None]] | None = None
) -> Table:
    """The cells of a ranking, group by group, the best value of each metric of a group marked.

    `beside` has, by metric, the comparison of each cell with a baseline; see `against`.
    """
    cells, last_rounds = ranking.cells, ranking.last_rounds
    columns: list[tuple[Column, Sequence[Entry]]] = []
    for key in (METHOD, *ranking.settings):
        head = Column("method" if key == METHOD else ranking.short(key), words=True, axis=key)
        columns.append((head, [one.labels[key] for one in cells]))
    for metric in ranking.metrics:
        values = [entry for group in ranking.groups for entry in _marked(group, metric, last_rounds)]
        columns.append((Column(metric.head, arrow=metric.arrow, group=metric.name), values))
        if beside:
            less = Column(f"minus {baseline}", named=f"minus {method_name(baseline)}", group=metric.name)
            columns.append((less, [one.text if one else "" for one in beside[metric.name]]))
    columns.append((Column("seeds", group=SIZE), [len(cell.runs) for cell in cells]))
    parts = [", ".join(f"{metric.name} {metric.arrow}" for metric in ranking.metrics)]
    parts += _how(cells, ranking.metrics, last_rounds)
    seeds = [",".join(sorted(cell.runs, key=int)) for cell in cells]
    if len(set(seeds)) > 1:  # as when the best settings of a search run with more seeds
        columns.append((Column("which seeds", words=True, group=SIZE), seeds))
        parts.append("rows have different seeds (to compare equal ones: --only seed=...)")
    columns.append((Column("rounds", group=SIZE), [cell.rounds_run for cell in cells]))
    compared = [one for every in (beside or {}).values() for one in every if one]
    parts += [how(baseline, compared)] if compared else []
    best_of = f" of the rows with equal {', '.join(ranking.equal)}" if ranking.equal else ""
    return Table.of_columns(columns, "; ".join(parts), best_of)


def paper_table(experiment: Experiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> Table:
    """The table as the paper lays it out: the report's `columns` across, the other axes that vary down the side.

    If the paper prints a number, it stands beside the measured one, with the difference; in brackets, with the share of
    rounds, where the runs have fewer rounds.
    A metric that the paper prints for other cells only is left out. There is at least one cell. Of an axis of the
    experiment on which all cells have one label, the caption says which.
    """
    report, last_rounds = experiment.report, experiment.report.last_rounds
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    varying = [axis for axis in axes if len({cell.labels.get(axis, "") for cell in cells}) > 1]
    down = [axis for axis in varying if axis not in report.columns]
    if METHOD in axes and METHOD not in (*down, *report.columns):
        down.append(METHOD)  # a single method is named too
    across = [axis for axis in report.columns if axis in varying]
    heads = list(product(*(dict.fromkeys(cell.labels.get(axis, "") for cell in cells) for axis in across)))
    compared = {number.metric for number in numbers}
    elsewhere = compared - {number.metric for number in numbers if any(number.of(cell.labels) for cell in cells)}
    metrics = [metric for metric in report.metrics if any(cell.measured(metric) for cell in cells)]
    metrics = [metric for metric in metrics if metric not in elsewhere] or metrics
    mixed = len({run.source for cell in cells for run in cell.runs.values()}) > 1
    rows = []
    for labels in dict.fromkeys(_labels(cell, down) for cell in cells):
        in_row = [cell for cell in cells if _labels(cell, down) == labels]
        row: list[Entry] = list(labels)
        for head, metric in product(heads, metrics):
            cell = next((cell for cell in in_row if _labels(cell, across) == head), None)
            row += _entries(cell, metric, last_rounds, numbers, metric in compared)
        done = [cell for cell in in_row if cell.runs] or in_row
        row.append(f"{span([len(cell.runs) for cell in done])} of {span([cell.seeds for cell in done])}")
        row.append(f"{span([cell.rounds_run for cell in done])} of {span([cell.rounds for cell in done])}")
        sources = sorted({run.source for cell in in_row for run in cell.runs.values()}, reverse=True)
        rows.append([*row, ", ".join(sources)] if mixed else row)
    columns = [Column(axis, words=True, axis=axis) for axis in down]
    for head, metric in product(heads, metrics):
        names = [label_name(axis, label) for axis, label in zip(across, head, strict=True) if label]
        title, named = (" ".join([*filter(None, words), metric.head]) for words in (head, names))
        group = f"{head} {metric.name}"
        columns.append(Column(title, named=named, group=group))
        columns += [Column(beside, group=group) for beside in ("printed", "less printed") if metric in compared]
    columns += [Column(title, group=SIZE) for title in ("seeds", "rounds")]
    columns += [Column("runs", words=True, group=SIZE)] if mixed else []
    parts = [*_how(cells, metrics, last_rounds), "seeds and rounds: done of planned"]
    several = [axis for axis, labels in experiment.shown.items() if len(labels) > 1 and axis not in varying]
    titles = {label: panel.title for label, panel in experiment.panels.items() if panel.title}
    single = [(axis, label) for axis in several if (label := cells[0].labels.get(axis))]
    texts = [(axis == "panel" and titles.get(label)) or label_name(axis, label) for axis, label in single]
    parts += [f"all rows: {', '.join(texts)}"] if texts else []
    among = {one.among for one in numbers if one.metric in metrics and any(one.of(cell.labels) for cell in cells)}
    shared = [" and ".join(labels) for labels in sorted(among - {()})]
    parts += [f"*: one number for {labels} in our copy; whose it is, is not known" for labels in shared]
    return Table(columns, rows, "; ".join(parts))


def long_rows(
    cells: Iterable[Cell], metrics: Sequence[Metric], last_rounds: int, numbers: Sequence[Printed] = ()
) -> list[dict[str, Any]]:
    """A row for each cell that was run and each metric.

    `mean` is null where the evaluations do not cover the window or a seed diverged; `evaluations` is how many of them a
    run's mean is of; `planned` is the number of rounds that the file asks for.
    """
    rows = []
    for cell, metric in product([cell for cell in cells if cell.runs], metrics):
        if not (cell.measured(metric) or cell.diverged):
            continue
        measured, known = cell.number(metric, last_rounds), printed_for(cell.labels, metric, numbers)
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
        rows.append(
            row
            | ({"diverged": cell.diverged} if cell.diverged else {})
            | ({"note": known.note} if known and known.note else {})
        )
    return rows


def _marked(cells: Sequence[Cell], metric: Metric, last_rounds: int) -> list[Entry]:
    """The entries of competing cells, the best one of several marked; empty where there is no number."""
    values = [cell.number(metric, last_rounds) for cell in cells]
    means = [value.mean for value in values if value and not math.isnan(value.mean)]  # NaN if a run diverged
    best = metric.best(means) if means else math.nan
    return ["" if value is None else replace(value, best=value.mean == best and len(cells) > 1) for value in values]


def _labels(cell: Cell, axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell.labels.get(axis, "") for axis in axes)


def _entries(
    cell: Cell | None, metric: Metric, last_rounds: int, numbers: Sequence[Printed], compared: bool
) -> list[Entry]:
    """The measured number; if the paper prints the metric anywhere, also the printed number and the difference."""
    measured = None if cell is None else cell.number(metric, last_rounds)
    known = None if cell is None else printed_for(cell.labels, metric, numbers)
    entries: list[Entry] = ["" if measured is None else measured]
    if not compared:
        return entries
    if cell is None or known is None or known.value is None:
        return [*entries, "" if known is None else f"({known.shared})*", ""]
    sd = math.nan if known.sd is None else known.sd
    entries.append(number(known.value, sd, lambda value: metric.text(value, sd)))
    if measured is None or not math.isfinite(measured.mean - known.value):
        return [*entries, ""]
    difference = measured.mean - known.value
    text = f"{'+' if measured.mean >= known.value else '-'}{metric.text(abs(difference))}"
    if cell.rounds_run < cell.rounds and metric.threshold is None:  # a round that was reached stays the first
        return [*entries, f"({text} at {cell.rounds_run / cell.rounds:.0%})"]
    return [*entries, Number(difference, math.nan, text)]


def span(counts: Collection[int]) -> str:
    """`300`, or `300 to 10,000`: the least and the largest of some counts."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _how(cells: Sequence[Cell], metrics: Sequence[Metric], last_rounds: int) -> list[str]:
    ran = [cell for cell in cells if cell.runs]
    counts = {cell.evaluations(metric, last_rounds) for cell in ran for metric in metrics} - {0}
    over = f" ({span(counts)} evaluation{'' if counts == {1} else 's'})" if counts else ""
    reached = dict.fromkeys(metric.over for metric in metrics if metric.threshold is not None)
    parts = ["last evaluation" if last_rounds == 1 else f"mean of the last {last_rounds} rounds{over}"]
    parts = parts if any(metric.threshold is None for metric in metrics) else []
    for cost in reached:
        until = "first round at which" if cost == "round" else f"{COSTS[cost]} until"
        parts.append(f"{until} the mean curve over the seeds reaches the value")
    parts.append("mean ± standard deviation over seeds")
    measured = [(cell, metric) for cell in ran for metric in metrics if not cell.is_analysis and cell.measured(metric)]
    if any(cell.number(metric, last_rounds) is None for cell, metric in measured):
        parts.append("empty: the evaluations do not cover these rounds (--last-rounds N averages fewer)")
    return parts
