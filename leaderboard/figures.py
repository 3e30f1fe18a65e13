"""Curves: mean over seeds, with a band of one standard deviation."""

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmark.errors import SettingError
from benchmark.experiment import Experiment
from leaderboard.cells import Cell
from leaderboard.results import has
from leaderboard.table import Table, is_arena

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # Okabe and Ito's, for all eyes


OFF_THE_PICTURE = 1e3
"""How far above where all began a curve that diverges leaves a logarithmic picture."""


def curves(table: Table) -> Figure:
    """The ranking metric against rounds: a panel for each arena, in it the best row of every method."""
    arenas = [
        [row for row in table.rows if row.arena == arena] for arena in dict.fromkeys(row.arena for row in table.rows)
    ]
    methods = {method: index for index, method in enumerate(sorted({row.method for row in table.rows}))}
    columns = min(len(arenas), 3)
    figure = Figure(figsize=(1.5 + 6.5 * columns**0.5, 4.2 * -(-len(arenas) // columns)), layout="constrained")
    panels = figure.subplots(-(-len(arenas) // columns), columns, squeeze=False, sharey=True).flat
    for axes, rows in zip(panels, arenas, strict=False):
        best = {row.method: row for row in reversed(rows)}  # rows stand in order of rank
        for method, row in reversed(best.items()):
            mean, sd = row.curves.mean(axis=1), row.curves.std(axis=1, ddof=1).fillna(0.0)
            index = methods[method]
            colour, style = COLOURS[index % len(COLOURS)], ("-", "--", ":")[index // len(COLOURS) % 3]
            axes.plot(mean.index, mean, style, color=colour, label=method, linewidth=1.8)
            axes.fill_between(mean.index, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
        settings = rows[0].settings.items()
        if len(arenas) > 1:
            axes.set_title(
                ", ".join(f"{table.short(key)}={value}" for key, value in settings if is_arena(key) and value),
                fontsize=9,
            )
        axes.set_xlabel("round")
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0)
    for axes in list(figure.axes)[len(arenas) :]:
        axes.remove()
    figure.axes[0].set_ylabel(next(iter(table.metrics)))
    named = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside right upper", frameon=False)
    return figure


def paper_figure(experiment: Experiment, cells: Sequence[Cell]) -> Figure:
    """The first metric of an experiment's cells: over rounds, a line for each cell with a band of one standard
    deviation over seeds, or over the axis that the report names as `x`, a line for each of the other labels. On a
    logarithmic axis both are of the logarithms.

    Every panel, and every label of the report's `pictures` or `columns`, has a picture of its own.
    """
    report = experiment.report
    metric = next(iter(report.metrics))
    if report.x == "round":
        metric = metric.removeprefix("round_of:").partition(">=")[0]  # whose curve it is the first crossing of
    found = [cell for cell in cells if any(has(run, metric) for run in cell.runs.values())]
    if not found:
        raise SettingError(f"metric: {metric!r} was measured in no run of {experiment.name}")
    shared = dict.fromkeys(["panel", *(report.pictures or report.columns)])
    across = [axis for axis in shared if axis != report.x and _varies(found, axis)]
    lines = [axis for axis in found[0].labels if axis not in (*across, report.x) and _varies(found, axis)]
    for axis in dict.fromkeys(axis for cell in found for axis in cell.labels):
        if axis not in (*across, *lines, report.x) and _varies(found, axis):
            lines.append(axis)
    groups = list(dict.fromkeys(_text(cell, across) for cell in found))
    names = list(dict.fromkeys(_text(cell, lines) for cell in found))
    columns = min(len(groups), 3)
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(2.2 + 4.6 * columns, 3.6 * rows), layout="constrained")
    pictures = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, group in zip(pictures, groups, strict=False):
        mine = [cell for cell in found if _text(cell, across) == group]
        for name in dict.fromkeys(_text(cell, lines) for cell in mine):
            curve = _curve([cell for cell in mine if _text(cell, lines) == name], report.x, metric, report.last_rounds)
            index = names.index(name)
            colour, style = COLOURS[index % len(COLOURS)], ("-", "--", ":")[index // len(COLOURS) % 3]
            mean, low, high = _band(curve, logarithmic="y" in report.log)
            marker = "o" if len(mean) < 3 or report.x != "round" else ""
            axes.plot(mean.index, mean, style, marker=marker, markersize=4, color=colour, label=name, linewidth=1.6)
            axes.fill_between(mean.index, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(experiment.panels[group].title or group if group in experiment.panels else group, fontsize=9)
        axes.set_xlabel(report.x)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.02)
        if "x" in report.log:
            axes.set_xscale("log")
        if "y" in report.log:
            axes.set_yscale("log")
            most = OFF_THE_PICTURE * max(line.get_ydata()[0] for line in axes.lines)
            if report.x == "round" and axes.get_ylim()[1] > most:
                axes.set_ylim(top=most)
    for axes in pictures[len(groups) :]:
        axes.remove()
    figure.axes[0].set_ylabel(metric)
    named = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(named) > 1:
        figure.legend(named.values(), named.keys(), loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _band(curve: pd.DataFrame, logarithmic: bool) -> tuple[pd.Series, pd.Series, pd.Series]:
    """Mean, and a standard deviation below and above; of the logarithms if asked and all values have one."""
    if logarithmic and (curve.min() > 0).all():
        mean, low, high = _band(curve.map(np.log), logarithmic=False)
        return mean.map(np.exp), low.map(np.exp), high.map(np.exp)
    mean, sd = curve.mean(axis=1), curve.std(axis=1, ddof=1).fillna(0.0)
    return mean, mean - sd, mean + sd


def _varies(cells: Sequence[Cell], axis: str) -> bool:
    return len({cell.labels.get(axis, "") for cell in cells}) > 1


def _text(cell: Cell, axes: Sequence[str]) -> str:
    return ", ".join(cell.labels[axis] for axis in axes if cell.labels.get(axis))


def _curve(cells: Sequence[Cell], x: str, metric: str, last_rounds: int) -> pd.DataFrame:
    """[points, seeds], indexed by what the curve runs over."""
    if x == "round":
        runs = {f"{i} {seed}": run for i, cell in enumerate(cells) for seed, run in cell.runs.items()}
        return pd.DataFrame({name: run.history[metric].dropna() for name, run in runs.items() if has(run, metric)})
    points = {float(cell.labels[x]): cell.ends(metric, last_rounds) for cell in cells if x in cell.labels}
    return pd.DataFrame(points).T.sort_index()


def svg(figure: Figure) -> str:
    """The figure as an <svg> element."""
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]
