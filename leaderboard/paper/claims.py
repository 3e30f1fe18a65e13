"""Whether what a paper claims holds in the results."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from benchmark.config.report import Claim, Report
from leaderboard.paper.cells import Cell, Estimate, estimate

Verdict = Literal["holds", "fails", "undecided", "not run"]


@dataclass(frozen=True)
class Finding:
    """A claim at one place.

    Attributes:
        labels: of the place, without what all places of the claim share.
        quantity: as the claim defines it; None where a cell was not run.
        verdict: whether it lies within the claim's bounds: the whole interval does, none of it does, or a part.
    """

    labels: dict[str, str]
    quantity: Estimate | None
    verdict: Verdict


@dataclass(frozen=True)
class Ruling:
    """A claim, and what was found.

    Attributes:
        claim: of the paper.
        findings: at all its places.
        reduced: whether a run was shorter, or the seeds were fewer, than the experiment's file has them.
    """

    claim: Claim
    findings: tuple[Finding, ...]
    reduced: bool

    @property
    def verdict(self) -> Verdict:
        """A claim holds where all of its places that were run say so, and fails where one does."""
        verdicts = {finding.verdict for finding in self.findings} - {"not run"}
        if not verdicts:
            return "not run"
        if "fails" in verdicts:
            return "fails"
        return "holds" if verdicts == {"holds"} else "undecided"


def rule(claim: Claim, report: Report, cells: Sequence[Cell]) -> Ruling:
    """Decide a claim.

    Args:
        claim: one of an experiment's.
        report: of the experiment, for the metric and the last rounds.
        cells: of the experiment.
    """
    metric = claim.metric or next(iter(report.metrics))
    findings, reduced = [], False
    for cell, other in _pairs(claim, cells):
        quantity = _quantity(claim, metric, report, cell, other)
        reduced |= quantity is not None and any(one.reduced for one in (cell, other) if one is not None)
        findings.append(Finding(_where(cell, other), quantity, _verdict(claim, quantity)))
    return Ruling(claim, tuple(_told_apart(findings)), reduced)


def _pairs(claim: Claim, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell | None]]:
    spoken = [cell for cell in cells if _matches(cell, claim.where)]
    mine = [cell for cell in spoken if _matches(cell, claim.of)]
    against = claim.minus or claim.over
    if against is not None:
        for cell in mine:
            for other in cells:
                if other is not cell and _matches(other, against) and _alike(cell, other, against):
                    yield cell, other
    elif claim.along is not None:
        for index, cell in enumerate(mine):
            later = (other for other in mine[index + 1 :] if _alike(cell, other, {claim.along: ()}))
            follower = next(
                (other for other in later if other.labels.get(claim.along) != cell.labels[claim.along]), None
            )
            if follower is not None:
                yield follower, cell
    else:
        for cell in mine:
            yield cell, None


def _matches(cell: Cell, labels: dict[str, tuple[str, ...]]) -> bool:
    return all(cell.labels.get(axis) in meant for axis, meant in labels.items())


def _alike(cell: Cell, other: Cell, apart: dict[str, tuple[str, ...]]) -> bool:
    """Whether two cells agree on the axes that both have, those aside in which they are to differ."""
    return all(
        other.labels[axis] == label for axis, label in cell.labels.items() if axis in other.labels and axis not in apart
    )


def _quantity(claim: Claim, metric: str, report: Report, cell: Cell, other: Cell | None) -> Estimate | None:
    mine = cell.ends(metric, report.last_rounds, claim.at)
    if other is None:
        if len(mine) and "y" in report.log:  # over decades
            return _geometric(mine.to_numpy(), _exact(cell))
        return estimate(mine, _exact(cell)) if len(mine) else None
    theirs = other.ends(metric, report.last_rounds, claim.at)
    if _exact(other) and len(theirs):  # what depends on no seed is beside every seed
        theirs = pd.Series(theirs.iloc[0], index=mine.index)
    both = mine.index.intersection(theirs.index)
    if not len(both):
        return None
    exact = _exact(cell) and _exact(other)
    a, b = mine[both].to_numpy(), theirs[both].to_numpy()
    if claim.over is None:
        with np.errstate(invalid="ignore"):  # where neither got to a value: no number, which decides nothing
            return estimate((a - b).tolist(), exact)
    return _geometric(a / b, exact)  # twice and half come to one


def _geometric(values: np.ndarray, exact: bool) -> Estimate:
    """The interval of a quantity above 0 taken in its logarithm; of one that is not, in the quantity itself."""
    if not (values > 0).all():
        return estimate(values.tolist(), exact)
    logs = estimate(np.log(values).tolist(), exact)
    return Estimate(math.exp(logs.mean), logs.sd, _exp(logs.low), _exp(logs.high), logs.seeds)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _exact(cell: Cell) -> bool:
    return any("analysis" in run.settings and cell.seeds == 1 for run in cell.runs.values())


def _verdict(claim: Claim, quantity: Estimate | None) -> Verdict:
    if quantity is None:
        return "not run"
    least = -math.inf if claim.least is None else claim.least
    most = math.inf if claim.most is None else claim.most
    if math.isnan(quantity.mean):
        return "undecided"
    if least <= quantity.low and quantity.high <= most:
        return "holds"
    return "fails" if quantity.high < least or quantity.low > most else "undecided"


def _where(cell: Cell, other: Cell | None) -> dict[str, str]:
    labels = {axis: label for axis, label in cell.labels.items() if label}
    if other is not None:
        labels |= {
            axis: f"{label} against {other.labels[axis]}"
            for axis, label in labels.items()
            if axis in other.labels and other.labels[axis] != label
        }
    return labels


def _told_apart(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Findings with those labels alone in which they differ."""
    shared = {
        axis
        for axis in (findings[0].labels if findings else ())
        if len({finding.labels.get(axis) for finding in findings}) == 1
    }
    for finding in findings:
        labels = {axis: label for axis, label in finding.labels.items() if axis not in shared}
        yield Finding(labels, finding.quantity, finding.verdict)
