"""Figures of results: the curves of a ranking, of a paper's experiment, and of its variants.

A curve is the mean over seeds, with a band of one standard deviation. Rounds after which a seed was not evaluated are
left out, so that a curve is a mean over the same seeds everywhere.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import is_number
from rollcall.benchmark.config.metric import COSTS, OVER, Metric
from rollcall.benchmark.config.report import Report
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.names import OWN, Style, label_name, label_names, label_text, labelled, style
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.paper.reported import printed, printed_for
from rollcall.leaderboard.plots.figure import (
    BLUE,
    HEIGHT,
    WIDTH,
    Figure,
    Row,
    Spec,
    by_line,
    channel,
    curve,
    figure,
    in_turn,
    layer,
    room,
    shown,
    stretches,
    view,
)
from rollcall.leaderboard.ranking import METHOD, Ranking, best_settings
from rollcall.leaderboard.tables import span

MOST_ABOVE_START = 1e3
"""A logarithmic y axis ends at this multiple of the largest first value, so that a diverging curve leaves the plot."""

FEW_POINTS = 12
"""Curves of fewer points have markers."""

DECADES = 1e3
"""Positive values whose largest is this multiple of the smallest have a logarithmic axis in a ranking."""

MOST_ROWS = 24
"""Of more rows in a group, a ranking draws the best of each method by validation, if that was measured."""

RUNS_OVER = {
    "class_weights_sorted": "class, from the heaviest",
    "probabilities_sorted": "client, from the rarest",
    "probabilities_histogram": "part of [0, 1]",
    "separation_distance": "R",
    "separation_simulated": "R",
}
"""Meaning of the column `round` of an analysis, if not rounds."""


@dataclass(frozen=True)
class Subplot:
    """One coordinate system.

    Attributes:
        title: the labels that its lines have in common.
        metric: on the y axis.
        x: the label of the x axis.
        lines: the cells of each line by its name; several cells if the line runs over an axis of the grid.
        of: the metrics of lines that show another model than the evaluated one, such as FedPBC's server model.
        ticks: the labels on the x axis in the order of the file, if they are no numbers.
    """

    title: str
    metric: Metric
    x: str
    lines: dict[str, list[Cell]]
    ticks: Sequence[str] = ()
    of: Mapping[str, Metric] = field(default_factory=dict)

    def metric_of(self, line: str) -> Metric:
        """The metric of a line."""
        return self.of.get(line, self.metric)


def ranking_figure(ranking: Ranking, over: str = "round") -> Figure:
    """The first metric of all rows: a subplot for each set of conditions.

    Args:
        ranking: of the user's own runs.
        over: the x axis, one of `OVER`.

    Raises:
        SettingError: no run has this column.
    """
    metric, note = Metric(ranking.metrics[0].column, ranking.metrics[0].direction), ""
    groups = ranking.groups
    by = Metric(f"validation/{metric.column.partition('/')[2]}", metric.direction)
    if max(map(len, groups)) > MOST_ROWS and all(cell.measured(by) for cell in ranking.cells):
        best, _ = best_settings([run for cell in ranking.cells for run in cell.runs.values()], by, ranking.last_rounds)
        kept = {run.cell for run in best}
        groups = [[cell for cell in group if {run.cell for run in cell.runs.values()} & kept] for group in groups]
        note = f"of each method the row with the best {by.title} (--only chooses others)"
    made = [
        Subplot(_conditions(ranking, group), metric, over, {_row(ranking, group, cell): [cell] for cell in group})
        for group in groups
    ]
    curves = [_by_round(cells, metric).mean(axis=1) for subplot in made for cells in subplot.lines.values()]
    values = [one for curve in curves for one in curve if math.isfinite(one)]
    log = ("y",) if values and min(values) > 0 and max(values) > DECADES * min(values) else ()
    return _drawn(made, Report(log=log), over, notes=[note])


def paper_figure(experiment: PaperExperiment, cells: Sequence[Cell], over: str = "") -> Figure:
    """The `subplots` of an experiment.

    The x axis has rounds and a line for each cell, with a band of one standard deviation over seeds. If the report
    names another axis as `x`, there is a line for each of the other labels. If it names metrics as `against`, there is
    a plot for each of them, with a point for each cell. On a logarithmic y axis, mean and standard
    deviation are those of the logarithms. A quantity that is only ever 0 or 1 is drawn as a row of blocks.

    Args:
        experiment: of the paper.
        cells: of the experiment.
        over: what replaces the report's x on the x axis, one of `OVER`; empty for nothing.

    Raises:
        SettingError: none of the metrics was measured, or no run has the column of the x axis.
    """
    report = experiment.report
    if over not in ("", "round") and report.against:
        raise SettingError(f"x: '{over}' is not allowed; this figure runs over {report.against[0].name}")
    if report.against:
        return _scatter(experiment, cells)
    if report.x in OVER:
        over = over or report.x
        experiment = experiment.model_copy(update={"report": report.model_copy(update={"x": "round"})})
    made, over = subplots(experiment, cells), over or "round"
    if over != "round" and experiment.report.x != "round":
        raise SettingError(f"x: '{over}' is not allowed; this figure runs over {experiment.report.x}")
    return _drawn(made, experiment.report, over, experiment)


def variants_figure(experiment: PaperExperiment, cells: Mapping[str, Sequence[Cell]]) -> Figure:
    """The subplots of variants of an experiment, side by side.

    Args:
        experiment: that has the variants.
        cells: of each variant, by its name.

    Raises:
        SettingError: none of the metrics was measured.
    """
    made = [
        replace(subplot, title=": ".join(filter(None, (name, subplot.title))))
        for name, ran in cells.items()
        for subplot in subplots(experiment.as_(name), ran)
    ]
    return _drawn(made, experiment.report, "round", experiment)


def _scatter(experiment: PaperExperiment, cells: Sequence[Cell]) -> Figure:
    """The first metric against each of the report's `against`: the means of each cell, in the style of its method."""
    report, metric = experiment.report, experiment.report.metrics[0]
    rows: list[Row] = []
    for number, across in enumerate(report.against):
        for cell in cells:
            labels = {axis: label for axis, label in cell.labels.items() if label and axis != METHOD}
            x, y = (one.scale * cell.finals(one, report.last_rounds) for one in (across, metric))
            point = {
                "plot": number,
                "line": cell.labels.get(METHOD, ""),
                "x": x.mean(),
                "value": y.mean(),
                "sd": y.std(),
            }
            rows.append(point | {"where": ", ".join(label_name(*one) for one in labels.items()), "seeds": len(y)})
    rows = [row for row in rows if math.isfinite(row["x"] + row["value"])]
    if not rows:
        raise SettingError(f"metric: {metric.name!r} was measured in no run of {experiment.name}")
    methods = dict.fromkeys(row["line"] for row in rows)
    names = label_names(METHOD, methods)
    styles = {names[method]: style(method, methods) for method in methods}
    rows = [row | {"line": names[row["line"]]} for row in rows]
    tips = [channel(key, kind="nominal") for key in ("line", "where", "x", "value", "sd", "seeds")]
    views = [
        view([
            layer("point", plot=number, x=channel("x", across.head), y=channel("value", metric.head), tooltip=tips,
                  mark_size=45, mark_filled=True, mark_opacity=0.85, **by_line(styles, "color", "shape", legend={})),
        ], width=300, height=HEIGHT + 60)
        for number, across in enumerate(report.against)
    ]  # fmt: skip
    what = f"{metric.head} against {', '.join(across.head for across in report.against)}"
    caption = "Points: the mean of a cell over its seeds."
    return figure(views, {"long": rows}, f"{experiment.title}. {what}. Methods: {', '.join(styles)}.", 2, caption)


