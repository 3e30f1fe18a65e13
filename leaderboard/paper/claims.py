"""Whether the claims of a paper hold in the results."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from benchmark.config.metric import Metric
from benchmark.config.report import Claim, Report
from leaderboard.paper.cells import Cell, Estimate, after_equal_rounds, estimate, geometric

Verdict = Literal["holds", "fails", "undecided", "not run"]


@dataclass(frozen=True)
class PlaceResult:
    """What a claim comes to in one cell or pair of cells.

    Attributes:
        labels: of the place, without those that all places of the claim share.
        quantity: the claim's quantity; None if a cell was not run.
        verdict: whether all of the interval is within the claim's bounds, none of it, or a part. With diverged runs it
            is undecided.
        diverged: number of runs of the cells that diverged.
    """

    labels: dict[str, str]
    quantity: Estimate | None
    verdict: Verdict
    diverged: int = 0


@dataclass(frozen=True)
class ClaimResult:
    """What a claim comes to.

    Attributes:
        claim: of the paper.
        metric: that it is about.
        places: one result for each cell or pair of cells.
        reduced: whether a run was shorter, or the seeds were fewer, than the experiment's file asks for.
        unmeasured: the metrics of the claim that no run of its cells measured, although there are runs.
    """

    claim: Claim
    metric: Metric
    places: tuple[PlaceResult, ...]
    reduced: bool
    unmeasured: tuple[Metric, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """A claim holds if it holds at all places that were run, and fails if it fails at one of them.

        Of k places one is more likely to fail by chance, so for this their intervals have the level 1 - 0.05 / k
        instead of 95 %.
        """
        if not self._run:
            return "not run"
        failing = [place.quantity for place in self._run if place.verdict == "fails"]
        if any(quantity and _within(self.claim, *quantity.interval(self._level)) == "fails" for quantity in failing):
            return "fails"
        return "holds" if all(place.verdict == "holds" for place in self._run) else "undecided"

    @property
    def seeds_to_decide(self) -> int | None:
        """Number of seeds that would decide an undecided claim with a probability of 80 %; None if unknown.

        If the mean of a place is outside the bounds, the claim would fail there; otherwise it would hold everywhere.
        """
        run = self._run
        if self.verdict != "undecided" or any(place.diverged for place in run):
            return None
        quantities = [place.quantity for place in run if place.quantity is not None]
        least, most = self.claim.least, self.claim.most
        failing = [(quantity, least) for quantity in quantities if least is not None and quantity.mean < least]
        failing += [(quantity, most) for quantity in quantities if most is not None and quantity.mean > most]
        if failing:
            counts = [quantity.seeds_to_exclude(bound, level=self._level) for quantity, bound in failing]
            return min((count for count in counts if count is not None), default=None)
        undecided = [place.quantity for place in run if place.verdict == "undecided" and place.quantity is not None]
        power = 0.8 ** (1 / max(1, len(undecided)))  # of each place
        bounds = [bound for bound in (least, most) if bound is not None]
        counts = [quantity.seeds_to_exclude(bound, power) for quantity in undecided for bound in bounds]
        return None if None in counts else max((count for count in counts if count is not None), default=None)

    @property
    def _run(self) -> list[PlaceResult]:
        """The places that were run."""
        return [place for place in self.places if place.verdict != "not run"]

    @property
    def _level(self) -> float:
        """The level of the intervals by which one of the places makes the claim fail (Bonferroni)."""
        return 1 - 0.05 / len(self._run)


def check_claim(claim: Claim, report: Report, cells: Sequence[Cell]) -> ClaimResult:
    """Decide a claim.

    Args:
        claim: of an experiment.
        report: of the experiment, for the default metric and the last rounds.
        cells: of the experiment.
    """
    metric = claim.metric or report.metrics[0]
    pairs = list(_pairs(claim, cells))
    places, reduced = [], False
    for cell, other in pairs:
        quantity = _quantity(claim, metric, report, cell, other)
        reduced |= quantity is not None and (cell.reduced or (other is not None and other.reduced))
        diverged = cell.diverged + (0 if other is None else other.diverged)
        both_ran = bool(cell.runs) and (other is None or bool(other.runs))
        verdict = "undecided" if diverged and both_ran else _verdict(claim, quantity)
        places.append(PlaceResult(_pair_labels(cell, other), quantity, verdict, diverged))
    ran = [cell for pair in pairs for cell in pair if cell is not None and len(cell.runs) > cell.diverged]
    metrics = [metric] if claim.per is None else [metric, claim.per]
    unmeasured = tuple(one for one in metrics if ran and not any(cell.measured(one) for cell in ran))
    return ClaimResult(claim, metric, tuple(_without_shared_labels(places)), reduced, unmeasured)


def _pairs(claim: Claim, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell | None]]:
    """The cells that the claim is about, each with the cell that it is compared with, after equal rounds."""
    subjects = [cell for cell in cells if _matches(cell, claim.where) and _matches(cell, claim.of)]
    baseline = claim.minus or claim.over
    if baseline is not None:
        for cell in subjects:
            for other in cells:
                if other is not cell and _matches(other, baseline) and _alike(cell, other, baseline):
                    yield after_equal_rounds(cell, other)
    elif claim.along is not None:
        yield from _neighbours(claim.along, subjects)
    else:
        for cell in subjects:
            yield cell, None


def _neighbours(axis: str, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Each cell that has a next one on the axis: the next one, and the cell itself, after equal rounds."""
    for index, cell in enumerate(cells):
        for other in cells[index + 1 :]:
            if _alike(cell, other, (axis,)) and other.labels.get(axis) != cell.labels[axis]:
                yield after_equal_rounds(other, cell)
                break


