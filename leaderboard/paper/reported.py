"""The numbers that the papers print, by the places of our experiments."""

import csv
from dataclasses import dataclass
from pathlib import Path

from benchmark.config.experiment import Experiment
from benchmark.config.report import Reported

FOLDER = Path(__file__).parents[1] / "reported"


@dataclass(frozen=True)
class Printed:
    """A number in a paper's table, in our units.

    Attributes:
        labels: of the cell it stands beside, by axis.
        metric: which of the cell's.
        value, sd: the mean, and the standard deviation over seeds if it is printed.
    """

    labels: dict[str, str]
    metric: str
    value: float
    sd: float | None


def printed(experiment: Experiment) -> list[Printed]:
    """All numbers that an experiment is compared with; a row for `this|that` stands beside both."""
    return [number for source in experiment.reported for number in _read(source)]


def _read(source: Reported) -> list[Printed]:
    found = []
    with (FOLDER / f"{source.file}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row[source.value] in ("", "-"):
                continue
            names = {axis: row[column].split("|") for axis, column in source.axes.items()}
            combinations: list[dict[str, str]] = [{}]
            for axis, labels in names.items():
                combinations = [{**known, axis: label} for known in combinations for label in labels]
            sd = row[source.spread] if source.spread else ""
            value = float(row[source.value]) * source.scale
            spread = float(sd) * source.scale if sd else None
            found += [Printed(labels, source.metric.format(**row), value, spread) for labels in combinations]
    return found
