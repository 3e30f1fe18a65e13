"""Comparisons in REPRODUCTION.md: with the printed numbers, between variants, and the order of the methods."""

import math
from collections.abc import Sequence
from itertools import groupby

import pandas as pd

from benchmark.config.experiment import Experiment
from benchmark.config.metric import Metric
from leaderboard.paper.cells import Cell, after_equal_rounds, cells, estimate
from leaderboard.paper.claims import check_claim
from leaderboard.paper.reported import Printed, printed_for
from leaderboard.paper.sentences import change, claims_list, interval, tally_of
from leaderboard.render import markdown
from leaderboard.run import Run
from leaderboard.table import Column, Entry, Table


def agreement(experiment: Experiment, measured: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
    """Lines: how many printed numbers agree with the measured ones, and those that differ."""
    verdicts, differing = [], []
    for cell in measured:
        for metric in dict.fromkeys(number.metric for number in numbers):
            number = printed_for(cell.labels, metric, numbers)
            values = cell.finals(metric, experiment.report.last_rounds)
            if number is None or not len(values):
                continue
            verdict = _agrees(cell, values, number)
            verdicts.append(verdict)
            if verdict == "differs":
                quantity = interval(estimate(values), metric)
                differing.append(f"- {cell.where}, {metric.name}: {quantity}, printed {metric.text(number.value)}")
    if not verdicts:
        return []
    return [f"Printed numbers: {tally_of(verdicts)}.", "", *differing, *([""] if differing else [])]


def _agrees(cell: Cell, values: pd.Series, number: Printed) -> str:
    """Whether a printed number is within the interval, widened by the paper's standard deviation."""
    if cell.diverged:
        return "undecided (diverged)"
    if cell.reduced:
        return "undecided (reduced)"
    quantity = estimate(values, cell.exact)
    if math.isinf(quantity.high):
        return "undecided (one seed)"
    slack = number.sd or 0.0
    return "agrees" if quantity.low - slack <= number.value <= quantity.high + slack else "differs"


def variants(experiment: Experiment, runs: Sequence[Run], paper: Sequence[Cell]) -> list[str]:
    """Lines: for each variant that was run, what it changes and its claims.

    Args:
        experiment: with variants.
        runs: of the experiment and its variants.
        paper: the cells of the experiment itself.
    """
    metric = experiment.report.metrics[0]
    lines = []
    for name, variant in experiment.variants.items():
        changed = cells(experiment.as_(name), runs)
        table = _changes(name, metric, experiment.report.last_rounds, paper, changed)
        if table.rows:
            lines += [f"`{name}`: {' '.join(variant.about.split())}", "", markdown(table)]
            lines += claims_list([check_claim(claim, experiment.report, changed) for claim in variant.claims])
            lines += [""] if variant.claims else []
    return lines


def _changes(name: str, metric: Metric, last_rounds: int, paper: Sequence[Cell], variant: Sequence[Cell]) -> Table:
    """A row for each cell of a variant with runs of its own, over the seeds that both have."""
    by_labels = {tuple(cell.labels.items()): cell for cell in variant}
    rows: list[list[Entry]] = []
    for before in paper:
        after = by_labels.get(tuple(before.labels.items()))
        if after is None:
            continue
        before, after = after_equal_rounds(before, after)
        a, b = before.finals(metric, last_rounds), after.finals(metric, last_rounds)
        seeds = a.index.intersection(b.index)
        trials = [{cell.runs[seed].tags["rollcall.trial"] for seed in seeds} for cell in (before, after)]
        if trials[0] == trials[1]:
            continue
        means = [metric.text(float(values[seeds].mean())) for values in (a, b)]
        difference = change(estimate(b[seeds] - a[seeds]), metric)
        rows.append([before.where, *means, difference, len(seeds), f"{after.rounds_run:,}"])
    columns = [Column("cell", "cell", words=True)]
    columns += [Column(title, title) for title in ("paper", name, "change", "seeds", "rounds")]
    return Table(columns, rows, f"{metric.name}; change: {name} minus paper, with its 95 % interval")


def orders(experiment: Experiment, measured: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
    """Lines: the methods from best to worst, measured and printed, wherever the paper prints numbers."""
    metric = experiment.report.metrics[0]
    places: dict[str, dict[str, tuple[float, float]]] = {}
    for cell in measured:
        number = printed_for(cell.labels, metric, numbers)
        values = cell.finals(metric, experiment.report.last_rounds)
        if number is not None and len(values):
            where = ", ".join(label for axis, label in cell.labels.items() if axis != "algorithm" and label)
            places.setdefault(where, {})[cell.labels["algorithm"]] = (values.mean(), number.value)
    lines = []
    for where, values_by_method in places.items():
        measured_order, printed_order = (_order(metric, values_by_method, column) for column in (0, 1))
        lines.append(f"- {where}: {measured_order}; printed: {printed_order}")
    return [f"From best to worst by {metric.name}:", "", *lines, ""] if lines else []


def _order(metric: Metric, values: dict[str, tuple[float, float]], column: int) -> str:
    ranked = sorted(values, key=lambda method: metric.penalty(values[method][column]))
    equal = [list(group) for _, group in groupby(ranked, key=lambda method: values[method][column])]
    return " > ".join(" = ".join(methods) for methods in equal)
