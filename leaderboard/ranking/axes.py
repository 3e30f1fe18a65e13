"""The axes of an experiment's grid, and the label that a run has on each."""

from dataclasses import dataclass

from rollcall.benchmark.config.digest import flatten, plain
from rollcall.benchmark.config.experiment import Experiment, is_default, places, set_by
from rollcall.leaderboard.run import Settings

OF_PANEL = frozenset({"task", "participation", "algorithm", "local", "server", "analysis"})
"""Settings that tell the trials of panels apart."""


@dataclass(frozen=True)
class Axis:
    """An axis of a grid.

    Attributes:
        name: of the axis.
        settings: the dotted settings that it sets.
        labels: by all settings of a trial that are, or are below, one of `settings`.
    """

    name: str
    settings: frozenset[str]
    labels: dict[Settings, str]

    @property
    def named(self) -> bool:
        """Whether the file names its values. Otherwise a label is a choice's name or the value itself."""
        return not all(is_default(label, dict(part).get(self.name, "")) for part, label in self.labels.items())

    def covers(self, setting: str) -> bool:
        """Whether it sets this setting."""
        return any(setting == own or setting.startswith(f"{own}.") for own in self.settings)

    def label(self, settings: dict[str, str]) -> str | None:
        """The label of a run with these settings, by dotted name; None if its values are not on the axis."""
        return self.labels.get(self._part(settings))

    def add(self, settings: dict[str, str], label: str) -> None:
        """Note that a trial of this label has these settings."""
        self.labels.setdefault(self._part(settings), label)

    def _part(self, settings: dict[str, str]) -> Settings:
        return tuple(sorted((key, value) for key, value in settings.items() if self.covers(key)))


def axes(experiment: Experiment) -> list[Axis]:
    """The panel, and the axes of the grid without the seed, in the order of the file.

    Raises:
        SettingError: the settings of a place are not allowed.
    """
    paths = {"panel": OF_PANEL} | set_by(experiment)
    made = {name: Axis(name, settings, {}) for name, settings in paths.items() if name != "seed"}
    for place in places(experiment):
        settings = flatten(plain(place.spec))
        for name, label in place.labels.items():
            made[name].add(settings, label)
    return list(made.values())
