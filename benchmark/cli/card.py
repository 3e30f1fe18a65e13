"""What `rollcall show` prints of an experiment file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from benchmark.config.digest import flatten
from benchmark.config.experiment import Experiment, Override, drafts
from benchmark.config.report import Report
from benchmark.config.text import counted

LONG = 6
"""The most numbers of a vector, and labels of an axis, that are printed in full."""


def card(experiment: Experiment) -> Group:
    """All that an experiment file says. Settings are shown as they are written, before they are validated."""
    parts: list[RenderableType] = [Text(experiment.title, style="bold")]
    if experiment.about:
        parts.append(Text(experiment.about))
    if experiment.source:
        parts.append(Text(f"Source: {experiment.source}"))
    parts += _table("settings of all trials", _settings(experiment.trial))
    for name, panel in experiment.panels.items():
        title = f"panel {name}: {panel.title}".removesuffix(": ") if name else "grid"
        parts += _table(title, _panel(experiment, name))
    parts += _table("overrides", [_override(override) for override in experiment.overrides])
    parts += _table("choices", experiment.choices.items())
    parts += _table("variants", [(name, variant.about) for name, variant in experiment.variants.items()])
    parts += _table("claims", [(f"{n}", claim.says) for n, claim in enumerate(experiment.claims, 1)])
    parts += _table("report", [("", _report(experiment.report))])
    return Group(*parts)


def _panel(experiment: Experiment, name: str) -> list[tuple[str, str]]:
    """The settings of a panel, its axes, and how many trials or analyses they make."""
    panel = experiment.panels[name]
    grid = experiment.grid | panel.grid
    specs = [draft.spec for draft in drafts(experiment) if draft.labels["panel"] == name]
    if panel.analysis is not None:
        axes = [(axis, _labels(list(grid[axis]))) for axis in grid if axis.startswith("analysis.")]
        size = "1 analysis" if len(specs) == 1 else f"{len(specs):,} analyses"
        return [*_settings({"analysis": panel.analysis}), *axes, ("", size)]
    axes = [(axis, _labels(list(grid[axis]))) for axis in grid]
    numbers = sorted({int(spec["rounds"]) for spec in specs if isinstance(spec.get("rounds"), int | float)})
    rounds = ", ".join(f"{number:,}" for number in numbers)
    return [*_settings(panel.trial), *axes, ("", f"{counted(len(specs), 'trial')} of {rounds} rounds")]


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> list[RenderableType]:
    """A heading and its rows; nothing if there are no rows."""
    grid = Grid.grid(padding=(0, 3, 0, 0))
    for first, *others in rows:
        grid.add_row(Text(f"  {first}", style="cyan"), *map(Text, others))
    return ["", Text(title, style="bold"), grid] if grid.row_count else []


def _settings(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings by dotted name, long vectors shortened."""
    return list(flatten(shortened(dict(spec))).items())


def shortened(value: Any) -> Any:
    """Settings in which a long vector is replaced by its shape and its range."""
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
    """The labels of an axis; of many numbers, the first three and the last."""
    numbers = all(name.lstrip("-").replace(".", "", 1).isdigit() for name in names)
    if not numbers or len(names) <= 2 * LONG:
        return ", ".join(names)
    return f"{', '.join(names[:3])}, ..., {names[-1]} ({len(names)})"


def _override(override: Override) -> tuple[str, str, str]:
    """Where an override applies, what it sets, and how its values were found."""
    where = "; ".join(f"{axis} {', '.join(labels)}" for axis, labels in override.when.items())
    what = ", ".join(f"{path} {value}" for path, value in flatten(shortened(override.set)).items())
    return where, what, override.found


def _report(report: Report) -> str:
    metrics = ", ".join(f"{metric.name} {metric.arrow}" for metric in report.metrics)
    last = report.last_rounds
    return f"{metrics}; {'at the last evaluation' if last == 1 else f'mean of the last {last:,} rounds'}"
