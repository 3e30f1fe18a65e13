"""Figures of results: the curves of a ranking and of a paper's experiment, and printed numbers beside measured ones.

A curve is the mean over seeds, with a band of one standard deviation. Rounds after which a seed was not evaluated are
left out, so that a curve is a mean over the same seeds everywhere.
"""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, is_number
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.report import Report
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.paper.sentences import unit_of
from rollcall.leaderboard.plots.style import COLOURS, grid, legend, line_style, plain
from rollcall.leaderboard.ranking import METHOD, Ranking
from rollcall.participation.analyses import RUNS_OVER

MOST_ABOVE_START = 1e3
"""A logarithmic y axis ends at this multiple of the largest first value, so that a diverging curve leaves the plot."""

FEW_POINTS = 12
"""Curves of fewer points have markers."""

TITLE_WIDTH = 45
"""A longer title of a subplot is broken into lines, in characters."""


def ranking_figure(ranking: Ranking) -> Figure:
    """The first metric against rounds: a subplot for each set of conditions, in it the best row of every method."""
    groups = ranking.groups
    methods = sorted({cell.labels[METHOD] for cell in ranking.cells})
    figure, all_axes = grid(len(groups), 3, lambda columns, rows: (1.5 + 6.5 * columns**0.5, 4.2 * rows), sharey=True)
    for axes, group in zip(all_axes, groups, strict=True):
        best: dict[str, Cell] = {}
        for cell in group:  # in order of rank
            if cell.ended.runs:
                best.setdefault(cell.labels[METHOD], cell)
        for method, cell in best.items():
            _draw_line(axes, _by_round([cell], ranking.metrics[0]), method, methods.index(method), width=1.8)
        axes.set_xlabel("round")
        axes.margins(x=0)
        plain(axes)
        if len(groups) > 1:
            axes.set_title(_conditions(ranking, group), fontsize=9)
    all_axes[0].set_ylabel(ranking.metrics[0].name)
    legend(figure)
    return figure


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
    most = 2 if len(report.drawn) in (2, 4) else 3
    figure, all_axes = grid(len(made), most, lambda columns, rows: (2.2 + 4.6 * columns, 3.6 * rows))
    for index, (axes, subplot) in enumerate(zip(all_axes, made, strict=True)):
        _draw(axes, subplot, report, names)
        _draw_stated(axes, experiment, subplot, names)
        axes.set_title(subplot.title, fontsize=9)
        axes.set_xlabel(subplot.x)
        if index == 0 or subplot.metric != made[index - 1].metric:
            axes.set_ylabel(subplot.metric.name)
        axes.margins(x=0.02)
        plain(axes)
    legend(figure, fontsize=8, least=2)
    return figure