def _matches(cell: Cell, labels: Mapping[str, tuple[str, ...]]) -> bool:
    return all(cell.labels.get(axis) in allowed for axis, allowed in labels.items())


def _alike(cell: Cell, other: Cell, except_axes: Collection[str]) -> bool:
    """Whether two cells agree on the axes that both have, apart from some."""
    return all(
        other.labels[axis] == label
        for axis, label in cell.labels.items()
        if axis in other.labels and axis not in except_axes
    )


def _quantity(claim: Claim, metric: Metric, report: Report, cell: Cell, other: Cell | None) -> Estimate | None:
    """The claim's quantity at a place, seed by seed; None if no seed was run in both cells."""
    values = cell.finals(metric, report.last_rounds, claim.at, claim.per)
    if other is None:
        if not len(values):
            return None
        logarithmic = "y" in report.log
        return geometric(values.to_numpy(), cell.exact) if logarithmic else estimate(values, cell.exact)
    baseline = other.finals(metric, report.last_rounds, claim.at, claim.per)
    if other.exact and len(baseline):  # it depends on no seed, so it is compared with every seed
        baseline = pd.Series(baseline.iloc[0], index=values.index)
    seeds = values.index.intersection(baseline.index)
    if not len(seeds):
        return None
    exact = cell.exact and other.exact
    a, b = values[seeds].to_numpy(), baseline[seeds].to_numpy()
    if claim.over is not None:
        return geometric(a / b, exact)
    with np.errstate(invalid="ignore"):  # infinity less infinity, where no run reached a threshold, is NaN: undecided
        return estimate((a - b).tolist(), exact)


def _verdict(claim: Claim, quantity: Estimate | None) -> Verdict:
    if quantity is None:
        return "not run"
    one_seed = quantity.seeds == 1 and quantity.low != quantity.high
    return "undecided" if one_seed or math.isnan(quantity.mean) else _within(claim, quantity.low, quantity.high)


def _within(claim: Claim, low: float, high: float) -> Verdict:
    """Whether all of an interval is within the claim's bounds, none of it, or a part."""
    least = -math.inf if claim.least is None else claim.least
    most = math.inf if claim.most is None else claim.most
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or low > most else "undecided"


def _pair_labels(cell: Cell, other: Cell | None) -> dict[str, str]:
    labels = {axis: label for axis, label in cell.labels.items() if label}
    if other is None:
        return labels
    return {
        axis: label if other.labels.get(axis, label) == label else f"{label} against {other.labels[axis]}"
        for axis, label in labels.items()
    }


def _without_shared_labels(places: Sequence[PlaceResult]) -> Iterator[PlaceResult]:
    """The places with only those labels in which they differ."""
    first = places[0].labels if places else {}
    shared = {axis for axis in first if len({place.labels.get(axis) for place in places}) == 1}
    for place in places:
        labels = {axis: label for axis, label in place.labels.items() if axis not in shared}
        yield replace(place, labels=labels)
