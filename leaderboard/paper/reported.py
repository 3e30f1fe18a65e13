"""The numbers that the papers print, by the cells of our experiments."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.paper.experiment import PaperExperiment, Reported

FOLDER = Path(__file__).parents[1] / "reported"


@dataclass(frozen=True)
class Printed:
    """A number in a paper's table, in our units.

    Attributes:
        labels: by axis; it belongs to the cells that have them.
        metric: what it measures.
        value: the mean; None if our copy of the paper prints one number for several methods.
        sd: the standard deviation over seeds; None if it is not printed.
        shared: the number that is printed for several labels, as it is printed.
        among: these labels.
    """

    labels: dict[str, str]
    metric: Metric
    value: float | None
    sd: float | None
    shared: str = ""
    among: tuple[str, ...] = ()

    def of(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(axis) == label for axis, label in self.labels.items())

    @property
    def note(self) -> str:
        return f"the copy prints {self.shared} once for {' or '.join(self.among)}" if self.among else ""


def printed(experiment: PaperExperiment) -> list[Printed]:
    """All printed numbers that an experiment is compared with.

    A label `this|that` in the file means that the copy prints one number for both, so that neither has one.
    """
    numbers = []
    for source in experiment.reported:
        with (FOLDER / f"{source.file}.csv").open(newline="") as file:
            numbers += [number for row in csv.DictReader(file) for number in _numbers(source, row)]
    return numbers


def printed_for(labels: Mapping[str, str], metric: Metric, numbers: Sequence[Printed]) -> Printed | None:
    return next((number for number in numbers if number.metric == metric and number.of(labels)), None)


def _numbers(source: Reported, row: Mapping[str, str]) -> list[Printed]:
    """The number of a row, if it has one; several without a value if it is shared by labels."""
    metric = Metric(source.metric.format(**row))
    never = row[source.value] == "-" and metric.threshold is not None  # the paper's sign for a value never reached
    if row[source.value] in ("", "-") and not never:
        return []
    value = math.inf if never else float(row[source.value]) * source.scale
    sd = float(row[source.spread]) * source.scale if source.spread and row[source.spread] else None
    names = [row[column].split("|") for column in source.axes.values()]  # on each axis
    alternatives = [dict(zip(source.axes, labels, strict=True)) for labels in product(*names)]
    if len(alternatives) == 1:
        return [Printed(alternatives[0], metric, value, sd)]
    shared = metric.text(value) if sd is None else f"{metric.text(value)} ± {metric.text(sd)}"
    among = next(tuple(labels) for labels in names if len(labels) > 1)
    return [Printed(labels, metric, None, None, shared, among) for labels in alternatives]
