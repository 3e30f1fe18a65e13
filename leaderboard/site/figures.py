"""The small picture of a claim's intervals that stands beside the claim."""

import math
from typing import Any

from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.paper.sentences import unit_of, words

WIDTH, LANE, LANES = 200, 12, 8
"""Size of a strip in pixels, and the most places that it shows."""

DECADES = 100
"""Positive numbers of a strip whose largest is this multiple of the smallest have a logarithmic axis."""


def strip(result: ClaimResult) -> dict[str, Any]:
    """What the picture of a claim shows, in pixels: the allowed region, and the interval of each place with its mean.

    `ticks` are the bounds and 0 with their texts, `unit` is that of the axis. Empty if no place has a number.
    """
    known = [(place, place.quantity) for place in result.places if place.quantity is not None][:LANES]
    spans = [quantity.interval(result.level) for _, quantity in known]
    bounds = [bound for bound in (result.claim.least, result.claim.most) if bound is not None]
    marks = [*bounds, *(place.printed for place, _ in known if place.printed is not None)]
    marks += [end for span in spans for end in span] + [quantity.mean for _, quantity in known]
    finite = [value for value in marks if math.isfinite(value)]
    if not known or not finite:
        return {}
    log = min(finite) > 0 and max(finite) > DECADES * min(finite)
    low, high = (math.log(min(finite)), math.log(max(finite))) if log else (min(finite), max(finite))
    pad = 0.08 * (high - low) or abs(high) or 1.0

    def x(value: float | None) -> float | None:
        """Pixels from the left; what lies outside is at the edge; None for what is not known."""
        if value is None or math.isnan(value):
            return None
        if log:
            value = math.log(value) if value > 0 else -math.inf
        return round(WIDTH * min(1.0, max(0.0, (value - low + pad) / (high - low + 2 * pad))), 1)

    def shown(value: float | None) -> float | None:
        return x(value) if value is not None and math.isfinite(value) else None

    lanes = [
        {"start": x(start), "end": x(end), "open": math.isinf(end - start), "whole": start != end}
        | {"mean": shown(quantity.mean), "printed": shown(place.printed)}
        for (place, quantity), (start, end) in zip(known, spans, strict=True)
    ]
    far = all(abs(bound) > (high - low) / 4 for bound in bounds)  # so that the texts do not overlap
    ticks = [*dict.fromkeys(bounds), *([0.0] if far and not log and low - pad < 0 < high + pad else [])]
    most = x(result.claim.most)
    return {
        "least": x(result.claim.least) or 0.0,
        "most": WIDTH if most is None else most,
        "lanes": lanes,
        "width": WIDTH,
        "lane": LANE,
        "ticks": [(x(value), unit_of(result).text(value)) for value in ticks],
        "unit": words(result).strip(),
    }
