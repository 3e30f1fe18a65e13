"""Which pictures the figure of an experiment consists of, and which lines are in each."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.config.analyses import RUNS_OVER
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment
from leaderboard.paper.cells import Cell
from leaderboard.results import has


@dataclass(frozen=True)
class Picture:
    """One coordinate system.

    Attributes:
        title: what its lines have in common.
        metric: what its lines show.
        x: what they run over, in words.
        lines: the cells of each, by name; several where the line runs over an axis of the grid.
    """

    title: str
    metric: str
    x: str
    lines: dict[str, list[Cell]]


def pictures(experiment: Experiment, cells: Sequence[Cell]) -> list[Picture]:
    """A picture for each panel (unless the report lays them over each other), for each label of the report's `pictures`
    or `columns`, and for each metric that is drawn; a cell that has no such label stands in all pictures that it fits,
    as what they are compared with.

    Raises:
        SettingError: nothing that could be drawn was measured.
    """
    report = experiment.report
    drawable = [_drawable(metric, report.x) for metric in report.drawn or report.metrics]
    found = [cell for cell in cells if any(_measured(cell, metric) for metric in drawable)]
    if not found:
        raise SettingError(f"metric: {drawable[0]!r} was measured in no run of {experiment.name}")
    axes = dict.fromkeys(axis for cell in found for axis in cell.labels)
    varying = [axis for axis in axes if axis != report.x and len({cell.labels.get(axis, "") for cell in found}) > 1]
    wanted = (*(() if report.overlay else ("panel",)), *(report.pictures or report.columns))
    across = [axis for axis in dict.fromkeys(wanted) if axis in varying]
    along = [axis for axis in varying if axis not in across]
    made = []
    for where in _places(found, across):
        mine = [cell for cell in found if all(cell.labels.get(axis, label) == label for axis, label in where.items())]
        measured = [metric for metric in drawable if any(_measured(cell, metric) for cell in mine)]
        for metric in measured if report.drawn else measured[:1]:
            lines: dict[str, list[Cell]] = {}
            for cell in mine:
                if _measured(cell, metric):
                    lines.setdefault(_text(experiment, cell.labels, along), []).append(cell)
            made.append(Picture(_text(experiment, where, across), metric, _over(experiment, mine), lines))
    return made


def _places(found: Sequence[Cell], across: Sequence[str]) -> list[dict[str, str]]:
    """The labels of each picture; not of cells that fit beside another picture's."""
    places = [{axis: cell.labels[axis] for axis in across if cell.labels.get(axis)} for cell in found]
    unique = [place for index, place in enumerate(places) if place not in places[:index]]
    return [place for place in unique if not any(place.items() < other.items() for other in unique)]


def _text(experiment: Experiment, labels: dict[str, str], axes: Sequence[str]) -> str:
    """Labels as people read them: a panel's title, where it has one, and a number with the setting that it is of."""
    words = []
    for axis in axes:
        label = labels.get(axis, "")
        if axis == "panel" and label in experiment.panels:
            title = experiment.panels[label].title
            label = title if title or experiment.report.overlay else label
        elif _is_number(label):
            label = f"{axis.rpartition('.')[2]} {label}"
        words.append(label)
    return ", ".join(word for word in words if word)


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _over(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """What the x axis says; an analysis's column `round` may be something else."""
    if experiment.report.x != "round":
        return experiment.report.x
    analyses = [experiment.panels[cell.labels["panel"]].analysis for cell in cells if cell.labels.get("panel")]
    known = {RUNS_OVER.get(analysis["name"], "round") if analysis else "round" for analysis in analyses}
    return known.pop() if len(known) == 1 else "round"


def _drawable(metric: str, x: str) -> str:
    """The metric whose curve is drawn; for the first round that reaches something, of what is to reach it."""
    return metric.removeprefix("round_of:").partition(">=")[0] if x == "round" else metric


def _measured(cell: Cell, metric: str) -> bool:
    return any(has(run, metric) for run in cell.runs.values())
