"""Whether the claims of a paper hold in the results."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from benchmark.config.metric import Metric
from benchmark.config.report import Claim, Report
from leaderboard.paper.cells import Cell, Estimate, estimate

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
    """

    claim: Claim
    metric: Metric
    places: tuple[PlaceResult, ...]
    reduced: bool

    @property
    def verdict(self) -> Verdict:
        """A claim fails if it fails at one place, and holds if it holds at all places that were run."""
        verdicts = {place.verdict for place in self.places} - {"not run"}
        if not verdicts:
            return "not run"
        if "fails" in verdicts:
            return "fails"
        return "holds" if verdicts == {"holds"} else "undecided"

    @property
    def seeds_to_decide(self) -> int | None:
        """Number of seeds that would decide an undecided claim with a probability of 80 %; None if unknown."""
        bounds = [bound for bound in (self.claim.least, self.claim.most) if bound is not None]
        quantities = [place.quantity for place in self.places if place.verdict == "undecided"]
        counts = [quantity.seeds_to_exclude(bound) for quantity in quantities if quantity for bound in bounds]
        if self.verdict != "undecided" or None in counts:
            return None
        return max((count for count in counts if count is not None), default=None)


def check_claim(claim: Claim, report: Report, cells: Sequence[Cell]) -> ClaimResult:
    """Decide a claim.

    Args:
        claim: of an experiment.
        report: of the experiment, for the default metric and the last rounds.
        cells: of the experiment.
    """
    metric = claim.metric or report.metrics[0]
    places, reduced = [], False
    for cell, other in _pairs(claim, cells):
        quantity = _quantity(claim, metric, report, cell, other)
        reduced |= quantity is not None and (cell.reduced or (other is not None and other.reduced))
        diverged = cell.diverged + (0 if other is None else other.diverged)
        verdict = "undecided" if diverged else _verdict(claim, quantity)
        places.append(PlaceResult(_pair_labels(cell, other), quantity, verdict, diverged))
    return ClaimResult(claim, metric, tuple(_without_shared_labels(places)), reduced)


def _pairs(claim: Claim, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell | None]]:
    """The cells that the claim is about, each with the cell that it is compared with."""
    subjects = [cell for cell in cells if _matches(cell, claim.where) and _matches(cell, claim.of)]
    baseline = claim.minus or claim.over
    if baseline is not None:
        for cell in subjects:
            for other in cells:
                if other is not cell and _matches(other, baseline) and _alike(cell, other, baseline):
                    yield cell, other
    elif claim.along is not None:
        yield from _neighbours(claim.along, subjects)
    else:
        for cell in subjects:
            yield cell, None


def _neighbours(axis: str, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Each cell that has a next one on the axis: the next one, and the cell itself."""
    for index, cell in enumerate(cells):
        for other in cells[index + 1 :]:
            if _alike(cell, other, (axis,)) and other.labels.get(axis) != cell.labels[axis]:
                yield other, cell
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
        return _geometric(values.to_numpy(), _exact(cell)) if logarithmic else estimate(values, _exact(cell))
    baseline = other.finals(metric, report.last_rounds, claim.at, claim.per)
    if _exact(other) and len(baseline):  # it depends on no seed, so it is compared with every seed
        baseline = pd.Series(baseline.iloc[0], index=values.index)
    seeds = values.index.intersection(baseline.index)
    if not len(seeds):
        return None
    exact = _exact(cell) and _exact(other)
    a, b = values[seeds].to_numpy(), baseline[seeds].to_numpy()
    if claim.over is not None:
        return _geometric(a / b, exact)
    with np.errstate(invalid="ignore"):  # infinity less infinity, where no run reached a threshold, is NaN: undecided
        return estimate((a - b).tolist(), exact)


def _geometric(values: Float[np.ndarray, "seeds"], exact: bool) -> Estimate:
    """Mean and interval of the logarithms; of the values themselves if one is not above 0."""
    if not (values > 0).all():
        return estimate(values.tolist(), exact)
    logs = estimate(np.log(values).tolist(), exact)
    return Estimate(math.exp(logs.mean), logs.sd, _exp(logs.low), _exp(logs.high), logs.seeds, logarithmic=True)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _exact(cell: Cell) -> bool:
    """Whether it is an analysis that depends on no seed."""
    return any("analysis" in run.settings and cell.seeds == 1 for run in cell.runs.values())


def _verdict(claim: Claim, quantity: Estimate | None) -> Verdict:
    if quantity is None:
        return "not run"
    if math.isnan(quantity.mean):
        return "undecided"
    least = -math.inf if claim.least is None else claim.least
    most = math.inf if claim.most is None else claim.most
    if least <= quantity.low and quantity.high <= most:
        return "holds"
    return "fails" if quantity.high < least or quantity.low > most else "undecided"


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
