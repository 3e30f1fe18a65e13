"""From an experiment to the trials and analyses that it consists of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmark.config.analysis import Analysis
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment, Override, Panel
from benchmark.config.nested import merged, put
from benchmark.config.trial import Trial


@dataclass(frozen=True)
class Place:
    """A trial, or an analysis, and where in the experiment it stands.

    Attributes:
        labels: by axis of the grid, its panel under `panel`; without the seed.
        trial: what is run.
    """

    labels: dict[str, str]
    trial: Trial | Analysis


def places(experiment: Experiment) -> list[Place]:
    """All of an experiment, panel by panel, validated; the last axis of a grid runs fastest.

    Raises:
        SettingError: of the first trial that is not allowed.
    """
    return [place for name, panel in experiment.panels.items() for place in _of_panel(experiment, name, panel)]


def trials(experiment: Experiment) -> list[Trial | Analysis]:
    """What is to be run."""
    return distinct(places(experiment))


def distinct(places: Iterable[Place]) -> list[Trial | Analysis]:
    """What stands at these places, each run once, with the most rounds that a place asks of it."""
    found: dict[str, Trial | Analysis] = {}
    for place in places:
        known = found.get(place.trial.digest)
        if known is None or known.rounds < place.trial.rounds:
            found[place.trial.digest] = place.trial
    return list(found.values())


def read(spec: dict[str, Any]) -> Trial | Analysis:
    """An analysis where the settings name one, else a trial.

    Raises:
        SettingError: a setting that is not allowed.
    """
    return Analysis.read(spec) if "analysis" in spec else Trial.read(spec)


def _of_panel(experiment: Experiment, name: str, panel: Panel) -> list[Place]:
    grid = {**experiment.grid, **panel.grid}
    if panel.analysis is not None:
        grid = {
            axis: values
            for axis, values in grid.items()
            if axis in panel.grid or axis.startswith(("seed", "analysis."))
        }
    found = []
    for labels in product(*grid.values()):
        where = dict(zip(grid, labels, strict=True))
        spec = {"analysis": panel.analysis} if panel.analysis is not None else merged(experiment.trial, panel.trial)
        for axis, label in where.items():
            spec = _put(spec, axis, grid[axis][label])
        shown = {"panel": name} | {axis: label for axis, label in where.items() if axis != "seed"}
        spec = _adjusted(spec, shown, experiment.overrides)
        try:
            found.append(Place(shown, read(spec)))
        except SettingError as error:
            raise SettingError(f"panel {name}: {error}" if name else str(error)) from None
    return found


def _put(spec: dict[str, Any], axis: str, value: Any) -> dict[str, Any]:
    """A value of an axis; of one that is no setting, such as `p2`, all settings by dotted name that its value holds."""
    first = axis.partition(".")[0]
    if first in Trial.model_fields or first in Analysis.model_fields or not isinstance(value, Mapping):
        return put(spec, axis, value)
    for path, setting in value.items():
        spec = put(spec, path, setting)
    return spec


def _adjusted(spec: dict[str, Any], labels: dict[str, str], overrides: tuple[Override, ...]) -> dict[str, Any]:
    """The settings that follow from a place laid over what the grid says."""
    for one in overrides:
        if all(labels.get(axis) in meant for axis, meant in one.when.items()):
            for path, value in one.set.items():
                spec = put(spec, path, value)
    return spec