def subplots(experiment: PaperExperiment, cells: Sequence[Cell]) -> list[Subplot]:
    """The subplots of an experiment.

    There is one for each panel (unless the report overlays them), each label of the report's `pictures` or `columns`,
    and each metric that is drawn. A metric of another model of some methods (`test/accuracy/server`) has lines in the
    subplot of the metric that its name begins with. A cell without such a label is in all subplots that it fits.

    Raises:
        SettingError: none of the metrics was measured.
    """
    report = experiment.report
    metrics = list(report.drawn or report.metrics)
    if report.x == "round":  # the curve that reaches a value shows the first round that does
        metrics = list(dict.fromkeys(Metric(metric.column) for metric in metrics))
    measured = [cell for cell in cells if any(cell.measured(metric) for metric in metrics)]
    if not measured:
        raise SettingError(f"metric: {metrics[0].name!r} was measured in no run of {experiment.name}")
    across, along = _axes(report, measured)
    made = []
    for place in _places(measured, across):
        inside = [cell for cell in measured if all(cell.labels.get(axis, one) == one for axis, one in place.items())]
        title = _text(experiment, place, across)
        here = [metric for metric in metrics if any(cell.measured(metric) for cell in inside)]
        plots: dict[Metric, list[Metric]] = {}
        for metric in here if report.drawn else here[:1]:
            first = next((one for one in plots if metric.column.startswith(f"{one.column}/")), metric)
            plots.setdefault(first, []).append(metric)
        along_x = list(dict.fromkeys(label for cell in inside if (label := cell.labels.get(report.x))))
        ticks = [] if all(map(is_number, along_x)) else along_x
        for first, in_plot in plots.items():
            lines: dict[str, list[Cell]] = {}
            of: dict[str, Metric] = {}
            for metric, cell in product(in_plot, inside):
                if cell.measured(metric):
                    method = next(iter(cell.runs.values())).settings.get(METHOD, "")
                    name = _text(experiment, cell.labels, along, method) or first.title
                    if metric != first:
                        name = f"{name} ({metric.column.removeprefix(f'{first.column}/')})"
                        of[name] = metric
                    lines.setdefault(name, []).append(cell)
            made.append(Subplot(title, first, _x(experiment, inside), lines, ticks, of))
    return made


