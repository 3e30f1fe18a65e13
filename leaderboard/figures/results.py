"""Figures of results: the curves of a paper's experiment, and of a ranking.

A curve is the mean over seeds, with a band of one standard deviation, at the rounds after which all were evaluated.
"""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from rollcall.benchmark.config.axes import is_number
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Report
from rollcall.benchmark.config.metric import COSTS, OVER, Metric
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.figures.others import scatter
from rollcall.leaderboard.names import DASHES, Style, label_name, label_names, label_text, labelled, style
from rollcall.leaderboard.paper.experiment import PaperExperiment, Printed, printed, printed_for
from rollcall.leaderboard.ranking import METHOD, Ranking
from rollcall.leaderboard.runs import finished
from rollcall.leaderboard.tables import span

MOST_ABOVE_START = 1e3
"""A logarithmic y axis ends at this multiple of the largest first value, so that a diverging curve leaves the plot."""

FEW_POINTS = 12
"""Curves of fewer points have markers."""

DECADES = 1e3
"""Positive values whose largest is this multiple of the smallest have a logarithmic axis in a ranking."""


@dataclass
class Subplot:
    """One coordinate system: its title, the metric on its y axis, the label of its x axis, and its lines.

    `lines` has by name the metric (another one for another model, such as FedPBC's server) and the cells of a line;
    several cells if the line runs over an axis of the grid. `ticks` are the labels of this axis if they are no numbers,
    and `printed` the numbers that are stated: rows of line, x (the round; NaN for a final value), value and source.
    `points` has a row for each point; they are `dots` if each line has only one.
    """

    title: str
    metric: Metric
    x: str
    lines: dict[str, tuple[Metric, list[Cell]]]
    ticks: tuple[str, ...] = ()
    printed: list[dict[str, Any]] = field(default_factory=list)
    points: pd.DataFrame = field(default_factory=pd.DataFrame)
    dots: bool = False

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, of_line in self.lines.values() for cell in of_line]

    def measure(self, report: Report, over: str) -> None:
        """Find its points, over rounds, an axis of the grid, or a cost. Those at the start are no dots.

        They are not on a logarithmic axis either. A label 0 of an axis of the grid is at its left edge.
        """
        self.points = _points(self, report, over)
        by_round = bool(over) or self.x == "round"
        if by_round and "x" in report.log:
            self.points = self.points[~(self.points["x"] <= 0)]
        after = self.points[self.points["x"] != 0] if by_round else self.points
        after = after if len(after) else self.points
        self.dots = bool(len(after) and after["line"].is_unique and (by_round or after["x"].nunique() == 1))
        self.points = after if self.dots else self.points
        if "y" in report.log and not self.dots:  # a band that reaches 0 ends at its line
            low = self.points["low"]
            self.points = self.points.assign(low=low.mask(low <= 0, self.points["value"]))


def curves(
    experiment: str, store: Path | str | None = "runs", only: Mapping[str, list[Any]] | None = None, x: str = ""
) -> alt.ConcatChart:
    """The curves of an experiment, as `rollcall leaderboard` draws them.

    Args:
        experiment: a name from `rollcall list`, or a YAML file.
        store: folder of the run folders; None: kept runs alone.
        only: what is kept, by axis of the grid, such as `{"algorithm": ["fedavg", "mifa"]}`.
        x: the x axis: `round`, `gradients`, `floats` or `seconds`; by default the experiment's.

    Raises:
        SettingError: no run is finished and has the metric, or the x axis.
    """
    from rollcall.leaderboard.leaderboards import in_view, paper_leaderboard, ranking_leaderboard

    chosen, only, folder = PaperExperiment.read(experiment), only or {}, Path(store or "")
    runs = finished(chosen.home, None if store is None else folder)
    if chosen.source:
        return paper_leaderboard(*in_view(chosen, runs, only), folder, x).figure()
    return ranking_leaderboard(chosen, folder, runs, dict(only), x).figure()


