"""The picture of a participation model: clients with their active rounds and probabilities."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rollcall.leaderboard.plots.figure import BLUE, GREY, VERMILION, Figure, channel, figure, layer, stretches, view

MOST = 60
"""Clients that the picture of a roll call shows, evenly from the rarely to the often available."""


def uplinks(mask: Bool[np.ndarray, "T m"], probability: Float[np.ndarray, "T m"] | None) -> Figure:
    """The rounds in which clients are active, their probabilities, and the number of active clients.

    Args:
        mask: whether the uplink of a client is on in a round.
        probability: p_i^t, if the model knows it; otherwise the share of active rounds stands for it.
    """
    T, m = mask.shape
    p = np.broadcast_to(mask.mean(axis=0), mask.shape) if probability is None else probability
    ranks = np.unique(np.linspace(0, m - 1, min(MOST, m)).round().astype(int))
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