def printed_figure(results: Sequence[ClaimResult]) -> Figure | None:
    """A row for each difference in percent whose printed number was judged: the number and the 95 % interval.

    Args:
        results: of claims.

    Returns:
        None if no number was judged.
    """
    rows = [
        (", ".join(filter(None, (result.claim.statement or result.claim.tag, *place.labels.values()))), place)
        for result in results
        for place in result.places
        if place.size != "not judged" and unit_of(result).percent and result.claim.minus is not None
    ]
    if not rows:
        return None
    figure = Figure(figsize=(7.5, 1.2 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for y, (_, place) in enumerate(rows):
        assert place.quantity is not None
        assert place.printed is not None
        low, high = (100 * end for end in place.quantity.interval())
        if math.isfinite(low + high):
            axes.plot([low, high], [y, y], color=COLOURS[0], linewidth=2)
        label = "measured, 95 % interval" if y == 0 else None
        axes.plot(100 * place.quantity.mean, y, "o", color=COLOURS[0], markersize=5, label=label)
        axes.plot(100 * place.printed, y, "D", color=COLOURS[1], markersize=5, label="printed" if y == 0 else None)
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("difference in test accuracy, percentage points")
    plain(axes)
    legend(figure, fontsize=8)
    return figure


@dataclass(frozen=True)
class Subplot:
    """One coordinate system.

    Attributes:
        title: the labels that its lines have in common.
        metric: on the y axis.
        x: the label of the x axis.
        lines: the cells of each line by its name; several cells if the line runs over an axis of the grid.
    """

    title: str
    metric: Metric
    x: str
    lines: dict[str, list[Cell]]


def subplots(experiment: Experiment, cells: Sequence[Cell]) -> list[Subplot]:
    """The subplots of an experiment.

    There is one for each panel (unless the report overlays them), each label of the report's `pictures` or `columns`,
    and each metric that is drawn. A cell without such a label is in all subplots that it fits, for comparison.

    Raises:
        SettingError: none of the metrics was measured.
    """
    report = experiment.report
    metrics = list(report.drawn or report.metrics)
    if report.x == "round":  # the curve that reaches a value shows the first round that does
        metrics = [Metric(metric.column) for metric in metrics]
    measured = [cell for cell in cells if any(cell.measured(metric) for metric in metrics)]
    if not measured:
        raise SettingError(f"metric: {metrics[0].name!r} was measured in no run of {experiment.name}")
    across, along = _axes(report, measured)
    made = []
    for place in _places(measured, across):
        inside = [cell for cell in measured if all(cell.labels.get(axis, one) == one for axis, one in place.items())]
        title = _text(experiment, place, across)
        here = [metric for metric in metrics if any(cell.measured(metric) for cell in inside)]
        for metric in here if report.drawn else here[:1]:
            lines: dict[str, list[Cell]] = {}
            for cell in inside:
                if cell.measured(metric):
                    lines.setdefault(_text(experiment, cell.labels, along), []).append(cell)
            made.append(Subplot(title, metric, _x(experiment, inside), lines))
    return made


def _conditions(ranking: Ranking, group: Sequence[Cell]) -> str:
    """The labels that tell a group of competing cells from the others."""
    labels = [cell.labels for cell in group]
    common = [key for key in ranking.settings if len({own[key] for own in labels}) == 1 and labels[0][key]]
    parts = [f"{ranking.short(key)}={labels[0][key]}" for key in common]
    return "\n".join(textwrap.wrap(", ".join(parts), TITLE_WIDTH))


def _draw(axes: Axes, subplot: Subplot, report: Report, names: Sequence[str]) -> None:
    """Draw the lines of a subplot. A line's number among all names of the figure gives its colour and style."""
    curves = {name: _curve(cells, report, subplot.metric) for name, cells in subplot.lines.items()}
    curves = {name: curve for name, curve in curves.items() if not curve.empty}  # empty if all runs diverged
    on_or_off = all(curve.isin((0, 1)).all(axis=None) for curve in curves.values())
    for name, curve in curves.items():
        if on_or_off:
            _draw_blocks(axes, curve, names.index(name))
        else:
            marker = "o" if len(curve) < FEW_POINTS else ""
            _draw_line(axes, curve, name, names.index(name), "y" in report.log, marker)
    if "x" in report.log:
        axes.set_xscale("log")
    if "y" in report.log:
        axes.set_yscale("log")
        starts = [float(_band(curve, logarithmic=True)[0].iloc[0]) for curve in curves.values()]
        if starts and report.x == "round" and axes.get_ylim()[1] > MOST_ABOVE_START * max(starts):
            axes.set_ylim(top=MOST_ABOVE_START * max(starts))


def _draw_stated(axes: Axes, experiment: Experiment, subplot: Subplot, names: Sequence[str]) -> None:
    """Draw the numbers of the paper, or of its released code, at single rounds: points in the colour of the line."""
    for claim in experiment.judged if experiment.report.x == "round" else ():
        metric = claim.metric or experiment.report.metrics[0]
        compared = claim.minus or claim.over or claim.per or claim.along or claim.slope
        if claim.at is None or not isinstance(claim.printed, float) or compared or metric != subplot.metric:
            continue
        of = claim.where | claim.of
        source = "printed" if claim.tag == "paper" else claim.section.partition(",")[0]
        for name, cells in subplot.lines.items():
            if any(all(cell.labels.get(axis) in labels for axis, labels in of.items()) for cell in cells):
                colour, _ = line_style(names.index(name))
                axes.plot(claim.at, claim.printed, "D", color=colour, markeredgecolor="black", zorder=3)
                axes.plot([], [], "D", color="0.8", markeredgecolor="black", label=source)  # for the legend


def _draw_line(
    axes: Axes,
    curve: pd.DataFrame,
    name: str,
    number: int,
    logarithmic: bool = False,
    marker: str = "",
    width: float = 1.6,
) -> None:
    """Draw the mean of a curve and its band."""
    mean, low, high = _band(curve, logarithmic)
    colour, style = line_style(number)
    axes.plot(mean.index, mean, style, marker=marker, markersize=4, color=colour, label=name, linewidth=width)
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
    """[points, seeds], indexed by their place on the x axis."""
    if report.x == "round":
        return _by_round(cells, metric)
    points = {float(cell.labels[report.x]): cell for cell in cells if report.x in cell.labels}
    values = {x: cell.finals(metric, report.last_rounds) for x, cell in points.items()}
    return pd.DataFrame(values).T.sort_index()


def _by_round(cells: Sequence[Cell], metric: Metric) -> pd.DataFrame:
    """[evaluations, seeds], indexed by round, without diverged runs."""
    runs = [run for cell in cells for run in cell.ended.runs.values() if run.has(metric)]
    return pd.DataFrame({number: run.history[metric.column] for number, run in enumerate(runs)}).dropna()


def _axes(report: Report, cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """The axes with a subplot for each label, and those with a line for each label."""
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    varying = [axis for axis in axes if axis != report.x and len({cell.labels.get(axis, "") for cell in cells}) > 1]
    wanted = [*([] if report.overlay else ["panel"]), *(report.pictures or report.columns)]
    across = [axis for axis in dict.fromkeys(wanted) if axis in varying]
    return across, [axis for axis in varying if axis not in across]


def _places(cells: Sequence[Cell], across: Sequence[str]) -> list[dict[str, str]]:
    """The labels of each subplot; none for cells that fit into another one's."""
    places = [{axis: cell.labels[axis] for axis in across if cell.labels.get(axis)} for cell in cells]
    unique = [place for index, place in enumerate(places) if place not in places[:index]]
    return [place for place in unique if not any(place.items() < other.items() for other in unique)]


def _text(experiment: Experiment, labels: dict[str, str], axes: Sequence[str]) -> str:
    """Labels as people read them: a panel by its title, a number with the name of its setting."""
    words = []
    for axis in axes:
        label = labels.get(axis, "")
        if axis == "panel" and label in experiment.panels:
            title = experiment.panels[label].title
            label = title if title or experiment.report.overlay else label
        elif is_number(label):
            label = f"{axis.rpartition('.')[2]} {label}"
        words.append(label)
    return ", ".join(word for word in words if word)


def _x(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """The label of the x axis; an analysis may run over something else than rounds."""
    if experiment.report.x != "round":
        return experiment.report.x
    analyses = [experiment.panels[cell.labels["panel"]].analysis for cell in cells if cell.labels.get("panel")]
    names = {RUNS_OVER.get(analysis["name"], "round") if analysis else "round" for analysis in analyses}
    return names.pop() if len(names) == 1 else "round"
