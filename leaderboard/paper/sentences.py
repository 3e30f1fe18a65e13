"""Results of claims and intervals as Markdown."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from benchmark.config.metric import Metric
from benchmark.config.report import Claim
from leaderboard.paper.cells import Estimate
from leaderboard.paper.claims import ClaimResult, PlaceResult

RATIO = Metric("ratio")
"""What a claim with `over` is about: a number without a unit."""

MOST_PLACES = 6
"""Places that a claim's item lists; those against it come first."""


def claims_list(results: Sequence[ClaimResult]) -> list[str]:
    """Claims with their verdicts, the quantities behind them and the causes: the lines of a numbered list.

    A cause that several claims share is written once.
    """
    lines: list[str] = []
    first: dict[str, int] = {}
    for number, result in enumerate(results, 1):
        mark = f"**{result.verdict}**{' (reduced)' if result.reduced else ''}"
        tally = _tally(result.places)
        lines.append(f"{number}. {mark}{f' ({tally})' if tally else ''}: {result.claim.says}")
        details = _details(result)
        cause = result.claim.cause
        if cause:
            of = first.setdefault(cause, number)
            details.append(f"cause: {cause}" if of == number else f"cause: see claim {of}")
        lines += [f"   - {detail}" for detail in details]
    return lines


def _details(result: ClaimResult) -> list[str]:
    """The quantities behind a verdict, and what else is to be known of it."""
    claim = result.claim
    unit = RATIO if claim.over else result.metric
    details = []
    run = [place for place in result.places if place.quantity is not None]
    if run:
        quantity = f"{result.metric.name}{' %' if unit.percent else ''}{_comparison(claim)}, {_bounds(claim, unit)}"
        details.append(f"{quantity}: {_places(run, unit)}")
    if result.seeds_to_decide is not None:
        details.append(f"seeds that would decide it: {result.seeds_to_decide:,}")
    if result.unmeasured:
        details.append(f"no run measured {' and '.join(metric.column for metric in result.unmeasured)}")
    diverged = sum(place.diverged for place in result.places)
    if diverged:
        details.append(f"diverged runs, left out of the numbers: {diverged}")
    if claim.printed is not None:
        details.append(f"printed: {unit.text(claim.printed)}")
    return details


def interval(quantity: Estimate, metric: Metric) -> str:
    """A mean and its interval, printed as values of the metric are."""
    width = 0.0 if quantity.wide else (quantity.high - quantity.low) / 2
    mean, low, high = (metric.text(value, width) for value in (quantity.mean, quantity.low, quantity.high))
    if quantity.seeds == 1 and math.isinf(quantity.high):
        return f"{mean} (one seed)"
    return mean if quantity.low == quantity.high or not math.isfinite(quantity.mean) else f"{mean} [{low}, {high}]"


def change(quantity: Estimate, metric: Metric) -> str:
    """A difference and its interval, with signs."""
    width = (quantity.high - quantity.low) / 2

    def text(value: float) -> str:
        return f"{'+' if value >= 0 else '-'}{metric.text(abs(value), width)}"

    if math.isinf(quantity.high):
        return text(quantity.mean)
    return f"{text(quantity.mean)} [{text(quantity.low)}, {text(quantity.high)}]"


def tally_of(verdicts: Iterable[str]) -> str:
    """`2 hold, 1 fails`: verdicts and how often each occurs."""
    plural = {"holds": "hold", "fails": "fail", "agrees": "agree", "differs": "differ"}
    return ", ".join(
        f"{count} {verdict if count == 1 else plural.get(verdict, verdict)}"
        for verdict, count in Counter(verdicts).items()
    )


def _tally(places: Sequence[PlaceResult]) -> str:
    """How many of several places have which verdict, and how many were not run."""
    run = [place.verdict for place in places if place.verdict != "not run"]
    parts = []
    if len(run) > 1:
        parts.append(", ".join(f"{verdict} at {count}" for verdict, count in Counter(run).items()))
    if run and len(run) < len(places):
        parts.append(f"{len(places) - len(run)} of {len(places)} places not run")
    return "; ".join(parts)


def _comparison(claim: Claim) -> str:
    if claim.minus is not None:
        return ", difference"
    if claim.over is not None:
        return ", ratio"
    return "" if claim.along is None else ", step"


def _bounds(claim: Claim, unit: Metric) -> str:
    bounds = [f"at least {unit.text(claim.least)}"] if claim.least is not None else []
    bounds += [f"at most {unit.text(claim.most)}"] if claim.most is not None else []
    return " and ".join(bounds)


def _places(places: Sequence[PlaceResult], unit: Metric) -> str:
    """The quantity at each place, those that fail first."""
    worst_first = sorted(places, key=lambda place: ("fails", "undecided", "holds").index(place.verdict))
    texts = []
    for place in worst_first[:MOST_PLACES]:
        where = ", ".join(place.labels.values())
        assert place.quantity is not None
        texts.append(f"{f'{where}: ' if where else ''}{interval(place.quantity, unit)}")
    return "; ".join([*texts, *(["..."] if len(places) > MOST_PLACES else [])])
