"""Which runs a table shows: the options `--only`, `--best-by` and `--hide-diverged`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rollcall.benchmark.config.digest import flatten
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import DIRECTIONS, Metric, direction_of
from rollcall.leaderboard.ranking.axes import Axis
from rollcall.leaderboard.ranking.table import is_condition
from rollcall.leaderboard.run import Run, Settings


def only(runs: Sequence[Run], axes: Sequence[Axis], conditions: Mapping[str, Sequence[Any]]) -> list[Run]:
    """The runs with these values of settings.

    Args:
        runs: of one experiment.
        axes: of its grid; `bernoulli` also selects the label `bernoulli#2`, as in `rollcall run --only`.
        conditions: labels by axis, or values by dotted setting.

    Raises:
        SettingError: no run has one of the values.
    """
    kept = list(runs)
    by_name = {axis.name: axis for axis in axes}
    for name, values in conditions.items():
        texts = [_texts(run, name, by_name.get(name)) for run in kept]
        for value in values:
            if not any(_is_among(value, own) for own in texts):
                present = sorted({own[0] for own in texts if own})
                if not present:
                    settings = dict.fromkeys([*by_name, *(key for run in runs for key in run.settings)])
                    raise SettingError(f"only: {name!r} is not allowed; must be one of {', '.join(settings)}")
                raise SettingError(f"only {name}: {value!r} is not allowed; must be one of {', '.join(present)}")
        kept = [run for run, own in zip(kept, texts, strict=True) if any(_is_among(value, own) for value in values)]
    return kept


def best_settings(runs: Sequence[Run], metric: Metric, last_rounds: int) -> tuple[list[Run], int]:
    """Of each method, under equal conditions, the runs of the settings whose mean over seeds is best.

    Returns:
        the runs; and the largest number of settings among which one was chosen.
    """
    groups: dict[tuple[str, Settings], dict[Settings, list[Run]]] = {}
    for run in runs:
        conditions = tuple(pair for pair in run.cell if is_condition(pair[0]))
        groups.setdefault((run.settings["algorithm"], conditions), {}).setdefault(run.cell, []).append(run)

    def loss(cell: list[Run]) -> float:
        """What is lowest for the best settings; infinite if a run has no value."""
        values = [run.final(metric, last_rounds) for run in cell if run.has(metric) and not run.diverged]
        mean = sum(values) / len(values) if len(values) == len(cell) else math.nan
        return metric.penalty(mean)

    best = [run for cells in groups.values() for run in min(cells.values(), key=loss)]
    return best, max(map(len, groups.values()), default=0)


def without_diverged(runs: Sequence[Run]) -> tuple[list[Run], int]:
    """The runs of cells in which no run diverged, and the number of the other cells."""
    diverged = {run.cell for run in runs if run.diverged}
    return [run for run in runs if run.cell not in diverged], len(diverged)


def measured(runs: Sequence[Run]) -> list[str]:
    """The metrics of all runs."""
    return sorted({str(name) for run in runs for name in run.history})


def chooser(text: str, metrics: Sequence[Metric]) -> Metric:
    """The metric of `--best-by NAME` or `NAME=max|min|zero`.

    Args:
        text: the value of the option.
        metrics: of the report, whose directions are known.

    Raises:
        SettingError: the direction is not given and does not follow from the name.
    """
    for direction in DIRECTIONS:
        if text.endswith(f"={direction}"):
            return Metric(text.removesuffix(f"={direction}"), direction)
    known = direction_of(text, metrics)
    if known is not None:
        return Metric(text, known)
    raise SettingError(f"best-by: {text!r} is not allowed; must say which values are better: {text}=max, =min or =zero")


def _texts(run: Run, name: str, axis: Axis | None) -> list[str]:
    """What a run may be selected by: its label on the axis of this name, and the value of the setting of this name."""
    label = axis.label(run.settings) if axis else None
    return [text for text in (label, run.settings.get(name)) if text is not None]


def _is_among(value: Any, texts: Sequence[str]) -> bool:
    """Whether a value is one of these texts; a class of a user's file may be named without its file."""
    wanted = value if isinstance(value, str) else flatten({"": value})[""]
    return any(wanted in (text, text.rpartition("#")[0], text.rpartition(":")[2]) for text in texts)
