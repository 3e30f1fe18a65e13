"""The figures that only the site has: intervals of claims, and statistics of participation."""

import math
from typing import Any

import numpy as np
from jaxtyping import Bool

from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.paper.sentences import unit_of, words
from rollcall.leaderboard.plots.figure import Figure, channel, figure, in_turn, layer, lines, view
from rollcall.participation import Participation
from rollcall.participation.summary import correlations

WIDTH, LANE, LANES = 200, 12, 8
"""Size of a strip in pixels, and the most places that it shows."""

DECADES = 100
"""Positive numbers of a strip whose largest is this multiple of the smallest have a logarithmic axis."""

LAGS = 20
"""Lags of the autocorrelation."""


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


def autocorrelation(mask: Bool[np.ndarray, "T m"], model: Participation) -> Figure:
    """The mean autocorrelation of a client over lags, and the mean of what chains with the stated eigenvalues have."""
    centred = mask - mask.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    moving = centred[:, variance > 0]
    rows: list[dict[str, Any]] = []
    stated = None if model.correlation is None else model.correlation[variance > 0]
    for lag in range(LAGS + 1) if moving.size else ():
        measured = (moving[lag:] * moving[: len(moving) - lag]).mean(axis=0) / variance[variance > 0]
        rows.append({"line": "measured", "x": lag, "value": float(measured.mean())})
        rows += [] if stated is None else [{"line": "stated", "x": lag, "value": float(np.nanmean(stated**lag))}]
    styles = dict(zip(("measured", "stated") if stated is not None else ("measured",), in_turn(2), strict=False))
    alt = f"Mean autocorrelation of a client's participation over lags of 0 to {LAGS} rounds."
    return lines(rows, styles, channel("x", "lag, in rounds"), channel("value", "autocorrelation"), alt)


def coupling(mask: Bool[np.ndarray, "T m"]) -> Figure:
    """The correlation of each pair of clients in a round."""
    _, between = correlations(mask)
    order = np.argsort(mask.mean(axis=0), kind="stable")
    table = between[np.ix_(order, order)]
    pairs = [(i, j) for i, j in np.ndindex(table.shape) if i != j and math.isfinite(table[i, j])]
    rows = [{"client": i, "other": j, "correlation": round(float(table[i, j]), 3)} for i, j in pairs]
    x, y = (
        channel(name, title, kind="ordinal", labels=False, ticks=False)
        for name, title in (("client", "client, from rare to frequent"), ("other", "other client"))
    )
    colour = {"field": "correlation", "type": "quantitative", "scale": {"scheme": "blueorange", "domain": [-1, 1]}}
    tips = [{"field": name} for name in ("client", "other", "correlation")]
    alt = "Correlation of the participation of each pair of clients in a round, from -1 to 1."
    return figure([view([layer("rect", x=x, y=y, color=colour, tooltip=tips)], height=220)], {"long": rows}, alt, 1)
