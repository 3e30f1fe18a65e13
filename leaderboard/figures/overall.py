"""The figure of methods over many conditions: mean ranks and performance profiles."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from rollcall.leaderboard import statistics
from rollcall.leaderboard.comparison import Overall
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import method_name, style

POINTS = 61
"""Thresholds of a profile."""


def overall_chart(over: Overall) -> alt.ConcatChart:
    """Mean ranks, bars over methods that are not told apart; and performance profiles where values may be pooled."""
    metric, names = over.blocks[0][1], [method_name(method) for method in over.ranks]
    views: list[Any] = [_ranks(over, names)]
    scores = np.concatenate(over.tasks(*over.ranks)) if over.one_scale else np.empty(0)
    ends = scores[np.isfinite(scores)]
    if len(ends):
        thresholds = np.linspace(ends.min(), ends.max(), POINTS)
        at = metric.scale * (1 if metric.direction == "max" else -1) * thresholds
        profiles = []
        for method, name in zip(over.ranks, names, strict=True):
            share, low, high = np.clip(statistics.interval(statistics.profile(thresholds), over.tasks(method)), 0, 1)
            profiles.append(pd.DataFrame({"line": name, "x": at, "value": share, "low": low, "high": high}))
        looks = {name: style(method, over.ranks) for method, name in zip(over.ranks, names, strict=True)}
        x = theme.axis(alt.X, "x", f"{metric.head}: τ")
        y = theme.axis(alt.Y, "value", "share of runs better than τ", (0, 1))
        profile = alt.layer(*theme.lines(looks, x, y, pd.concat(profiles), bands=True, step=True))
        views.append(profile.properties(width=420, height=theme.HEIGHT, title="Performance profile"))
    text = f"Methods over {len(over.blocks)} conditions by {metric.title}. Mean ranks: "
    text += ", ".join(f"{name} {rank:.2f}" for name, rank in zip(names, over.ranks.values(), strict=True))
    sets = "; ".join(", ".join(names[place] for place in one) for one in over.alike)
    caption = "Bars join methods that are not told apart at 5 %."
    caption += " Bands: 95 %, Student's t over seeds (jackknife)." if len(views) > 1 else ""
    return theme.grid(views, f"{text}. Not told apart: {sets}.", columns=1, caption=caption)


def _ranks(over: Overall, names: list[str]) -> Any:
    """A row for each method with its mean rank, the best first; below them the bars, as in Demsar (2006)."""
    ranks, width = list(over.ranks.values()), over.test[1]
    points: list[dict[str, Any]] = [
        {"row": f"{name} ({rank:.2f})", "rank": rank} for name, rank in zip(names, ranks, strict=True)
    ]
    joined = [one for one in over.alike if len(one) > 1]
    bars = [{"row": " " * (at + 1), "rank": ranks[one[0]], "end": ranks[one[-1]]} for at, one in enumerate(joined)]
    title = f"mean rank; critical difference {width:.2f}"
    title = title if np.isfinite(width) else "mean rank (so few seeds tell none apart at 5 %)"
    x = theme.axis(alt.X, "rank", title, (np.floor(ranks[0]), np.ceil(ranks[-1])))
    y = theme.rows_axis("row").scale(domain=[one["row"] for one in points + bars])
    layers = [alt.Chart(pd.DataFrame(points)).mark_point().encode(x, y)]
    layers += [alt.Chart(pd.DataFrame(bars)).mark_rule(size=4).encode(x, alt.X2("end"), y)] if bars else []
    return alt.layer(*layers).properties(width=420, height=alt.Step(18))
