"""Figures of participation models: the roll call, autocorrelation and coupling."""

from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from rollcall.leaderboard.figures import theme

if TYPE_CHECKING:  # imports parts of SciPy that other figures need not wait for
    from rollcall.participation import Participation

MOST = 60
"""Clients that the picture of a roll call shows, evenly from the rarely to the often available."""

LAGS = 20
"""Lags of the autocorrelation."""


def uplinks(mask: Bool[np.ndarray, "T m"], probability: Float[np.ndarray, "T m"] | None) -> alt.ConcatChart:
    """The rounds in which clients are active, their probabilities, and the number of active clients.

    Args:
        mask: whether the uplink of a client is on in a round.
        probability: p_i^t, if the model knows it; otherwise the share of active rounds stands for it.
    """
    T, m = mask.shape
    p = np.broadcast_to(mask.mean(axis=0), mask.shape) if probability is None else probability
    ranks = np.unique(np.linspace(0, m - 1, min(MOST, m)).round().astype(int))
    clients = np.argsort(p.mean(axis=0), kind="stable")[ranks][::-1]  # the most available one above
    on = [(f"{i}", start, end) for i in clients for start, end in theme.stretches(mask[:, i])]
    chances = [(f"{i}", p[:, i].mean(), p[:, i].min(), p[:, i].max()) for i in clients]
    counts = pd.DataFrame({"round": np.arange(T), "active": mask.sum(axis=1), "expected": p.sum(axis=1)})
    step = max(5, min(18, 480 // len(clients)))
    rows = theme.rows_axis("client", "client", labels=step > 9, ticks=False, grid=False)
    rows = rows.scale(domain=[f"{i}" for i in clients])
    said = "probability" if probability is not None else "share of rounds"
    bars = pd.DataFrame(on, columns=["client", "start", "end"])
    blocks = alt.Chart(bars).mark_bar(height=alt.RelativeBandSize(0.8), color=theme.BLUE)
    blocks = blocks.encode(theme.axis(alt.X, "start", "round", (0, T)), alt.X2("end"), rows)
    data = pd.DataFrame(chances, columns=["client", "value", "low", "high"])
    ranges = theme.intervals(theme.axis(alt.X, "value", said, (0, 1), tickCount=3), rows.axis(None), data,
                             color=alt.value(theme.VERMILION))  # fmt: skip
    x = theme.axis(alt.X, "round", "round", (0, T))
    y = theme.axis(alt.Y, "active", "active clients", (0, float(counts[["active", "expected"]].to_numpy().max())))
    active = alt.Chart().mark_line(interpolate="step-after", color=theme.BLUE, strokeWidth=1.5).encode(x, y)
    expected = alt.Chart().mark_line(color=theme.VERMILION, strokeWidth=1.5).encode(x, theme.of("expected", y))
    below = [active, *([expected] if probability is not None else [])]
    views = [
        alt.layer(blocks, width=560, height=alt.Step(step)),
        alt.layer(*ranges, width=120, height=alt.Step(step)),
        alt.layer(*below, data=counts, width=560, height=90),
    ]
    every = f"{len(clients)} of {m:,} clients, from the rarest to the most available" if len(clients) < m else ""
    told = f"{every or f'All {m} clients'}. Blocks: rounds with the uplink on. Right: {said}, from least to largest."
    told += f" Below: active clients{' and their expected number' if probability is not None else ''}."
    return theme.grid(views, f"The roll call of {T:,} rounds. {told}", columns=2, caption=told)


def autocorrelation(mask: Bool[np.ndarray, "T m"], model: "Participation") -> alt.ConcatChart:
    """The mean autocorrelation of a client over lags, and what chains with the stated eigenvalues have."""
    centred = mask - mask.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    moving, lags = centred[:, variance > 0], np.arange(LAGS + 1)
    products = [(moving[lag:] * moving[: len(moving) - lag]).mean(axis=0) for lag in lags]
    lines = {"measured": (np.array(products) / variance[variance > 0]).mean(axis=1)} if moving.size else {}
    if moving.size and model.correlation is not None:
        lines["stated"] = np.nanmean(model.correlation[variance > 0] ** lags[:, None], axis=1)
    data = pd.DataFrame({"x": lags, **lines}).melt("x", var_name="line")
    x, y = theme.axis(alt.X, "x", "lag, in rounds"), theme.axis(alt.Y, "value", "autocorrelation")
    view = alt.layer(*theme.lines(theme.in_turn(lines), x, y), width=480, height=260)
    text = f"Mean autocorrelation of a client's participation over lags of 0 to {LAGS} rounds."
    return theme.grid([view], text, data=data)


def coupling(mask: Bool[np.ndarray, "T m"]) -> alt.ConcatChart:
    from rollcall.participation.summary import correlations

    _, between = correlations(mask)
    order = np.argsort(mask.mean(axis=0), kind="stable")
    table = between[np.ix_(order, order)]
    pairs = [(i, j, round(float(table[i, j]), 3)) for i, j in np.ndindex(table.shape) if i != j]
    data = pd.DataFrame(pairs, columns=["client", "other", "correlation"]).dropna()
    bare = alt.Axis(labels=False, ticks=False)
    scale = alt.Scale(scheme="blueorange", domain=[-1, 1])
    squares = alt.Chart(data, width=300, height=300).mark_rect().encode(
        alt.X("client:O", title="client, from rare to frequent", axis=bare),
        alt.Y("other:O", title="other client", axis=bare),
        alt.Color("correlation:Q", scale=scale),
        alt.Tooltip(["client:O", "other:O", "correlation:Q"]),
    )  # fmt: skip
    return theme.grid([squares], "Correlation of the participation of each pair of clients in a round, from -1 to 1.")
