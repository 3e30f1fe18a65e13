"""Results of claims and intervals as text and as JSON."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.paper.claims import UNDECIDED, VERDICTS, ClaimResult, PlaceResult, Told, Verdict
from rollcall.leaderboard.paper.experiment import Cause
from rollcall.leaderboard.paper.quantities import FEWEST, Estimate, Quantity
from rollcall.leaderboard.render import finite

RATIO = Metric("ratio")
"""The quantity of a claim with `over`: a number without a unit."""

SEARCHED = "rates searched; not in the interval"
"""What a mark says beside an interval: it compares settings that a search found, and does not contain the search."""

MARK = " ‡"
"""Beside an interval of a difference of searched rates; see `SEARCHED`."""

MOST_PLACES = 6
"""Places that a claim's details list; those against it come first."""


def claims_list(results: Sequence[ClaimResult], why: bool = False) -> list[str]:
    """Lines of a numbered list: verdict, statement, printed and measured number.

    With `why` also the quantities behind each verdict and the causes; a shared cause is written once.
    """
    lines: list[str] = []
    first: dict[Cause, int] = {}
    for number, result in enumerate(results, 1):
        claim, cause = result.claim, result.claim.cause
        reworded = "reworded after a result" if claim.since else ""
        origin = ", ".join(filter(None, (claim.statement or claim.tag, claim.section, reworded)))  # `PBC-30, VII-B`
        heads = ("measured ", "printed ") if len(result.places) == 1 else ("", "")
        texts = [f"{head}{text}" for head, text in zip(heads, numbers(result), strict=True) if text]
        told = f": {', '.join(texts)}" if texts else ""
        lines.append(f"{number}. **{result.word}**: {claim.says} ({origin}){told}")
        if not why:
            continue
        details = [*_details(result)]
        if cause is not None:
            of = first.setdefault(cause, number)
            shown = [f"shown ({cause.kind}): {cause.shown} `{cause.command}`"] if cause.shown else []
            supposed = [f"supposed ({cause.kind}): {cause.supposed}"] if cause.supposed else []
            details += [*shown, *supposed] if of == number else [f"cause: see claim {of}"]
        lines += [f"   - {detail}" for detail in details]
    return lines


def claims_json(told: Sequence[Told]) -> list[dict[str, Any]]:
    """One entry for each place of each claim; a value that is not known or not finite is null."""
    entries = []
    for of, place in [(one, place) for one in told for place in one.result.places]:
        result, claim = of.result, of.result.claim
        low, high = place.quantity.interval(result.level) if place.quantity else (math.nan, math.nan)
        of_claim = {"claim": of.number, "variant": of.variant or None, "statement": claim.statement}
        of_claim |= {key: getattr(claim, key) for key in ("says", "section", "tag")}
        of_place = {
            "reading": place.reading or None,
            "place": place.labels,
            "printed": finite(place.printed),
            "measured": finite(place.quantity.mean if place.quantity else None),
            "interval": [finite(low), finite(high)] if any(map(math.isfinite, (low, high))) else None,
            "level": result.level,
            "seeds": place.seeds,
            "rounds": place.reached[0],
            "planned": place.reached[1],
            "verdict": place.verdict,
            "size": place.size,
        }
        reasons = {"erratum": claim.erratum or None, "cause": claim.cause.model_dump() if claim.cause else None}
        entries.append(of_claim | of_place | {"claim_verdict": result.verdict} | reasons)
    return entries


def numbers(result: ClaimResult) -> tuple[str, str]:
    """The measured and the printed number of a claim about one place; of several, the verdicts of the places.

    Of a claim with several readings, the verdicts of the readings.
    """
    if len(result.readings) > 1:
        return f"{len(result.readings)} readings: {tally_of(one.verdict for one in result.readings.values())}", ""
    if len(result.places) != 1:
        verdicts = [place.verdict for place in result.places]
        return tally_of(verdicts) if len({*verdicts}) > 1 else "", ""
    (place,) = result.places
    measured = ""
    if place.quantity is not None:
        measured = f"{measured_text(result, place.quantity)}{MARK * place.searched}"
    size = "" if place.size == "not judged" else f" ({place.size})"
    return measured, "" if place.printed is None else f"{unit_of(result).text(place.printed)}{size}"


def measured_text(result: ClaimResult, quantity: Quantity) -> str:
    """The quantity of a place with its interval and its unit."""
    return f"{interval(quantity, unit_of(result), result.level, bounds_of(result))}{words(result)}"


