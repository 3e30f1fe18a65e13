"""The figures that only the site has: intervals of claims, statistics of participation, and where a method ends."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.plots.figure import VERMILION, Figure, channel, figure, in_turn, layer, lines, view
from rollcall.participation import Participation
from rollcall.participation.summary import correlations

WIDTH, LANE, LANES = 200, 12, 8
"""Size of a strip in pixels, and the most places that it shows."""

DECADES = 100
"""Positive numbers of a strip whose largest is this multiple of the smallest have a logarithmic axis."""

LAGS = 20
"""Lags of the autocorrelation."""

TARGETS, KNOWN = (0.0, 100.0), 0.5
"""The two clients of the bias picture ([PBC] Fig. 2): where their losses are least, and the first one's probability."""


def strip(result: ClaimResult) -> dict[str, Any]:
    """What the picture of a claim shows, in pixels: the allowed region, and the interval of each place with its mean.

    Empty if no place has a number.
    """
    known = [(place, place.quantity) for place in result.places if place.quantity is not None][:LANES]
    spans = [quantity.interval(result.level) for _, quantity in known]
    marks = [result.claim.least, result.claim.most, *(place.printed for place, _ in known)]
    marks += [end for span in spans for end in span] + [quantity.mean for _, quantity in known]
    finite = [value for value in marks if value is not None and math.isfinite(value)]
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
    bounds = {"least": x(result.claim.least) or 0.0, "most": WIDTH if (most := x(result.claim.most)) is None else most}
    return bounds | {"lanes": lanes, "width": WIDTH, "lane": LANE}


def autocorrelation(mask: Bool[np.ndarray, "T m"], model: Participation) -> Figure:
    """The mean autocorrelation of a client over lags, and what a chain with the stated eigenvalue has."""
    centred = mask - mask.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    moving = centred[:, variance > 0]
    rows: list[dict[str, Any]] = []
    stated = None if model.correlation is None else float(np.nanmean(model.correlation))
    for lag in range(LAGS + 1) if moving.size else ():
        measured = (moving[lag:] * moving[: len(moving) - lag]).mean(axis=0) / variance[variance > 0]
        rows.append({"line": "measured", "x": lag, "value": float(measured.mean())})
        rows += [] if stated is None else [{"line": "stated", "x": lag, "value": stated**lag}]
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


def bias(limit: str, measured: Sequence[tuple[float, float]]) -> Figure:
    """Where a method ends on two clients, over the probability of the second ([PBC] Fig. 2).

    Args:
        limit: that it declares; the line of FedAvg is shown for comparison.
        measured: probability of the second client, and the bias that runs of the method had.
    """
    p = np.linspace(0.02, 1, 50)
    both = KNOWN * p / 2
    second = {  # the weight of the second client in the limit
        "optimum": np.full(len(p), 0.5),
        "shares": (p * (1 - KNOWN) + both) / (p * (1 - KNOWN) + KNOWN * (1 - p) + 2 * both),
        "probabilities": p / (p + KNOWN),
    }
    names = {"optimum": "the optimum", "shares": "FedAvg", "probabilities": "weighted by p"}
    own = {"optimum on average": "optimum"}.get(limit, limit)
    shown = [name for name in second if name in ("optimum", "shares", own)]
    styles = dict(zip((names[name] for name in shown), in_turn(3, [VERMILION]), strict=False))
    rows = [
        {"line": names[name], "x": float(one), "value": TARGETS[1] * float(weight)}
        for name in shown
        for one, weight in zip(p, second[name], strict=True)
    ]
    x = channel("x", f"probability of the second client; the first has {KNOWN}", domain=[0, 1])
    y = channel("value", "limit of x", domain=list(TARGETS))
    points = [{"x": one, "value": value + TARGETS[1] / 2} for one, value in measured]
    alt = "Limit of the server's model for two clients at 0 and 100, over the probability of the second client."
    return lines(rows, styles, x, y, alt, points=points, told="Points: measured." if points else "")