def ranking_curves(ranking: Ranking, over: str = "", report: Report | None = None) -> alt.ConcatChart:
    """The first metric of all rows: a subplot for each set of conditions. Arguments and errors as `paper_curves`.

    Of the report, `x` counts if it is one of `OVER`, and `log`; by default the y axis is logarithmic over decades.
    """
    metric = Metric(ranking.metrics[0].column, ranking.metrics[0].direction)
    made = []
    for group in ranking.groups:
        lines = {_row(ranking, group, cell): (metric, [cell]) for cell in group}
        made.append(Subplot(_conditions(ranking, group), metric, "round", lines))
    values = np.concatenate([_by_round([cell], metric).mean(axis=1) for cell in ranking.cells])
    is_log = len(values) and 0 < DECADES * values.min() < values.max()
    report = report or Report()
    over = over or (report.x if report.x in OVER else "")
    return _drawn(made, Report(log=report.log or (("y",) if is_log else ())), over, "")


def paper_curves(experiment: PaperExperiment, cells: Sequence[Cell], over: str = "") -> alt.ConcatChart:
    """The `subplots` of an experiment.

    The x axis has rounds and a line for each cell, with a band of one standard deviation over seeds. If the report
    names another axis as `x`, there is a line for each of the other labels. If it names metrics as `against`, there is
    a plot for each of them, with a point for each cell. On a logarithmic y axis, mean and standard deviation are those
    of the logarithms. A quantity that is only ever 0 or 1 has a row for each line, with marks where it is 1.

    Args:
        experiment: of the paper.
        cells: of the experiment.
        over: what replaces the report's x on the x axis, one of `OVER`; empty for nothing.

    Raises SettingError: none of the metrics was measured, or no run has the column of the x axis.
    """
    report = experiment.report
    own = report.against[0].name if report.against else "" if report.x in OVER else report.x
    if over not in ("", "round") and own:
        raise SettingError(f"x: '{over}' is not allowed; this figure runs over {own}")
    if report.against:
        return scatter(experiment, cells)
    if report.x in OVER:
        over = over or report.x
        experiment = experiment.model_copy(update={"report": report.model_copy(update={"x": "round"})})
    return _drawn(subplots(experiment, cells), experiment.report, over, f"{experiment.title}. ")


def subplots(experiment: PaperExperiment, cells: Sequence[Cell]) -> list[Subplot]:
    """The subplots of an experiment.

    There is one for each panel (unless the report overlays them), each label of the report's `pictures` or `columns`,
    and each metric that is drawn. A metric of another model of some methods (`test/accuracy/server`) has lines in the
    subplot of the metric that its name begins with. A cell without such a label is in all subplots that it fits.

    Raises SettingError: none of the metrics was measured.
    """
    report, numbers = experiment.report, printed(experiment)
    metrics = list(report.drawn or report.metrics)
    if report.x == "round":  # the curve that reaches a value shows the first round that does
        metrics = list(dict.fromkeys(Metric(metric.column) for metric in metrics))
    measured = [cell for cell in cells if any(cell.measured(metric) for metric in metrics)]
    if not measured:
        raise SettingError(f"metric: {metrics[0].name!r} was measured in no run of {experiment.name}")
    axes = dict.fromkeys(axis for cell in measured for axis in cell.labels)
    varying = [axis for axis in axes if axis != report.x and len({cell.labels.get(axis, "") for cell in measured}) > 1]
    wanted = dict.fromkeys([*([] if report.overlay else ["panel"]), *(report.pictures or report.columns)])
    across = [axis for axis in wanted if axis in varying]
    along = [axis for axis in varying if axis not in across]
    made: list[Subplot] = []
    for place in _places(measured, across):
        inside = [cell for cell in measured if all(cell.labels.get(axis, one) == one for axis, one in place.items())]
        here = [metric for metric in metrics if any(cell.measured(metric) for cell in inside)]
        along_x = tuple(dict.fromkeys(label for cell in inside if (label := cell.labels.get(report.x))))
        ticks = () if all(map(is_number, along_x)) else along_x
        plots: dict[Metric, Subplot] = {}
        for metric in here if report.drawn else here[:1]:
            first = next((one for one in plots if metric.column.startswith(f"{one.column}/")), metric)
            model = f" ({metric.column.removeprefix(f'{first.column}/')})" if metric != first else ""
            new = Subplot(_text(experiment, place, across), first, _x(experiment, inside), {}, ticks)
            plot = plots.setdefault(first, new)
            for cell in (one for one in inside if one.measured(metric)):
                method = next(iter(cell.runs.values())).settings.get(METHOD, "")
                name = (_text(experiment, cell.labels, along, method) or first.title) + model
                plot.lines.setdefault(name, (metric, []))[1].append(cell)
                if report.x == "round":
                    stated = _stated(experiment, numbers, metric, cell)
                    plot.printed.extend(row | {"line": name, "value": first.scale * row["value"]} for row in stated)
        made += plots.values()
    return made