def bounds_of(result: ClaimResult) -> list[float]:
    """The values on whose sides an interval decides: the claim's bounds, and those a margin away from a single one."""
    claim = result.claim
    bounds = [bound for bound in (claim.least, claim.most) if bound is not None]
    margin = claim.margin if claim.margin and len(bounds) == 1 else 0.0
    return [*bounds, *([bounds[0] - margin, bounds[0] + margin] if margin else [])]


def unit_of(result: ClaimResult) -> Metric:
    """The metric as whose values the claim's quantity is printed."""
    return RATIO if result.claim.over is not None or result.claim.slope is not None else result.metric


def words(result: ClaimResult) -> str:
    """The unit after a claim's number: ` %`, ` points` (percentage points) of a difference, or nothing."""
    is_difference = result.claim.minus is not None or result.claim.along is not None
    return (" points" if is_difference else " %") if unit_of(result).percent else ""


def _details(result: ClaimResult) -> Iterator[str]:
    """The quantities behind a verdict, the reasons why it is open, and the history of its wording."""
    claim = result.claim
    if result.verdict == "erratum":
        yield f"erratum; what remains true: {claim.erratum}"
    yield from _readings(result) if any(result.readings) else _evidence(result)
    if claim.since:
        yield f"reworded on {claim.since}, after a result had been seen; before: {claim.before}"


def _evidence(result: ClaimResult) -> Iterator[str]:
    claim, unit, places = result.claim, unit_of(result), result.places
    known = [place for place in places if place.quantity is not None]
    if known:
        of_two = {", difference": claim.minus, ", ratio": claim.over, ", step": claim.along}
        relation = next((text for text, other in of_two.items() if other is not None), "")
        relation += f", exponent over {claim.slope}" if claim.slope is not None else ""
        geometric = any(isinstance(place.quantity, Estimate) and place.quantity.logarithmic for place in known)
        relation += ", geometric mean" if geometric else ""
        bounds = {"at least": claim.least, "at most": claim.most}
        within = " and ".join(f"{text} {unit.stated(one)}" for text, one in bounds.items() if one is not None)
        own = "final value" if claim.over_round == "final" else f"value after round {claim.over_round}"
        part = "" if claim.over_round is None else f", part of its own {own}"
        over = "" if claim.quantity == "final" else f", {claim.quantity}"
        in_unit = f" in{words(result).replace(' points', ' percentage points')}" if unit.percent else ""
        quantity = f"{result.metric.name}{over}{part}{relation}{in_unit}, {within}"
        yield f"{quantity}: {_places(known, result)}"
    level, strict = (f"intervals of {100 * one:.3g} %" for one in (result.level, result.strict))
    by_chance = result.verdict in UNDECIDED and any(place.verdict == "contradicted" for place in places)
    diverged = sum(place.diverged for place in places)
    margin = unit.stated(claim.margin or 0.0) + (" points" if unit.percent else "")
    reasons = {
        f"{level}, as the verdicts were looked at more than once": result.level > 0.95,
        f"no place contradicts it with {strict}, which so many comparisons need": by_chance,
        "the data miss the printed number that identifies the paper's": result.misses,
        SEARCHED: any(place.searched for place in known),
        f"no difference that matters: within {margin} of the bound": claim.margin is not None,
        f"no run measured {' and '.join(metric.column for metric in result.unmeasured)}": result.unmeasured,
        f"diverged runs, whose cells have no mean: {diverged}": diverged,
    }
    yield from (reason for reason, is_one in reasons.items() if is_one)
    yield from (f"too short: {short}" for short in sorted({place.short for place in places} - {""}))
    shorter = {place.reached for place in known if place.verdict != "too short" and place.reached[0] < place.reached[1]}
    yield from (f"judged after {rounds:,} of {planned:,} rounds" for rounds, planned in sorted(shorter))


def _readings(result: ClaimResult) -> Iterator[str]:
    """A line for each reading: what is read, the verdict under it, and its numbers."""
    for name, one in result.readings.items():
        reading = result.claim.readings.get(name)
        kind = "the experiment as it is" if reading is None else reading.says
        kind += "; other rates that the search cannot tell from the best" if reading and reading.rates else ""
        kind += "; fitted to a printed number, so that it decides nothing" if reading and reading.fitted else ""
        known = [place for place in one.places if place.quantity is not None]
        told = f": {_places(known, one)}" if known else ""
        other = "; its data miss the printed number that identifies the paper's" if name in result.misses else ""
        yield f"reading {name or 'of the table'} ({kind}): {one.verdict}{told}{other}"


