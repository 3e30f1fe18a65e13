"""Curves: the mean over seeds, with a band of one standard deviation.

Rounds after which a seed was not evaluated are left out, so that a curve is a mean over the same seeds everywhere.
"""

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.report import Report
from rollcall.leaderboard.paper.cells import Cell
from rollcall.leaderboard.plots.style import legend, line_style, plain
from rollcall.leaderboard.plots.subplots import Subplot, subplots
from rollcall.leaderboard.ranking.table import Ranking, Row, by_conditions

MOST_ABOVE_START = 1e3
"""A logarithmic y axis ends at this multiple of the largest first value, so that a diverging curve leaves the plot."""

FEW_POINTS = 12
"""Curves of fewer points have markers."""

TITLE_WIDTH = 45
"""A longer title of a subplot is broken into lines, in characters."""


def ranking_figure(ranking: Ranking) -> Figure:
    """The first metric against rounds: a subplot for each set of conditions, in it the best row of every method."""
    groups = list(by_conditions(ranking.rows).values())
    methods = sorted({row.method for row in ranking.rows})
    columns = min(len(groups), 3)
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(1.5 + 6.5 * columns**0.5, 4.2 * rows), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for axes, group in zip(grid, groups, strict=False):
        _draw_methods(axes, group, methods)
        if len(groups) > 1:
            axes.set_title(_conditions(ranking, group), fontsize=9)
    for axes in grid[len(groups) :]:
        axes.remove()
    figure.axes[0].set_ylabel(ranking.metrics[0].name)
    legend(figure)
    return figure


def _draw_methods(axes: Axes, rows: Sequence[Row], methods: Sequence[str]) -> None:
    best: dict[str, Row] = {}
    for row in rows:  # in order of rank
        if not row.curves.empty:  # every run diverged
            best.setdefault(row.method, row)
    for method, row in best.items():
        mean, low, high = _band(row.curves.dropna(), logarithmic=False)
        colour, style = line_style(methods.index(method))
        axes.plot(mean.index, mean, style, color=colour, label=method, linewidth=1.8)
        axes.fill_between(mean.index, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("round")
    axes.margins(x=0)
    plain(axes)


def _conditions(ranking: Ranking, group: Sequence[Row]) -> str:
    """What tells a group of competing rows from the others."""
    common = {key: text for key, text in group[0].settings.items() if all(row.settings[key] == text for row in group)}
    parts = [f"{ranking.short(key)}={text}" for key, text in common.items() if text]
    return "\n".join(textwrap.wrap(", ".join(parts), TITLE_WIDTH))


def paper_figure(experiment: Experiment, cells: Sequence[Cell]) -> Figure:
    """The `subplots` of an experiment.

    The x axis has rounds and a line for each cell, with a band of one standard deviation over seeds. If the report
    names another axis as `x`, there is a line for each of the other labels. On a logarithmic y axis, mean and standard
    deviation are those of the logarithms. A quantity that is only ever 0 or 1 is drawn as a row of blocks.

    Raises:
        SettingError: none of the metrics was measured.
    """
    report = experiment.report
    made = subplots(experiment, cells)
    names = list(dict.fromkeys(name for subplot in made for name in subplot.lines))
    columns = min(len(made), 2 if len(report.drawn) in (2, 4) else 3)
    rows = -(-len(made) // columns)
    figure = Figure(figsize=(2.2 + 4.6 * columns, 3.6 * rows), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for index, (axes, subplot) in enumerate(zip(grid, made, strict=False)):
        _draw(axes, subplot, report, names)
        axes.set_title(subplot.title, fontsize=9)
        axes.set_xlabel(subplot.x)
        if index == 0 or subplot.metric != made[index - 1].metric:
            axes.set_ylabel(subplot.metric.name)
        axes.margins(x=0.02)
        plain(axes)
    for axes in grid[len(made) :]:
        axes.remove()
    legend(figure, fontsize=8, least=2)
    return figure


def _draw(axes: Axes, subplot: Subplot, report: Report, names: Sequence[str]) -> None:
    """Draw the lines of a subplot. A line's number among all names of the figure gives its colour and style."""
    curves = {name: _curve(cells, report, subplot.metric) for name, cells in subplot.lines.items()}
    curves = {name: curve for name, curve in curves.items() if not curve.empty}  # empty if all runs diverged
    on_or_off = all(curve.isin((0, 1)).all(axis=None) for curve in curves.values())
    for name, curve in curves.items():
        if on_or_off:
            _draw_blocks(axes, curve, names.index(name))
        else:
            _draw_line(axes, curve, name, names.index(name), "y" in report.log)
    if "x" in report.log:
        axes.set_xscale("log")
    if "y" in report.log:
        axes.set_yscale("log")
        starts = [float(_band(curve, logarithmic=True)[0].iloc[0]) for curve in curves.values()]
        if starts and report.x == "round" and axes.get_ylim()[1] > MOST_ABOVE_START * max(starts):
            axes.set_ylim(top=MOST_ABOVE_START * max(starts))


def _draw_line(axes: Axes, curve: pd.DataFrame, name: str, number: int, logarithmic: bool) -> None:
    mean, low, high = _band(curve, logarithmic)
    colour, style = line_style(number)
    marker = "o" if len(mean) < FEW_POINTS else ""
    axes.plot(mean.index, mean, style, marker=marker, markersize=4, color=colour, label=name, linewidth=1.6)
    axes.fill_between(mean.index, low, high, color=colour, alpha=0.15, linewidth=0)


def _draw_blocks(axes: Axes, curve: pd.DataFrame, number: int) -> None:
    mean = curve.mean(axis=1)
    colour, _ = line_style(number)
    axes.fill_between(mean.index, -number, 0.8 * mean - number, step="mid", color=colour, linewidth=0)
    axes.set_yticks([])


def _band(curve: pd.DataFrame, logarithmic: bool) -> tuple[pd.Series, pd.Series, pd.Series]:
    """The mean, and one standard deviation below and above it; of the logarithms if asked and all values have one."""
    if logarithmic and (curve.min() > 0).all():
        mean, low, high = _band(curve.map(np.log), logarithmic=False)
        return mean.map(np.exp), low.map(np.exp), high.map(np.exp)
    mean, sd = curve.mean(axis=1), curve.std(axis=1, ddof=1).fillna(0.0)
    return mean, mean - sd, mean + sd


def _curve(cells: Sequence[Cell], report: Report, metric: Metric) -> pd.DataFrame:
    """[points, seeds], indexed by what is on the x axis."""
    if report.x == "round":
        runs = {f"{i} {seed}": run for i, cell in enumerate(cells) for seed, run in cell.runs.items()}
        ended = {name: run for name, run in runs.items() if run.has(metric) and not run.diverged}
        columns = {name: run.history[metric.column].dropna() for name, run in ended.items()}
        return pd.DataFrame(columns).dropna()
    points = {float(cell.labels[report.x]): cell for cell in cells if report.x in cell.labels}
    values = {x: cell.finals(metric, report.last_rounds) for x, cell in points.items()}
    return pd.DataFrame(values).T.sort_index()
