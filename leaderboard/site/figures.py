"""The figures that only the site has: intervals of claims, printed numbers, roll calls, and where a method ends."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool
from markupsafe import Markup

from rollcall.leaderboard.names import Style
from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.plots.figure import (
    BLUE,
    VERMILION,
    Figure,
    Spec,
    by_line,
    channel,
    figure,
    in_turn,
    layer,
    stretches,
    view,
)
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


def strip(result: ClaimResult) -> Markup:
    """The interval of each place of a claim as a line with its mean, over the region that its bounds allow."""
    known = [(place, place.quantity) for place in result.places if place.quantity is not None][:LANES]
    spans = [quantity.interval(result.level) for _, quantity in known]
    marks = [result.claim.least, result.claim.most, *(place.printed for place, _ in known)]
    marks += [end for span in spans for end in span] + [quantity.mean for _, quantity in known]
    finite = [value for value in marks if value is not None and math.isfinite(value)]
    if not known or not finite:
        return Markup("")
    log = min(finite) > 0 and max(finite) > DECADES * min(finite)
    low, high = (math.log(min(finite)), math.log(max(finite))) if log else (min(finite), max(finite))
    pad = 0.08 * (high - low) or abs(high) or 1.0

    def x(value: float) -> float:
        """Pixels from the left; what lies outside is at the edge."""
        if log:
            value = math.log(value) if value > 0 else -math.inf
        return round(WIDTH * min(1.0, max(0.0, (value - low + pad) / (high - low + 2 * pad))), 1)

    least = x(-math.inf if result.claim.least is None else result.claim.least)
    most = x(math.inf if result.claim.most is None else result.claim.most)
    height = LANE * len(known)
    parts = [f'<rect class="allowed" x="{least}" y="0" width="{round(most - least, 1)}" height="{height}"/>']
    parts += [f'<path class="bound" d="M{end} 0V{height}"/>' for end in (least, most) if 0 < end < WIDTH]
    for lane, ((place, quantity), (start, end)) in enumerate(zip(known, spans, strict=True)):
        y = LANE * lane + LANE // 2
        if not (math.isnan(start) or math.isnan(end) or start == end):
            parts.append(f'<path class="interval{" open" * math.isinf(end - start)}" d="M{x(start)} {y}H{x(end)}"/>')
        if math.isfinite(quantity.mean):
            parts.append(f'<circle cx="{x(quantity.mean)}" cy="{y}" r="3.5"/>')
        if place.printed is not None and math.isfinite(place.printed):
            parts.append(f'<path class="printed" d="m{x(place.printed)} {y - 4} 4 4-4 4-4-4z"/>')
    label = f"Interval and bound of {len(known)} of {len(result.places)} places; the numbers are in the evidence."
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return Markup(f'<svg class="strip" role="img" aria-label="{label}" {size}>{"".join(parts)}</svg>')


def printed_numbers(rows: Sequence[dict[str, Any]], title: str) -> Figure:
    """Printed numbers beside measured means with their 95 % intervals.

    Args:
        rows: with `name`, `measured`, `printed`, and `low` and `high` where there is an interval.
        title: of the x axis.
    """
    y = channel("name", kind="nominal", labelLimit=260) | {"sort": None}
    tips = [{"field": "name", "title": " "}, *({"field": name} for name in ("measured", "low", "high", "printed"))]
    marks = {"measured": (BLUE, "circle"), "printed": (VERMILION, "diamond")}
    layers = [layer("rule", x=channel("low", title), x2={"field": "high"}, y=y, color=BLUE, mark_strokeWidth=2)]
    layers += [
        layer("point", x=channel(name, title), y=y, color=colour, mark_shape=shape, mark_filled=True, mark_size=60,
              mark_opacity=1, tooltip=tips)
        for name, (colour, shape) in marks.items()
    ]  # fmt: skip
    alt = f"{len(rows)} printed numbers (diamonds) beside the measured means and 95 % intervals (points on lines)."
    return figure([view(layers, height=18 * len(rows))], {"long": rows}, alt, 1)


def roll_call(mask: Bool[np.ndarray, "T m"]) -> Figure:
    """A row for each client, from rarely to often available; a bar for the rounds in which it is active."""
    share = mask.mean(axis=0)
    rows = [
        {"row": row, "from": start, "to": end}
        for row, client in enumerate(np.argsort(share, kind="stable"))
        for start, end in stretches(mask[:, client])
    ]
    x = channel("from", "round", domain=[0, len(mask)], nice=False)
    y = channel("row", "client, from rare to frequent", kind="ordinal", labels=False, ticks=False)
    tips = [{"field": "row", "title": "client"}, {"field": "from"}, {"field": "to"}]
    alt = f"{mask.shape[1]} clients, {len(mask)} rounds, each client active in {share.min():.0%} to {share.max():.0%}."
    bars = layer("bar", x=x, x2={"field": "to"}, y=y, color=BLUE, tooltip=tips)
    return figure([view([bars], height=8 * mask.shape[1])], {"long": rows}, alt, 1)


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
    return _lines(rows, styles, channel("x", "lag, in rounds"), channel("value", "autocorrelation"), alt)


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
    tips = [{"field": "x", "title": "probability"}, {"field": "value", "title": "measured limit"}]
    alt = "Limit of the server's model for two clients at 0 and 100, over the probability of the second client."
    dots = layer("point", "measured", x=x, y=y, color=VERMILION, mark_filled=True, mark_size=60, tooltip=tips)
    return _lines(rows, styles, x, y, alt, {"measured": points} if points else {}, [dots] if points else [])


def _lines(
    rows: Sequence[dict[str, Any]],
    styles: dict[str, Style],
    x: Spec,
    y: Spec,
    alt: str,
    more: dict[str, Any] | None = None,
    above: Sequence[Spec] = (),
) -> Figure:
    """Lines with points that show their numbers."""
    tips = [{"field": "line", "title": " "}, *({"field": one["field"], "title": one["title"]} for one in (x, y))]
    layers = [
        layer("line", x=x, y=y, **by_line(styles, "color", "strokeDash")),
        layer("point", x=x, y=y, opacity=0, tooltip=tips, mark_size=120, **by_line(styles, "color")),
    ]
    told = "Points: measured." if above else ""
    return figure([view([*layers, *above], height=200)], {"long": rows} | (more or {}), alt, 1, told)