def _stated(
    experiment: PaperExperiment, numbers: Sequence[Printed], metric: Metric, cell: Cell
) -> Iterator[dict[str, Any]]:
    """Numbers of a cell: a printed final value (x is NaN), and those that claims state for a round."""
    known = printed_for(cell.labels, metric, numbers)
    if known is not None and known.value is not None:
        yield {"x": math.nan, "value": known.value, "source": "printed in the paper"}
    for claim in experiment.judged:
        compared = claim.minus or claim.over or claim.per or claim.along or claim.slope or claim.over_round
        compared = compared or claim.quantity != "final"
        is_own = (claim.metric or experiment.report.metrics[0]) == metric and not compared
        is_here = all(cell.labels.get(axis) in labels for axis, labels in (claim.where | claim.of).items())
        if claim.at is not None and isinstance(claim.printed, float) and is_own and is_here:
            source = "printed" if claim.tag == "paper" else claim.section.partition(",")[0]
            yield {"x": claim.at, "value": claim.printed, "source": source}


def _drawn(made: Sequence[Subplot], report: Report, over: str, title: str) -> alt.ConcatChart:
    """The figure of some subplots. Those of one row, one metric and one quantity on the x axis share their axes."""
    over = "" if over == "round" else over
    for one in made:
        one.measure(report, over)
    data = pd.concat([one.points.assign(plot=number) for number, one in enumerate(made)], ignore_index=True)
    absent = {*data.loc[data["x"].isna(), "line"]}
    if absent and absent == {*data["line"]}:
        raise SettingError(f"x: '{over}' is not allowed; no run has {OVER[over]}. Must be one of {', '.join(OVER)}")
    of_lines = [one for one in made if not one.dots]
    looks = _looks(of_lines)
    columns = 2 if len(made) in (2, 4) or len({one.metric for one in made}) == 2 else 3
    width, height = (420, 260) if len(made) == 1 else (theme.WIDTH, theme.HEIGHT)
    several = bool(data["seeds"].max() > 1)
    keys = [(at // columns, one.metric, one.x, one.ticks, one.dots) for at, one in enumerate(made)]
    views: list[Any] = []
    for number, one in enumerate(made):
        beside = [other for other, key in zip(made, keys, strict=True) if key == keys[number]]
        own, label = one.points, COSTS[OVER[over]] if over else one.x
        size: Any = height
        if one.dots:
            ends = theme.room(own[["low", "high"]].to_numpy().ravel())
            x, size = theme.axis(alt.X, "value", one.metric.head, ends, tickCount=5), alt.Step(16)
            colour = theme.GREY if of_lines else theme.BLUE  # the legend names the colours of the lines
            view = alt.layer(*theme.intervals(x, theme.rows_axis(), color=alt.value(colour)))
        elif len(own) and own["value"].isin((0, one.metric.scale)).all():
            x = theme.axis(alt.X, "x", label, (own["x"].min(), own["x"].max()))
            y = theme.rows_axis().scale(domain=[*own["line"].unique()])
            tick = alt.Chart().mark_tick(thickness=1.1 * width / own["x"].nunique(), bandSize=20, clip=True, opacity=1)
            view = alt.layer(tick.transform_filter("datum.value > 0").encode(x, y, theme.by_line("color", looks)))
        else:
            shared = pd.concat([other.points for other in beside])
            stated = [row["value"] for other in beside for row in other.printed]
            x = _x_axis(shared, label, report, bool(over) or one.x == "round", one.ticks)
            y = _y_axis(shared, stated, one.metric, report)
            y = y if one is beside[0] else y.title(None)
            sizes = own.groupby("line").size()
            few = sizes.max() < FEW_POINTS or [str(name) for name in sizes.index[sizes < FEW_POINTS]]
            view = alt.layer(*theme.lines(looks, x, y, bands=several, points=few), *_marks(one, x, y, looks))
        view.transform = [alt.FilterTransform(f"datum.plot === {number}")]
        view.title = alt.Title(textwrap.wrap(one.title, 44) or "", subtitle=_stamp(one))
        view.width, view.height = width, size
        views.append(view)
    diverged = {name for one in made for name, (_, of) in one.lines.items() if any(cell.diverged for cell in of)}
    uneven = data.groupby(["plot", "line"])["seeds"].nunique().max() > 1
    means, spreads = ("Lines", "Bands") if of_lines else ("Dots", "Lines")
    mean = "geometric mean" if "y" in report.log else "mean"
    stated_rows = [row for one in of_lines for row in one.printed]
    sources = {row["source"]: "Thin dashes" if math.isnan(row["x"]) else "Diamonds" for row in stated_rows}
    caption = [
        f"{means}: {mean} over seeds. {spreads}: one standard deviation" if several else "One seed",
        ", of the logarithms." if several and "y" in report.log else ".",
        f" Points have {span(data['seeds'])} seeds." if uneven else "",
        " 0 is drawn at the left edge." if "x" in report.log and (data["x"] == 0).any() else "",
        *(f" {mark}: {source}." for source, mark in sources.items()),
        f" Without runs that diverged: {', '.join(sorted(diverged))}." if diverged else "",
        f" Without {OVER[over]}: {', '.join(sorted(absent))}." if absent else "",
        _whose_seconds(made) if over == "seconds" else "",
    ]
    parts = "; ".join(dict.fromkeys(one.title for one in made if one.title))
    text = f"{title}{', '.join(dict.fromkeys(one.metric.head for one in made))} against {over or made[0].x}."
    text += f" Plots: {parts}." if parts else ""
    text += f" Lines: {'; '.join(dict.fromkeys(name for one in made for name in one.lines))}."
    return theme.grid(views, text, data=data, columns=columns, caption="".join(caption))


def _whose_seconds(made: Sequence[Subplot]) -> str:
    runs = [run for one in made for cell in one.cells for run in cell.runs.values()]
    simulated = all(OVER["seconds"] in run.history for run in runs)
    return " Seconds are those of the simulated clock." if simulated else " Seconds are spread evenly over the rounds."


def _x_axis(data: pd.DataFrame, title: str, report: Report, from_zero: bool, ticks: Sequence[str]) -> alt.X:
    if ticks:
        named = f"{json.dumps([label_name(report.x, tick) for tick in ticks])}[datum.value]"
        return theme.axis(alt.X, "x", title, (-0.2, len(ticks) - 0.8), values=[*range(len(ticks))], labelExpr=named)
    log = "x" in report.log
    first = data["x"].min() if log else 0
    ends = (first, data["x"].max()) if from_zero and len(data) else theme.room(data["x"], log, 0.02)
    options: dict[str, Any] = {} if log else {"tickCount": 5}
    return theme.axis(alt.X, "x", title, ends, log, **options | ({"format": "~s"} if ends[1] >= 1e5 else {}))


def _y_axis(data: pd.DataFrame, stated: Sequence[float], metric: Metric, report: Report) -> alt.Y:
    log = "y" in report.log
    low, high = theme.room([*data["value"], *stated, *data["low"], *data["high"]], log)
    if log and report.x == "round" and len(data):
        high = min(high, MOST_ABOVE_START * data.loc[data["x"] == data["x"].min(), "value"].max())
    elif metric.percent and data["value"].min() >= 0:
        low, high = max(low, 0), min(high, 100)
    return theme.axis(alt.Y, "value", metric.head, (low, high), log)


def _marks(one: Subplot, x: alt.X, y: alt.Y, looks: Mapping[str, Style]) -> list[alt.Chart]:
    """The layers of stated numbers, in the colours of their lines: rules at final values, diamonds at a round."""
    if not one.printed:
        return []
    numbers = pd.DataFrame(one.printed)[["line", "x", "value", "source"]]
    at_end = numbers["x"].isna()
    rules = alt.Chart(numbers[at_end]).mark_rule(strokeDash=[4, 3], clip=True)
    points = alt.Chart(numbers[~at_end]).mark_point(shape="diamond", size=90, stroke="black").encode(x=x)
    both = ((rules, at_end.any()), (points, not at_end.all()))
    return [one.encode(y, theme.by_line("color", looks)) for one, has in both if has]


def _looks(made: Sequence[Subplot]) -> dict[str, Style]:
    """The style of each line: that of its method, if no more than four lines have the same; else one after another.

    Further lines of a method have its colour, and a dash of it that no other line or method of the figure has, if any.
    """
    methods: dict[str, str] = {}
    for name, (_, of_line) in ((name, line) for one in made for name, line in one.lines.items()):
        settings = next((run.settings for cell in of_line for run in cell.runs.values()), {})
        methods.setdefault(name, settings.get(METHOD, ""))
    counts, looks, dashes = Counter(methods.values()), dict[str, Style](), list(DASHES.values())
    own = {method: style(method, methods.values()) for method in counts if method}
    for name, method in methods.items():
        if method and counts[method] <= (len(dashes) if len(counts) > 1 else 1):
            look, first = own[method], dashes.index(own[method].dash)
            taken = [*looks.values(), *(one for other, one in own.items() if other != method)]
            owned = {one.dash for one in taken if one.colour == look.colour}
            left = [dash for dash in dashes[first:] + dashes[:first] if dash not in owned]
            looks |= {name: replace(look, dash=left[0])} if left else {}
    free = theme.in_turn([name for name in methods if name not in looks], {one.colour for one in looks.values()})
    return {name: looks.get(name) or free[name] for name in methods}


def _stamp(subplot: Subplot) -> str:
    """`300 of 10,000 rounds`, if the runs have fewer rounds than planned."""
    ran = [cell for cell in subplot.cells if cell.runs]
    if not any(cell.rounds_run < cell.rounds for cell in ran):
        return ""
    return f"{span([cell.rounds_run for cell in ran])} of {max(cell.rounds for cell in ran):,} rounds"


def _points(subplot: Subplot, report: Report, over: str) -> pd.DataFrame:
    """A row for each point of each line, in printed units: line, x, value, low, high, sd, seeds, and known costs."""
    made = [pd.DataFrame(columns=["line", "x", "value", "low", "high", "sd", "seeds"])]
    log = "y" in report.log
    for name, (metric, cells) in subplot.lines.items():
        values = metric.scale * _curve(cells, report, metric, subplot.ticks)
        if values.empty:  # all runs diverged
            continue
        own = _band(values, log).assign(line=name, sd=values.std(axis=1), seeds=values.count(axis=1), x=values.index)
        for cost in [*OVER][1:] if report.x == "round" else ():
            spent = _spent(cells, metric, cost)
            if len(spent) or cost == over:
                own[cost] = spent
        own = own.assign(round=own["x"], x=own[over]) if over else own
        made.append(own[own["value"] > 0] if log else own)
    return pd.concat(made[1:] or made, ignore_index=True)


def _spent(cells: Sequence[Cell], metric: Metric, over: str) -> pd.Series:
    """The mean cost over the runs of a line, by round; without entries if it was not measured."""
    runs = [run for cell in cells for run in cell.ended.runs.values() if run.has(metric)]
    costs = [cost for run in runs if len((cost := run.cost(OVER[over]))[0])]
    return _beside(costs).mean(axis=1) if costs and len(costs) == len(runs) else pd.Series(dtype=float)


def _beside(columns: Sequence[tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """Columns of values by round side by side; quicker than pandas where all have the same rounds."""
    if columns and all(np.array_equal(rounds, columns[0][0]) for rounds, _ in columns):
        return pd.DataFrame(np.column_stack([values for _, values in columns]), columns[0][0])
    return pd.DataFrame(dict(enumerate(pd.Series(values, rounds) for rounds, values in columns)))


def _row(ranking: Ranking, group: Sequence[Cell], cell: Cell) -> str:
    """The name of a row: its method, with the settings that tell it from other rows of the method in a group."""
    same = [other.labels for other in group if other.labels[METHOD] == cell.labels[METHOD]]
    differing = [
        key for key in ranking.settings if cell.labels.get(key) and len({one.get(key, "") for one in same}) > 1
    ]
    options = [f"{ranking.short(key)}={label_name(key, cell.labels[key])}" for key in differing]
    names = label_names(METHOD, {one.labels[METHOD] for one in ranking.cells})
    return ", ".join([names[cell.labels[METHOD]], *options])


def _conditions(ranking: Ranking, group: Sequence[Cell]) -> str:
    """The labels that tell a group of competing cells from the others."""
    first, keys = group[0].labels, ranking.settings
    common = [key for key in keys if first.get(key) and len({cell.labels.get(key) for cell in group}) == 1]
    differing = [key for key in common if len({cell.labels.get(key) for cell in ranking.cells}) > 1]
    return ", ".join(label_text(key, first[key]) for key in differing)


def _band(curve: pd.DataFrame, logarithmic: bool) -> pd.DataFrame:
    """The mean, and one standard deviation below and above it; of logarithms if asked and all values have one.

    A point is over the seeds that it has; the deviation of one is 0.
    """
    if logarithmic and not (curve <= 0).any(axis=None):
        return _band(curve.map(np.log), logarithmic=False).map(np.exp)
    mean, sd = curve.mean(axis=1), curve.std(axis=1).where(curve.count(axis=1) > 1, 0.0)
    return pd.DataFrame({"value": mean, "low": mean - sd, "high": mean + sd})


def _curve(cells: Sequence[Cell], report: Report, metric: Metric, ticks: Sequence[str]) -> pd.DataFrame:
    """[points, seeds], indexed by their place on the x axis; NaN for a seed that a point lacks."""
    if report.x == "round":
        return _by_round(cells, metric)
    labels = {cell.labels.get(report.x) or "0": cell for cell in cells}
    points = {float(ticks.index(label) if label in ticks else label): cell for label, cell in labels.items()}
    values = {x: cell.finals(metric, report.last_rounds) for x, cell in points.items()}
    return pd.DataFrame(values).T.sort_index().dropna(how="all")


def _by_round(cells: Sequence[Cell], metric: Metric) -> pd.DataFrame:
    """[evaluations, seeds], indexed by round, without diverged runs."""
    runs = [run for cell in cells for run in cell.ended.runs.values() if run.has(metric)]
    return _beside([run.known(metric.column) for run in runs]).dropna()


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
            alone = [panel.title for panel in experiment.panels.values()].count(title) == 1
            # The one panel without a title of an overlay needs no name; two of one name would be one line.
            named = alone if experiment.report.overlay else title
            words.append(title if named else label)
        elif axis == METHOD and method and label:
            words.append(labelled(method, label))
        else:
            words.append(label_text(axis, label, [*axes, experiment.report.x]))
    return ", ".join(filter(None, words))


def _x(experiment: PaperExperiment, cells: Sequence[Cell]) -> str:
    """The label of the x axis; an analysis may run over something else than rounds."""
    if experiment.report.x != "round":
        return label_name("axis", experiment.report.x)
    panels = [experiment.panels[cell.labels["panel"]] for cell in cells if cell.labels.get("panel")]
    analyses = {(panel.analysis or {"name": "round"})["name"].rpartition(":")[2] for panel in panels}
    names = {"round" if label_name("axis", one) == one else label_name("axis", one) for one in analyses}
    return names.pop() if len(names) == 1 else "round"