def _drawn(
    made: Sequence[Subplot],
    report: Report,
    over: str,
    experiment: PaperExperiment | None = None,
    notes: Sequence[str] = (),
) -> Figure:
    """The figure of some subplots. Those of one row and one metric share their axes."""
    columns = 2 if report.drawn and len({subplot.metric for subplot in made}) in (2, 4) else 3
    rows: dict[str, list[Row]] = {"long": [], "printed": [], "stated": []}
    are_points = []  # of each subplot, whether its lines are single points
    for number, subplot in enumerate(made):
        points = _points(subplot, report, over)
        single = _single(points, over != "round" or subplot.x == "round")
        are_points.append(bool(single))
        points = single or points
        rows["long"] += [{"plot": number, **row} for row in points]
        if experiment is not None and report.x == "round" and not single:
            rows["printed"] += [{"plot": number, **row} for row in _printed(experiment, subplot)]
            rows["stated"] += [{"plot": number, **row} for row in _stated(experiment, subplot)]
    absent = {row["line"] for row in rows["long"] if math.isnan(row["x"])}
    if absent and absent == {row["line"] for row in rows["long"]}:
        raise SettingError(f"x: '{over}' is not allowed; no run has {OVER[over]}. Must be one of {', '.join(OVER)}")
    styles = _styles([one for one, single in zip(made, are_points, strict=True) if not single])
    views: list[Spec] = []
    height: Any
    for number, subplot in enumerate(made):
        own = [row for row in rows["long"] if row["plot"] == number]
        title = COSTS[OVER[over]] if over != "round" else subplot.x
        same_axes = [(one.metric, one.x, one.ticks) == (subplot.metric, subplot.x, subplot.ticks) for one in made]
        beside = [index for index, same in enumerate(same_axes) if same and index // columns == number // columns]
        here = {name: [row for row in part if row["plot"] in beside] for name, part in rows.items()}
        if are_points[number]:
            layers, height = _dots(number, own, subplot.metric), {"step": 16}
        elif own and all(row["value"] in (0, subplot.metric.scale) for row in own):
            layers, height = _blocks(own, title, styles), HEIGHT
        else:
            x = _x_axis(here["long"], title, report, over != "round" or subplot.x == "round", subplot.ticks)
            y = _y_axis(here, subplot.metric, report, named=number == beside[0])
            layers, height = _curves(number, x, y, here, styles, subplot.metric), HEIGHT
        height = 260 if height == HEIGHT and len(made) == 1 else height
        views.append(view(layers, subplot.title, _stamp(subplot), 420 if len(made) == 1 else WIDTH, height))
    means, spreads = ("Dots", "Lines") if all(are_points) else ("Lines", "Bands")
    several = max((row["seeds"] for row in rows["long"]), default=1) > 1
    diverged = {name for one in made for name, cells in one.lines.items() if any(cell.diverged for cell in cells)}
    caption = [
        f"{means}: mean over seeds. {spreads}: one standard deviation" if several else "One seed",
        ", of the logarithms." if several and "y" in report.log else ".",
        " Thin dashes: printed in the paper." if rows["printed"] else "",
        *(f" Diamonds: {source}." for source in dict.fromkeys(row["source"] for row in rows["stated"])),
        f" Without runs that diverged: {', '.join(sorted(diverged))}." if diverged else "",
        f" Without {OVER[over]}: {', '.join(sorted(absent))}." if absent else "",
        {"seconds": _whose_seconds(made)}.get(over, ""),
        *(f" Shown: {note}." for note in notes if note),
    ]
    what = (
        f"{', '.join(dict.fromkeys(one.metric.head for one in made))} against {made[0].x if over == 'round' else over}"
    )
    parts = "; ".join(dict.fromkeys(one.title for one in made if one.title))
    alt = f"{f'{experiment.title}. ' if experiment else ''}{what}.{f' Plots: {parts}.' if parts else ''}"
    last = {row["line"]: f" {row['value']:.4g}" for row in rows["long"]} if len(made) == 1 else {}
    lines = [f"{name}{last.get(name, '')}" for name in dict.fromkeys(name for one in made for name in one.lines)]
    data = {name: part for name, part in rows.items() if part}
    return figure(
        views,
        data,
        f"{alt} Lines{', with last values' if last else ''}: {'; '.join(lines)}.",
        columns,
        "".join(caption),
    )


def _whose_seconds(made: Sequence[Subplot]) -> str:
    runs = [run for one in made for cells in one.lines.values() for cell in cells for run in cell.runs.values()]
    simulated = all(OVER["seconds"] in run.history for run in runs)
    return " Seconds are those of the simulated clock." if simulated else " Seconds are spread evenly over the rounds."


def _x_axis(rows: Sequence[Row], title: str, report: Report, from_zero: bool, ticks: Sequence[str]) -> Spec:
    if ticks:
        named = f"{json.dumps([label_name(report.x, tick) for tick in ticks])}[datum.value]"
        ends = [-0.2, len(ticks) - 0.8]
        return channel("x", title, values=list(range(len(ticks))), labelExpr=named, domain=ends, nice=False)
    log = "x" in report.log
    low, high = room((row["x"] for row in rows), log, 0.02 if any("few" in row for row in rows) else 0.0)
    large = {"format": "~s"} if high >= 1e5 else {}
    return channel("x", title, log=log, tickCount=5, domain=[0 if from_zero else low, high], nice=False, **large)


def _y_axis(rows: Mapping[str, Sequence[Row]], metric: Metric, report: Report, named: bool) -> Spec:
    """The y axis of some curves and printed numbers."""
    log, values = "y" in report.log, [row["value"] for part in rows.values() for row in part]
    low, high = room([*values, *(row[end] for row in rows["long"] for end in ("low", "high"))], log)
    if log:
        starts: dict[Any, float] = {}
        for row in rows["long"]:
            starts.setdefault((row["plot"], row["line"]), row["value"])
        high = min(high, MOST_ABOVE_START * max(starts.values(), default=1.0)) if report.x == "round" else high
    elif metric.percent and min(values, default=0) >= 0:
        low, high = max(low, 0), min(high, 100)
    return channel("value", metric.head if named else None, log=log, domain=[low, high], nice=False)


def _curves(
    number: int, x: Spec, y: Spec, rows: Mapping[str, Sequence[Row]], styles: Mapping[str, Style], metric: Metric
) -> list[Spec]:
    """The layers of curves, printed numbers and numbers stated for a round."""
    digits = ".1f" if metric.percent else ".4~g"
    value, sd = ({"field": name, "type": "quantitative", "format": digits, "title": title}
                 for name, title in (("value", metric.head), ("sd", "sd")))  # fmt: skip
    line = {"field": "line", "type": "nominal"}
    point = {"field": "x", "title": x["title"], "type": "quantitative"}
    seeds = {"field": "seeds", "title": "seeds", "type": "quantitative"}
    layers = curve(styles, number, x, y, [line | {"title": "method"}, point, value, sd, seeds])
    said: Any = {"plot": number, "opacity": shown(1), "tooltip": [line | {"title": "printed"}, value, sd], "y": y}
    said |= by_line(styles, "color")
    diamond: Any = {"mark_shape": "diamond", "mark_size": 90, "mark_filled": True, "mark_stroke": "black"}
    if any(row["plot"] == number for row in rows["printed"]):
        layers.append(layer("rule", "printed", mark_strokeDash=[4, 3], mark_clip=True, **said))
    if any(row["plot"] == number for row in rows["stated"]):
        layers.append(layer("point", "stated", x=x, **diamond, **said))
    return layers


def _styles(made: Sequence[Subplot]) -> dict[str, Style]:
    """The style of each line: that of its method, if no more than four lines have the same; else one after another."""
    methods: dict[str, str] = {}
    for subplot in made:
        for name, cells in subplot.lines.items():
            settings = next((run.settings for cell in cells for run in cell.runs.values()), {})
            methods.setdefault(name, settings.get(METHOD, ""))
    counts = Counter(methods.values())
    alone = {name for name, one in methods.items() if one and counts[one] <= (4 if len(counts) > 1 else 1)}
    keys = {
        name: f"{one} line={list(methods).index(name):03}" if counts[one] > 1 else one for name, one in methods.items()
    }
    fixed = {name: style(keys[name], [keys[other] for other in alone]) for name in alone}
    rest = [name for name in methods if name not in alone]
    free = dict(zip(rest, in_turn(len(rest), {one.colour for one in fixed.values()} - {*OWN}), strict=True))
    return {name: fixed.get(name) or free[name] for name in methods}


def _stamp(subplot: Subplot) -> str:
    """`300 of 10,000 rounds`, if the runs have fewer rounds than planned."""
    short = [(cell.rounds_run, cell.rounds) for cells in subplot.lines.values() for cell in cells if cell.runs]
    if not any(run < planned for run, planned in short):
        return ""
    return f"{span([run for run, _ in short])} of {max(planned for _, planned in short):,} rounds"


def _single(points: list[Row], by_round: bool) -> list[Row]:
    """The points of lines of one point: at one x, or at one evaluation besides the start; else none."""
    after = [row for row in points if not by_round or row["x"] != 0] or points
    lines, places = ({row[key] for row in after} for key in ("line", "x"))
    return after if len(lines) == len(after) and (by_round or len(places) == 1) else []


def _dots(number: int, rows: Sequence[Row], metric: Metric) -> list[Spec]:
    """The layers of lines that are single points: a row for each, with its standard deviation."""
    ends = room(row[end] for row in rows for end in ("low", "high"))
    x = channel("value", metric.head, tickCount=5, format="~g", domain=ends, nice=False)
    common: Any = {"plot": number, "y": channel("line", kind="nominal", labelLimit=200) | {"sort": None}, "color": BLUE}
    tips = [channel("line", kind="nominal"), x, channel("sd", "sd"), channel("seeds", "seeds")]
    return [
        layer("rule", x=x | {"field": "low"}, x2={"field": "high"}, **common),
        layer("point", x=x, mark_filled=True, mark_size=50, mark_opacity=1, tooltip=tips, **common),
    ]


def _blocks(rows: Sequence[Row], title: str, styles: Mapping[str, Style]) -> list[Spec]:
    """The layer of quantities that are only ever 0 or 1: a row of blocks for each line."""
    on, ends, names = [], {row["x"] for row in rows}, list(dict.fromkeys(row["line"] for row in rows))
    for name in names:
        own = {row["x"]: row["value"] > 0 for row in rows if row["line"] == name}
        places = [*own, 2 * list(own)[-1] - list(own)[-2]]  # the last block is as wide as the one before
        ends.add(places[-1])
        parts = stretches(np.array(list(own.values())))
        on += [{"line": name, "start": places[first], "end": places[after]} for first, after in parts]
    y = channel("line", kind="nominal", labelLimit=200) | {"scale": {"domain": names}}
    x = channel("start", title, domain=[min(ends), max(ends)], nice=False)
    made = layer("bar", x=x, x2={"field": "end"}, y=y, mark_height={"band": 0.7}, **by_line(styles, "color"))
    return [made | {"data": {"values": on}}]


def _points(subplot: Subplot, report: Report, over: str) -> list[Row]:
    """The points of each line, in printed units."""
    made, log = [], "y" in report.log
    for name, cells in subplot.lines.items():
        metric = subplot.metric_of(name)
        values = metric.scale * _curve(cells, report, metric, subplot.ticks)
        if values.empty:  # all runs diverged
            continue
        mean, low, high = _band(values, log)
        columns = {"x": mean.index, "value": mean, "low": low, "high": high, "sd": values.std(axis=1, ddof=1)}
        own = pd.DataFrame(columns).assign(line=name, seeds=values.shape[1])
        if over != "round" and report.x == "round":
            own["x"], own["round"] = _spent(cells, metric, over).reindex(mean.index), mean.index
        own = own[own["value"] > 0] if log else own
        few = {"few": 1} if len(own) < FEW_POINTS else {}
        made += [{str(key): one for key, one in row.items()} | few for row in own.to_dict("records")]
    return made


def _spent(cells: Sequence[Cell], metric: Metric, over: str) -> pd.Series:
    """The mean cost over the runs of a line, by round; without entries if it was not measured."""
    runs = [run for cell in cells for run in cell.ended.runs.values() if run.has(metric)]
    costs = [cost for run in runs if len(cost := run.spent(OVER[over]))]
    return pd.DataFrame(dict(enumerate(costs))).mean(axis=1) if len(costs) == len(runs) else pd.Series(dtype=float)


def over_costs(experiment: PaperExperiment, cells: Sequence[Cell], figure: Figure) -> dict[str, list[float | None]]:
    """By cost that a line has, what replaces the rounds of the points of `paper_figure` on the x axis."""
    found: dict[str, list[float | None]] = {}
    made = [] if experiment.report.x != "round" or experiment.report.against else subplots(experiment, cells)
    lines = {(number, line): (one, own) for number, one in enumerate(made) for line, own in one.lines.items()}
    for name in set(OVER) - {"round"} if made else ():
        spent = {key: _spent(own, one.metric_of(key[1]), name) for key, (one, own) in lines.items()}
        if any(len(series) for series in spent.values()):
            found[name] = [spent[row["plot"], row["line"]].get(row["x"]) for row in figure.spec["datasets"]["long"]]
    return found


def _row(ranking: Ranking, group: Sequence[Cell], cell: Cell) -> str:
    """The name of a row: its method, with the settings that tell it from other rows of the method in a group."""
    labels = cell.labels
    same = [other.labels for other in group if other.labels[METHOD] == labels[METHOD]]
    differing = [key for key in ranking.settings if len({other.get(key, "") for other in same}) > 1 and labels.get(key)]
    options = [f"{ranking.short(key)}={label_name(key, labels[key])}" for key in differing]
    names = label_names(METHOD, {one.labels[METHOD] for one in ranking.cells})
    return ", ".join([names[labels[METHOD]], *options])


def _conditions(ranking: Ranking, group: Sequence[Cell]) -> str:
    """The labels that tell a group of competing cells from the others."""
    labels = [cell.labels for cell in group]
    common = [key for key in ranking.settings if len({own.get(key) for own in labels}) == 1 and labels[0].get(key)]
    differing = [key for key in common if len({cell.labels.get(key) for cell in ranking.cells}) > 1]
    return ", ".join(label_text(key, labels[0][key]) for key in differing)


def _printed(experiment: PaperExperiment, subplot: Subplot) -> list[Row]:
    """The final numbers that the paper prints for the lines of a subplot."""
    numbers, made = printed(experiment), []
    for name, cells in subplot.lines.items():
        known = printed_for(cells[0].labels, subplot.metric_of(name), numbers)
        if known is not None and known.value is not None:
            sd = math.nan if known.sd is None else subplot.metric.scale * known.sd
            made.append({"line": name, "value": subplot.metric.scale * known.value, "sd": sd})
    return made


def _stated(experiment: PaperExperiment, subplot: Subplot) -> list[Row]:
    """The numbers of the paper, or of its released code, at single rounds: values, and rounds that reach a value."""
    metric = subplot.metric
    last = max(cell.rounds_run for cells in subplot.lines.values() for cell in cells)
    made = [
        {"line": name, "x": number.value, "value": metric.scale * number.metric.threshold, "source": "printed"}
        for number in printed(experiment)
        if number.metric.threshold is not None
        and (number.metric.column, number.metric.over) == (metric.column, "round")
        for name, cells in subplot.lines.items()
        if name not in subplot.of and number.of(cells[0].labels) and number.value is not None and number.value <= last
    ]
    for claim in experiment.judged:
        metric = claim.metric or experiment.report.metrics[0]
        compared = claim.minus or claim.over or claim.per or claim.along or claim.slope
        if claim.at is None or not isinstance(claim.printed, float) or compared or metric != subplot.metric:
            continue
        of = claim.where | claim.of
        source = "printed" if claim.tag == "paper" else claim.section.partition(",")[0]
        for name, cells in subplot.lines.items():
            if any(all(cell.labels.get(axis) in labels for axis, labels in of.items()) for cell in cells):
                made.append({"line": name, "x": claim.at, "value": metric.scale * claim.printed, "source": source})
    return made


def _band(curve: pd.DataFrame, logarithmic: bool) -> tuple[pd.Series, pd.Series, pd.Series]:
    """The mean, and one standard deviation below and above it; of the logarithms if asked and all values have one."""
    if logarithmic and (curve.min() > 0).all():
        mean, low, high = _band(curve.map(np.log), logarithmic=False)
        return mean.map(np.exp), low.map(np.exp), high.map(np.exp)
    mean, sd = curve.mean(axis=1), curve.std(axis=1, ddof=1).fillna(0.0)
    return mean, mean - sd, mean + sd


def _curve(cells: Sequence[Cell], report: Report, metric: Metric, ticks: Sequence[str]) -> pd.DataFrame:
    """[points, seeds], indexed by their place on the x axis."""
    if report.x == "round":
        return _by_round(cells, metric)
    labels = {cell.labels.get(report.x) or "0": cell for cell in cells}
    points = {float(ticks.index(label) if label in ticks else label): cell for label, cell in labels.items()}
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


def _text(experiment: PaperExperiment, labels: dict[str, str], axes: Sequence[str], method: str = "") -> str:
    """Labels as people read them: a panel by its title, and that of a method, if it is known, with its name."""
    words = []
    for axis in axes:
        label = labels.get(axis, "")
        if axis == "panel" and label in experiment.panels:
            title = experiment.panels[label].title
            words.append(title if title or experiment.report.overlay else label)
        elif axis == METHOD and method and label:
            words.append(labelled(method, label))
        else:
            words.append(label_text(axis, label, [*axes, experiment.report.x]))
    return ", ".join(word for word in words if word)


def _x(experiment: PaperExperiment, cells: Sequence[Cell]) -> str:
    """The label of the x axis; an analysis may run over something else than rounds."""
    if experiment.report.x != "round":
        return label_name("axis", experiment.report.x)
    analyses = [experiment.panels[cell.labels["panel"]].analysis for cell in cells if cell.labels.get("panel")]
    names = {
        RUNS_OVER.get(analysis["name"].rpartition(":")[2], "round") if analysis else "round" for analysis in analyses
    }
    return names.pop() if len(names) == 1 else "round"
