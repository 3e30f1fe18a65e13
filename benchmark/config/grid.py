"""The grid of an experiment: its runs with their labels, panel by panel."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Real
from typing import Any

from rollcall.benchmark.config.axes import Grid
from rollcall.benchmark.config.digest import digest, flatten, run_name, serialised
from rollcall.benchmark.config.dotted import merged, put_all
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, Panel, is_setting
from rollcall.benchmark.config.trial import Analysis, Trial


@dataclass(frozen=True)
class GridPoint:
    """A run in the grid of an experiment. Its settings are not validated, and no part is imported, before `trial`.

    Attributes:
        labels: by axis of the grid, without the seed; the name of the panel is under `panel`.
        spec: settings as they are written.
        searched: the experiment in which a search found some of them; empty if none did.
    """

    labels: dict[str, str]
    spec: dict[str, Any]
    searched: str = ""

    @cached_property
    def digest(self) -> str:
        return digest(self.spec)

    @property
    def name(self) -> str:
        return run_name(self.spec)

    @property
    def settings(self) -> dict[str, str]:
        """The settings as text, by dotted name: those of its run."""
        return flatten(serialised(self.spec))

    @property
    def seed(self) -> int:
        seed = self.spec.get("seed", 0)  # not validated yet
        whole = isinstance(seed, Real) and not isinstance(seed, bool) and float(seed).is_integer()
        if not whole or seed < 0:
            raise SettingError(f"seed: {seed!r} is not allowed; must be a whole number from 0")
        return int(seed)

    @property
    def rounds(self) -> int:
        """The number of rounds; 1 for an analysis."""
        rounds = 1 if "analysis" in self.spec else self.spec.get("rounds")
        return rounds if isinstance(rounds, int) else self.trial.rounds

    @cached_property
    def trial(self) -> Trial | Analysis:
        """What is run, validated. This imports the chosen tasks and algorithms, hence torch and Lightning.

        Raises SettingError: a setting is not allowed.
        """
        panel = self.labels["panel"]
        try:
            return read_trial(self.spec)
        except SettingError as error:
            raise SettingError(f"panel {panel}: {error}" if panel else str(error)) from None


def grid_points(experiment: Experiment) -> list[GridPoint]:
    """All points of an experiment, panel by panel; the last axis of a grid varies fastest."""
    return [point for name, panel in experiment.panels.items() for point in _of_panel(experiment, name, panel)]


def unique_runs(points: Iterable[GridPoint]) -> list[GridPoint]:
    """Each run once, at a point that asks for the most rounds."""
    kept: dict[str, GridPoint] = {}
    for point in points:
        if point.rounds > kept.setdefault(point.digest, point).rounds:
            kept[point.digest] = point
    return list(kept.values())


def set_by(experiment: Experiment) -> dict[str, frozenset[str]]:
    """The dotted settings that each axis of the grid sets, by axis."""
    paths: dict[str, frozenset[str]] = {}
    for grid in (experiment.grid, *(panel.grid for panel in experiment.panels.values())):
        for axis, values in grid.items():
            own = (path for value in values.values() for path in _settings(axis, value))
            paths[axis] = paths.get(axis, frozenset()).union(own)
    return paths


def read_trial(spec: dict[str, Any]) -> Trial | Analysis:
    """An analysis if the settings name one, else a trial; refused if a setting is not allowed."""
    return Analysis.read(spec) if "analysis" in spec else Trial.read(spec)


def _of_panel(experiment: Experiment, name: str, panel: Panel) -> Iterator[GridPoint]:
    grid = {**experiment.grid, **panel.grid}
    common = merged(experiment.trial, panel.trial)
    if panel.analysis is not None:
        grid = {axis: grid[axis] for axis in grid if axis in panel.grid or axis.startswith(("seed", "analysis."))}
        common = {"analysis": panel.analysis}
    _refuse_shared(grid)
    for labels in product(*grid.values()):
        chosen = [_settings(axis, grid[axis][label]) for axis, label in zip(grid, labels, strict=True)]
        # A whole part before its options, in whatever order the axes stand, so that no axis is lost.
        own = sorted((one for settings in chosen for one in settings.items()), key=lambda one: one[0].count("."))
        spec = put_all(common, dict(own))
        shown = {"panel": name} | {axis: label for axis, label in zip(grid, labels, strict=True) if axis != "seed"}
        searches: dict[str, str] = {}
        for override in experiment.overrides:
            if override.is_for(shown):
                spec = put_all(spec, override.set)
                # An override of a whole part keeps the axes within it, which `--set` may have added.
                within = tuple(f"{path}." for path in override.set)
                spec = put_all(spec, {path: value for path, value in own if path.startswith(within)})
                searches |= dict.fromkeys(override.set, override.searched)  # a later value may be of no search
        yield GridPoint(shown, spec, next(filter(None, searches.values()), ""))


def _refuse_shared(grid: Grid) -> None:
    """Raise SettingError if two axes set the same setting, so that one of them would change nothing."""
    owner: dict[str, str] = {}
    for axis, values in grid.items():
        for path in (path for value in values.values() for path in _settings(axis, value)):
            if (other := owner.setdefault(path, axis)) != axis:
                raise SettingError(f"grid.{axis}: is not allowed beside {other}; both set {path}")


def _settings(axis: str, value: Any) -> Mapping[str, Any]:
    """The values that an axis sets, by dotted setting."""
    return {axis: value} if is_setting(axis) or not isinstance(value, Mapping) else value
