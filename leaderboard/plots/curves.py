"""Curves: mean over seeds, with a band of one standard deviation."""

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.config.experiment import Experiment
from benchmark.config.report import Report
from leaderboard.paper.cells import Cell
from leaderboard.plots.panels import Picture, pictures
from leaderboard.ranking.table import Table, is_arena
from leaderboard.results import has

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # Okabe and Ito's, for all eyes


OFF_THE_PICTURE = 1e3
"""How far above where all began a curve that diverges leaves a logarithmic picture."""

FEW_POINTS = 12
"""Fewer than so many are marked."""


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
    """An experiment's `pictures`: over rounds, a line for each cell with a band of one standard deviation over seeds,
    or over the axis that the report names as `x`, a line for each of the other labels. On a logarithmic axis both are
    of the logarithms. What is only ever on or off has a row for each cell instead.

    Raises:
        SettingError: nothing that could be drawn was measured.
    """
    report = experiment.report
    made = pictures(experiment, cells)
    names = list(dict.fromkeys(name for picture in made for name in picture.lines))
    columns = min(len(made), 2 if len(report.drawn) in (2, 4) else 3)
    rows = -(-len(made) // columns)
    figure = Figure(figsize=(2.2 + 4.6 * columns, 3.6 * rows), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for index, (axes, picture) in enumerate(zip(grid, made, strict=False)):
        _draw(axes, picture, report, names)
        axes.set_title(picture.title, fontsize=9)
        axes.set_xlabel(picture.x)
        if index == 0 or picture.metric != made[index - 1].metric:
            axes.set_ylabel(picture.metric)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.02)
    for axes in grid[len(made) :]:
        axes.remove()
    named = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(named) > 1:
        figure.legend(named.values(), named.keys(), loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _draw(axes: Axes, picture: Picture, report: Report, names: Sequence[str]) -> None:
    """The lines of a picture, each in the colour and style of its place among all names of the figure."""
    values = {
        name: _curve(cells, report.x, picture.metric, report.last_rounds) for name, cells in picture.lines.items()
    }
    starts = []
    on_or_off = all(theirs.isin((0, 1)).all(axis=None) for theirs in values.values())
    for name, theirs in values.items():
        mean, low, high = _band(theirs, "y" in report.log)
        starts.append(float(mean.iloc[0]))
        number = names.index(name)
        colour, style = COLOURS[number % len(COLOURS)], ("-", "--", ":")[number // len(COLOURS) % 3]
        if on_or_off:
            axes.fill_between(mean.index, -number, 0.8 * mean - number, step="mid", color=colour, linewidth=0)
            axes.set_yticks([])
            continue
        marker = "o" if len(mean) < FEW_POINTS else ""
        axes.plot(mean.index, mean, style, marker=marker, markersize=4, color=colour, label=name, linewidth=1.6)
        axes.fill_between(mean.index, low, high, color=colour, alpha=0.15, linewidth=0)
    if "x" in report.log:
        axes.set_xscale("log")
    if "y" in report.log:
        axes.set_yscale("log")
        if report.x == "round" and axes.get_ylim()[1] > OFF_THE_PICTURE * max(starts):
            axes.set_ylim(top=OFF_THE_PICTURE * max(starts))


def _band(curve: pd.DataFrame, logarithmic: bool) -> tuple[pd.Series, pd.Series, pd.Series]:
    """Mean, and a standard deviation below and above; of the logarithms if asked and all values have one."""
    if logarithmic and (curve.min() > 0).all():
        mean, low, high = _band(curve.map(np.log), logarithmic=False)
        return mean.map(np.exp), low.map(np.exp), high.map(np.exp)
    mean, sd = curve.mean(axis=1), curve.std(axis=1, ddof=1).fillna(0.0)
    return mean, mean - sd, mean + sd


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
