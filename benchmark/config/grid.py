"""From an experiment to its trials and analyses."""

from collections.abc import Iterable, Iterator, Mapping
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
    """A trial or an analysis, and its place in the grid of the experiment.

    Attributes:
        labels: by axis of the grid, without the seed; the name of the panel is under `panel`.
        trial: what is run.
    """

    labels: dict[str, str]
    trial: Trial | Analysis


@dataclass(frozen=True)
class Draft:
    """The settings of a place before they are validated.

    Attributes:
        labels: as those of the `Place`.
        spec: plain settings.
    """

    labels: dict[str, str]
    spec: dict[str, Any]


def drafts(experiment: Experiment) -> list[Draft]:
    """All places of an experiment, panel by panel, not validated; the last axis of a grid varies fastest."""
    return [draft for name, panel in experiment.panels.items() for draft in _of_panel(experiment, name, panel)]


def places(experiment: Experiment) -> list[Place]:
    """All places of an experiment, in the order of `drafts`.

    Validating imports the chosen tasks and algorithms, hence torch and Lightning.

    Raises:
        SettingError: the settings of a place are not allowed; the first such place counts.
    """
    return [_validated(draft) for draft in drafts(experiment)]


def trials(experiment: Experiment) -> list[Trial | Analysis]:
    """The trials and analyses of an experiment, each once."""
    return distinct(places(experiment))


def distinct(places: Iterable[Place]) -> list[Trial | Analysis]:
    """The trials and analyses at these places, each once, with the most rounds that a place asks for."""
    longest: dict[str, Trial | Analysis] = {}
    for place in places:
        known = longest.get(place.trial.name)
        if known is None or known.rounds < place.trial.rounds:
            longest[place.trial.name] = place.trial
    return list(longest.values())


def set_by(experiment: Experiment) -> dict[str, frozenset[str]]:
    """The dotted settings that each axis of the grid sets, by axis."""
    paths: dict[str, frozenset[str]] = {}
    for grid in (experiment.grid, *(panel.grid for panel in experiment.panels.values())):
        for axis, values in grid.items():
            own = (path for value in values.values() for path in _settings(axis, value))
            paths[axis] = paths.get(axis, frozenset()).union(own)
    return paths


def read(spec: dict[str, Any]) -> Trial | Analysis:
    """An analysis if the settings name one, else a trial.

    Raises:
        SettingError: a setting is not allowed.
    """
    return Analysis.read(spec) if "analysis" in spec else Trial.read(spec)


def _validated(draft: Draft) -> Place:
    panel = draft.labels["panel"]
    try:
        return Place(draft.labels, read(draft.spec))
    except SettingError as error:
        raise SettingError(f"panel {panel}: {error}" if panel else str(error)) from None


def _of_panel(experiment: Experiment, name: str, panel: Panel) -> Iterator[Draft]:
    grid = {**experiment.grid, **panel.grid}
    common = merged(experiment.trial, panel.trial)
    if panel.analysis is not None:
        grid = {axis: grid[axis] for axis in grid if axis in panel.grid or axis.startswith(("seed", "analysis."))}
        common = {"analysis": panel.analysis}
    for labels in product(*grid.values()):
        spec = common
        for axis, label in zip(grid, labels, strict=True):
            for path, value in _settings(axis, grid[axis][label]).items():
                spec = put(spec, path, value)
        shown = {axis: label for axis, label in zip(grid, labels, strict=True) if axis != "seed"}
        shown = {"panel": name} | shown
        yield Draft(shown, _overridden(spec, shown, experiment.overrides))


def _settings(axis: str, value: Any) -> Mapping[str, Any]:
    """Values by dotted setting. If the axis is not a setting (`p2`), its value maps dotted settings to values."""
    first = axis.partition(".")[0]
    if first in Trial.model_fields or first in Analysis.model_fields or not isinstance(value, Mapping):
        return {axis: value}
    return value


def _overridden(spec: dict[str, Any], labels: dict[str, str], overrides: tuple[Override, ...]) -> dict[str, Any]:
    """The settings after the overrides that apply at this place."""
    for override in overrides:
        if all(labels.get(axis) in names for axis, names in override.when.items()):
            for path, value in override.set.items():
                spec = put(spec, path, value)
    return spec
