"""Figures of clients: their active rounds and their probabilities."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rollcall.leaderboard.plots.figure import BLUE, GREY, VERMILION, Figure, channel, figure, layer, stretches, view

MOST = 60
"""Clients that the picture of a roll call shows."""


def uplinks(mask: Bool[np.ndarray, "T m"], probability: Float[np.ndarray, "T m"] | None, shown: int = MOST) -> Figure:
    """The rounds in which clients are active, their probabilities, and the number of active clients.

    Args:
        mask: whether the uplink of a client is on in a round.
        probability: p_i^t, if the model knows it; otherwise the share of active rounds stands for it.
        shown: number of clients, evenly from the rarely to the often available.
    """
    T, m = mask.shape
    p = np.broadcast_to(mask.mean(axis=0), mask.shape) if probability is None else probability
    ranks = np.unique(np.linspace(0, m - 1, min(shown, m)).round().astype(int))
    clients = np.argsort(p.mean(axis=0), kind="stable")[ranks]
    names = [f"{client}" for client in clients[::-1]]  # the most available one above
    on = [{"client": f"{i}", "start": start, "end": end} for i in clients for start, end in stretches(mask[:, i])]
    ends = [{"client": f"{i}", "p": p[:, i].mean(), "low": p[:, i].min(), "high": p[:, i].max()} for i in clients]
    counts = [{"round": t, "active": mask[t].sum(), "expected": p[t].sum()} for t in range(T)]
    order: Any = {"scale": {"domain": names}}
    step = max(5, min(18, 480 // len(names)))
    labels: Any = {"labels": step > 9, "ticks": False, "labelLimit": 60}
    said = "probability" if probability is not None else "share of rounds"
    every = (
        f"All {m} clients"
        if len(names) == m
        else f"{len(names)} of {m:,} clients, from the rarest to the most available"
    )
    by_round: Any = {"x": channel("round", "round", domain=[0, T], nice=False), "mark_strokeWidth": 1.5}
    by_round |= {"tooltip": [channel(name, name) for name in ("round", "active", "expected")]}
    count = channel("active", "active clients", domain=[0, max(max(row["active"], row["expected"]) for row in counts)])
    chance: Any = {"x": channel("p", said, domain=[0, 1], tickCount=3)}
    chance |= {"y": channel("client", kind="nominal", labels=False, ticks=False) | order}
    blocks: Any = {"x": channel("start", "round", domain=[0, T], nice=False), "x2": {"field": "end"}, "color": BLUE}
    blocks |= {"y": channel("client", "client", kind="nominal", **labels) | order}
    dots: Any = {"mark_filled": True, "mark_size": 30, "mark_opacity": 1, "color": VERMILION}
    expected = [layer("line", "counts", y=count | {"field": "expected"}, color=VERMILION, **by_round)]
    views = [
        view([layer("bar", "on", mark_height={"band": 0.8}, **blocks)], width=560, height={"step": step}),
        view(
            [
                layer("rule", "p", color=GREY, **chance | {"x": chance["x"] | {"field": "low"}}, x2={"field": "high"}),
                layer("point", "p", **chance, **dots, tooltip=[channel("client", kind="nominal"), channel("p", said)]),
            ],
            width=120,
            height={"step": step},
        ),
        view(
            [
                layer("line", "counts", y=count, color=BLUE, mark_interpolate="step-after", **by_round),
                *(expected if probability is not None else []),
            ],
            width=560,
            height=90,
        ),
    ]
    told = f"{every}. Blocks: rounds with the uplink on. Right: {said}, from least to largest. Below: active clients"
    told += " and their expected number." if probability is not None else "."
    return figure(views, {"on": on, "p": ends, "counts": counts}, f"The roll call of {T:,} rounds. {told}", 2, told)


def probabilities(p: Float[np.ndarray, "m"]) -> Figure:
    """The clients' probabilities ([PBC] Fig. 4): a histogram and the sorted values."""
    counts, edges = np.histogram(p, bins=np.linspace(0, 1, 21))
    bars = [{"from": a, "to": b, "clients": n} for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]
    ordered = [{"rank": rank, "p": value} for rank, value in enumerate(np.sort(p))]
    count = channel("clients", "clients", domain=[0, 1.05 * counts.max()], format="~g")
    share = channel("from", "probability", domain=[0, 1])
    value: Any = {
        "x": channel("rank", "clients, sorted by probability"),
        "y": channel("p", "probability", domain=[0, 1]),
    }
    views = [
        view([_bars("bars", share, "to", count, BLUE)], width=300),
        view(
            [layer("line", "ordered", **value, color=VERMILION, mark_interpolate="step", mark_point=len(p) < 12)],
            width=300,
        ),
    ]
    alt = f"The probabilities of {len(p):,} clients. From {p.min():.3g} to {p.max():.3g}, mean {p.mean():.3g}."
    return figure(views, {"bars": bars, "ordered": ordered}, alt)


def _bars(data: str, x: Any, to: str, y: Any, colour: str) -> Any:
    """Bars from zero to y, each from x to another field."""
    return layer("rect", data, x=x, x2={"field": to}, y=y, y2={"datum": 0}, color=colour, mark_stroke="white")
