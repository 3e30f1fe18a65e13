"""The figure of methods over many conditions: a critical-difference diagram and performance profiles."""

from typing import Any

import numpy as np

from rollcall.leaderboard import statistics
from rollcall.leaderboard.comparison import Overall
from rollcall.leaderboard.names import method_name, style
from rollcall.leaderboard.plots.figure import Figure, Spec, channel, curve, figure, layer, view

POINTS = 61
"""Thresholds of a profile."""


def overall_figure(over: Overall) -> Figure:
    """Mean ranks, bars over methods that are not told apart; and performance profiles where values may be pooled."""
    metric, names = over.blocks[0][1], [method_name(method) for method in over.ranks]
    diagram, data = _diagram(over, names)
    views, rows = [diagram], []
    scores = np.concatenate(over.tasks(*over.ranks)) if over.one_scale else np.empty(0)
    ends = scores[np.isfinite(scores)]
    if len(ends):
        styles = {name: style(method, over.ranks) for method, name in zip(over.ranks, names, strict=True)}
        thresholds = np.linspace(ends.min(), ends.max(), POINTS)
        sign = metric.scale * (1 if metric.direction == "max" else -1)
        for method, name in zip(over.ranks, names, strict=True):
            profile = statistics.interval(statistics.profile(thresholds), over.tasks(method))
            shares = zip(thresholds, *np.clip(profile, 0, 1), strict=True)
            rows += [
                {"plot": 1, "line": name, "x": sign * at, "value": value, "low": low, "high": high}
                for at, value, low, high in shares
            ]
        x, y = channel("x", f"{metric.head}: τ"), channel("value", "share of runs better than τ", domain=[0, 1])
        tips = [channel("line", "method", kind="nominal"), channel("x", "τ"), channel("value", "share")]
        views.append(view(curve(styles, 1, x, y, tips, step=True), "Performance profile", width=420))
    alt = f"Methods over {len(over.blocks)} conditions by {metric.title}. Mean ranks: "
    alt += ", ".join(f"{name} {rank:.2f}" for name, rank in zip(names, over.ranks.values(), strict=True))
    sets = "; ".join(", ".join(names[place] for place in one) for one in over.alike)
    caption = "Bars join methods that are not told apart at 5 %."
    caption += " Bands: 95 %, Student's t over seeds (jackknife)." if rows else ""
    return figure(views, data | {"long": rows}, f"{alt}. Not told apart: {sets}.", columns=1, caption=caption)


def _diagram(over: Overall, names: list[str]) -> tuple[Spec, dict[str, list[Spec]]]:
    """The critical-difference diagram of Demsar (2006): names hang from an axis of ranks, the best on the left."""
    ranks, width = list(over.ranks.values()), over.test[1]
    low, high = float(np.floor(ranks[0])), float(np.ceil(ranks[-1]))
    bars: list[Spec] = [
        {"rank": ranks[one[0]] - 0.04, "end": ranks[one[-1]] + 0.04, "level": -0.4 * (number + 1)}
        for number, one in enumerate(one for one in over.alike if len(one) > 1)
    ]
    half, top = (len(ranks) + 1) // 2, -0.4 * len(bars) - 0.6
    levels = [top - (place if place < half else len(ranks) - 1 - place) for place in range(len(ranks))]
    edges = [low if place < half else high for place in range(len(ranks))]
    stems: list[Spec] = [
        {"line": f"{name} ({rank:.2f})", "rank": rank, "level": level, "end": edge, "zero": 0}
        for name, rank, level, edge in zip(names, ranks, levels, edges, strict=True)
    ]
    title = "mean rank" if np.isfinite(width) else "mean rank (so few seeds tell none apart at 5 %)"
    x = channel("rank", title, domain=[low, high], nice=False, orient="top", grid=False, tickMinStep=1)
    y = channel("level", domain=[min(levels) - 1.5, 0]) | {"axis": None}
    end: Any = {"x": x, "x2": {"field": "end"}, "y": y}
    edge: Any = {"x": x | {"field": "end"}, "y": y, "text": {"field": "line"}}
    layers = [
        layer("rule", "stems", x=x, y=y, y2={"field": "zero"}),
        layer("rule", "stems", **end),
        layer("rule", "bars", mark_size=5, **end),
        layer("text", "stems", only=f"datum.end === {low}", mark_align="right", mark_dx=-5, **edge),
        layer("text", "stems", only=f"datum.end !== {low}", mark_align="left", mark_dx=5, **edge),
    ]
    data = {"stems": stems, "bars": bars}
    if np.isfinite(width):
        data["width"] = [
            {"rank": low, "end": low + width, "level": min(levels) - 1.3, "line": f"critical difference {width:.2f}"}
        ]
        layers.append(layer("rule", "width", mark_size=2, **end))
        layers.append(layer("text", "width", x=x, y=y, text={"field": "line"}, mark_align="left", mark_dy=-8))
    return view(layers, width=420, height=50 + 18 * half), data