def _places(places: Sequence[PlaceResult], result: ClaimResult) -> str:
    """The quantity at each place, those against the claim first, and the printed number where there is one."""
    order: Sequence[Verdict] = ("contradicted", "undecided", "no difference that matters", "too short", "holds")
    against_first = sorted(places, key=lambda place: order.index(place.verdict) if place.verdict in order else 0)
    texts = []
    unit, bounds = unit_of(result), bounds_of(result)
    for place in against_first[:MOST_PLACES]:
        where = ", ".join(place.labels.values())
        assert place.quantity is not None
        printed = f" (printed {unit.text(place.printed)}: {place.size})" if place.printed is not None else ""
        texts.append(f"{f'{where}: ' if where else ''}{interval(place.quantity, unit, result.level, bounds)}{printed}")
    return "; ".join([*texts, *(["..."] if len(places) > MOST_PLACES else [])])


def interval(quantity: Quantity, metric: Metric, level: float = 0.95, bounds: Iterable[float] = ()) -> str:
    """A mean and its interval, printed as values of the metric are.

    With more decimals where an end would else read as 0, or as one of the bounds, and is not.
    """
    low, high = quantity.interval(level)
    half = 0.0 if isinstance(quantity, Estimate) and quantity.wide else _half(low, high)
    more = _more((low, high), (0.0, *bounds), half, metric)
    mean = metric.text(quantity.mean, half, more)
    if math.isinf(low) and math.isinf(high):
        return f"{mean} ({counted(quantity.seeds, 'seed')})" if quantity.seeds < FEWEST else mean
    if math.isclose(low, high, rel_tol=1e-9) or math.isnan(low):
        return mean
    return _span(quantity.mean, low, high, lambda value: metric.text(value, half, more))


def change(quantity: Quantity, metric: Metric) -> str:
    """A difference and its interval, with signs; with more decimals where an end would else read as 0 and is not."""
    low, high = quantity.interval()
    half = _half(low, high)
    more = _more((low, high), (0.0,), half, metric)
    return _span(quantity.mean, low, high, lambda value: signed(value, metric.text(abs(value), half, more)))


def signed(value: float, size: str) -> str:
    """The text of a size with the sign of a value; `+` if it reads as 0."""
    return f"{'-' if value < 0 and size.strip('0.') else '+'}{size}"


MOST_MORE = 3
"""Decimals that are added at most; an end that is still nearer to a bound reads as the bound."""


def _more(ends: Iterable[float], bounds: Iterable[float], half: float, metric: Metric) -> int:
    """The decimals to add to those of the metric until no end reads as a bound that it is not; 0 if none are enough."""
    near = [
        (end, bound)
        for end, bound in product(filter(math.isfinite, ends), bounds)
        if not math.isclose(end, bound, rel_tol=1e-9, abs_tol=1e-12)
    ]
    apart = (more for more in range(MOST_MORE + 1) if all(_differ(*pair, half, more, metric) for pair in near))
    return next(apart, 0)


def _differ(end: float, bound: float, half: float, more: int, metric: Metric) -> bool:
    return metric.text(end, half, more) != metric.text(bound, half, more)


def _half(low: float, high: float) -> float:
    """Half the width of an interval; 0 without one end, or if seeds are equal up to rounding."""
    return (high - low) / 2 if math.isfinite(high - low) and not math.isclose(low, high, rel_tol=1e-9) else 0.0


def _span(mean: float, low: float, high: float, text: Callable[[float], str]) -> str:
    """A mean and its interval; of an interval without one end, as of rounds that were not reached, the other."""
    if math.isfinite(high - low):
        return f"{text(mean)} [{text(low)}, {text(high)}]"
    ends = [f"{word} {text(end)}" for word, end in (("above", low), ("below", high)) if math.isfinite(end)]
    return ", ".join([*([text(mean)] if math.isfinite(mean) else []), *ends])


def tally_of(verdicts: Iterable[Verdict]) -> str:
    """`2 hold, 1 contradicted`: verdicts and how often each occurs."""
    found = Counter(verdicts)
    words = {verdict: "hold" if verdict == "holds" and found[verdict] > 1 else verdict for verdict in VERDICTS}
    return ", ".join(f"{found[verdict]} {word}" for verdict, word in words.items() if found[verdict])
