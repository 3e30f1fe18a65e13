"""What the leaderboard's commands share."""

from pathlib import Path

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, names

FOLDER = Path("leaderboard")
"""In the working directory: the results that `archive` keeps, and the report with its figures."""

RESULTS = "results"
"""The archive, a folder in `FOLDER`."""


def papers(chosen: list[str] | None = None) -> list[Experiment]:
    """Experiments by name; by default all that reproduce a table or figure of a paper.

    Raises:
        SettingError: a chosen one names no paper.
    """
    experiments = [Experiment.read(name) for name in chosen or names()]
    for experiment in experiments if chosen else ():
        if not experiment.source:
            raise SettingError(
                f"experiment: {experiment.name!r} is not allowed; must have `source: PAPER AND FIGURE` in its file"
            )
    return [experiment for experiment in experiments if experiment.source]
