"""Which subplots the figure of an experiment has, and which lines are in each."""

from collections.abc import Sequence
from dataclasses import dataclass

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, is_number
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.report import Report
from rollcall.leaderboard.paper.cells import Cell
from rollcall.participation.analyses import RUNS_OVER


@dataclass(frozen=True)
class Subplot:
    """One coordinate system.

    Attributes:
        title: the labels that its lines have in common.
        metric: on the y axis.
        x: what is on the x axis, in words.
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
    metrics = _drawable(report)
    measured = [cell for cell in cells if any(cell.measured(metric) for metric in metrics)]
    if not measured:
        raise SettingError(f"metric: {metrics[0].name!r} was measured in no run of {experiment.name}")
    across, along = _axes(report, measured)
    made = []
    for place in _places(measured, across):
        inside = [cell for cell in measured if _fits(cell, place)]
        title = _text(experiment, place, across)
        for metric in _metrics(report, metrics, inside):
            made.append(Subplot(title, metric, _x(experiment, inside), _lines(experiment, inside, metric, along)))
    return made


def _drawable(report: Report) -> list[Metric]:
    """The metrics to draw. Over rounds, the first round that reaches a value is shown by the curve that reaches it."""
    metrics = report.drawn or report.metrics
    return [Metric(metric.column) if report.x == "round" else metric for metric in metrics]


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


def _fits(cell: Cell, place: dict[str, str]) -> bool:
    return all(cell.labels.get(axis, label) == label for axis, label in place.items())


def _metrics(report: Report, metrics: Sequence[Metric], cells: Sequence[Cell]) -> list[Metric]:
    """The metrics that a place has a subplot for: all that the report wants drawn, or else the first measured one."""
    measured = [metric for metric in metrics if any(cell.measured(metric) for cell in cells)]
    return measured if report.drawn else measured[:1]


def _lines(
    experiment: Experiment, cells: Sequence[Cell], metric: Metric, along: Sequence[str]
) -> dict[str, list[Cell]]:
    lines: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.measured(metric):
            lines.setdefault(_text(experiment, cell.labels, along), []).append(cell)
    return lines


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
