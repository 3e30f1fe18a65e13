"""What `rollcall show` prints: an experiment in words and tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from benchmark.config.digest import flatten
from benchmark.config.experiment import Experiment, Override
from benchmark.config.grid import Place
from benchmark.config.report import Report

LONG = 6
"""Numbers of a vector, and labels of an axis, that are written out."""


def card(experiment: Experiment, places: Sequence[Place]) -> Group:
    """All that an experiment says of itself."""
    parts: list[RenderableType] = [Text(experiment.title, style="bold")]
    if experiment.about:
        parts.append(Text(experiment.about))
    if experiment.source:
        parts.append(Text(f"Source: {experiment.source}"))
    parts += _table("settings of all trials", _settings(experiment.trial))
    for name, panel in experiment.panels.items():
        title = f"panel {name}: {panel.title}".removesuffix(": ") if name else "grid"
        mine = [place.trial for place in places if place.labels["panel"] == name]
        grid = experiment.grid | panel.grid
        rows = [
            (axis, _labels(list(grid[axis]))) for axis in grid if panel.analysis is None or axis.startswith("analysis.")
        ]
        own = _settings(panel.trial) if panel.analysis is None else _settings({"analysis": panel.analysis})
        rounds = ", ".join(f"{rounds:,}" for rounds in sorted({trial.rounds for trial in mine}))
        what = f"{len(mine):,} trials of {rounds} rounds" if panel.analysis is None else f"{len(mine):,} analyses"
        parts += _table(title, [*own, *rows, ("", what)])
    parts += _table("settings by place", [_override(override) for override in experiment.overrides])
    parts += _table("choices", experiment.choices.items())
    parts += _table("variants", [(name, variant.about) for name, variant in experiment.variants.items()])
    parts += _table("claims", [(f"{n}", claim.says) for n, claim in enumerate(experiment.claims, 1)])
    parts += _table("report", [("", _report(experiment.report))])
    return Group(*parts)


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> list[RenderableType]:
    """A heading and its rows; nothing where there are none."""
    grid = Grid.grid(padding=(0, 3, 0, 0))
    for first, *others in rows:
        grid.add_row(Text(f"  {first}", style="cyan"), *map(Text, others))
    return ["", Text(title, style="bold"), grid] if grid.row_count else []


def _settings(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """By dotted name; vectors in a word."""
    return list(flatten(shortened(dict(spec))).items())


def shortened(value: Any) -> Any:
    """Settings with long vectors replaced by how many numbers they have, and from where to where."""
    if isinstance(value, Mapping):
        return {key: shortened(item) for key, item in value.items()}
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return [shortened(item) for item in value]
    if numbers.size <= LONG:
        return value
    size = " x ".join(map(str, numbers.shape))
    return f"{size} numbers from {numbers.min():g} to {numbers.max():g}"


def _labels(names: Sequence[str]) -> str:
    """Those of an axis; the middle of many numbers is left out."""
    numbers = all(name.lstrip("-").replace(".", "", 1).isdigit() for name in names)
    if not numbers or len(names) <= 2 * LONG:
        return ", ".join(names)
    return f"{', '.join(names[:3])}, ..., {names[-1]} ({len(names)})"


def _override(override: Override) -> tuple[str, str, str]:
    """When, what, and how it was found."""
    where = "; ".join(f"{axis} {', '.join(labels)}" for axis, labels in override.when.items())
    what = ", ".join(f"{path} {value}" for path, value in flatten(shortened(override.set)).items())
    return where, what, override.found


def _report(report: Report) -> str:
    metrics = ", ".join(f"{metric.name} {metric.arrow}" for metric in report.metrics)
    return f"{metrics}; mean of the last {report.last_rounds} rounds"
