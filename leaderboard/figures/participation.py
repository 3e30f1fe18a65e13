"""Figures of participation models: the roll call, autocorrelation and coupling; and where a method ends under them."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from rollcall.leaderboard.figures import theme
from rollcall.participation import Participation
from rollcall.participation.summary import correlations

MOST = 60
"""Clients that the picture of a roll call shows, evenly from the rarely to the often available."""

LAGS = 20
"""Lags of the autocorrelation."""

TARGETS, KNOWN = (0.0, 100.0), 0.5
"""The two clients of the bias picture ([PBC] Fig. 2): where their losses are least, and the first one's probability."""


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
    rows = theme.rows_axis("client", "client", labels=step > 9, ticks=False)
    rows = rows.scale(domain=[f"{i}" for i in clients])
    said = "probability" if probability is not None else "share of rounds"
    blocks = alt.Chart(pd.DataFrame(on, columns=["client", "start", "end"])).mark_bar(height=alt.RelativeBandSize(0.8))
    blocks = blocks.encode(theme.axis(alt.X, "start", "round", (0, T)), alt.X2("end"), rows, alt.value(theme.BLUE))
    data = pd.DataFrame(chances, columns=["client", "value", "low", "high"])
    ranges = theme.intervals(theme.axis(alt.X, "value", said, (0, 1), tickCount=3), rows.axis(None), data,
                             color=alt.value(theme.VERMILION))  # fmt: skip
    x = theme.axis(alt.X, "round", "round", (0, T))
    y = theme.axis(alt.Y, "active", "active clients", (0, float(counts[["active", "expected"]].max(axis=None))))
    active = alt.Chart().mark_line(interpolate="step-after", color=theme.BLUE, strokeWidth=1.5).encode(x, y)
    expected = alt.Chart().mark_line(color=theme.VERMILION, strokeWidth=1.5).encode(x, theme.of("expected", y))
    below = [active, *([expected] if probability is not None else [])]
    views = [
        alt.layer(blocks).properties(width=560, height=alt.Step(step)),
        alt.layer(*ranges).properties(width=120, height=alt.Step(step)),
        alt.layer(*below, data=counts).properties(width=560, height=90),
    ]
    every = f"{len(clients)} of {m:,} clients, from the rarest to the most available" if len(clients) < m else ""
    told = f"{every or f'All {m} clients'}. Blocks: rounds with the uplink on. Right: {said}, from least to largest."
    told += f" Below: active clients{' and their expected number' if probability is not None else ''}."
    return theme.grid(views, f"The roll call of {T:,} rounds. {told}", columns=2, caption=told)


def autocorrelation(mask: Bool[np.ndarray, "T m"], model: Participation) -> alt.ConcatChart:
    """The mean autocorrelation of a client over lags, and what chains with the stated eigenvalues have."""
    centred = mask - mask.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    moving, lags = centred[:, variance > 0], np.arange(LAGS + 1)
    lines = {}
    if moving.size:
        products = [(moving[lag:] * moving[: len(moving) - lag]).mean(axis=0) for lag in lags]
        lines["measured"] = (np.array(products) / variance[variance > 0]).mean(axis=1)
        if model.correlation is not None:
            lines["stated"] = np.nanmean(np.asarray(model.correlation) ** lags[:, None], axis=1)
    text = f"Mean autocorrelation of a client's participation over lags of 0 to {LAGS} rounds."
    return _lines(lines, lags, "lag, in rounds", "autocorrelation", text)


def coupling(mask: Bool[np.ndarray, "T m"]) -> alt.ConcatChart:
    """The correlation of each pair of clients in a round."""
    _, between = correlations(mask)
    order = np.argsort(mask.mean(axis=0), kind="stable")
    table = between[np.ix_(order, order)]
    pairs = [(i, j, round(float(table[i, j]), 3)) for i, j in np.ndindex(table.shape) if i != j]
    data = pd.DataFrame(pairs, columns=["client", "other", "correlation"]).dropna()
    bare = alt.Axis(labels=False, ticks=False)
    scale = alt.Scale(scheme="blueorange", domain=[-1, 1])
    squares = alt.Chart(data, width=theme.WIDTH, height=theme.WIDTH).mark_rect().encode(
        alt.X("client:O", title="client, from rare to frequent", axis=bare),
        alt.Y("other:O", title="other client", axis=bare),
        alt.Color("correlation:Q", scale=scale),
        alt.Tooltip(["client:O", "other:O", "correlation:Q"]),
    )  # fmt: skip
    return theme.grid([squares], "Correlation of the participation of each pair of clients in a round, from -1 to 1.")


def bias(limit: str, measured: Sequence[tuple[float, float]]) -> alt.ConcatChart:
    """Where a method ends on two clients, over the probability of the second ([PBC] Fig. 2).

    Args:
        limit: that it declares; the line of FedAvg is shown for comparison.
        measured: probability of the second client, and the bias that runs of the method had.
    """
    p = np.linspace(0.02, 1, 50)
    both = KNOWN * p / 2
    second = {  # the weight of the second client in the limit
        "the optimum": np.full(len(p), 0.5),
        "FedAvg": (p * (1 - KNOWN) + both) / (p * (1 - KNOWN) + KNOWN * (1 - p) + 2 * both),
        "weighted by p": p / (p + KNOWN),
    }
    shown = [name for name in second if name != "weighted by p" or limit == "probabilities"]
    lines = {name: TARGETS[1] * second[name] for name in shown}
    points = [(one, value + TARGETS[1] / 2) for one, value in measured]
    text = "Limit of the server's model for two clients at 0 and 100, over the probability of the second client."
    return _lines(lines, p, f"probability of the second client; the first has {KNOWN}", "limit of x", text, points)


def _lines(
    lines: dict[str, Float[np.ndarray, "n"]], x: Float[np.ndarray, "n"], x_title: str, y_title: str, text: str,
    points: Sequence[tuple[float, float]] = (),
) -> alt.ConcatChart:  # fmt: skip
    """Lines by name over x, and measured points."""
    data = pd.concat([pd.DataFrame({"line": name, "x": x, "value": values}) for name, values in lines.items()] or [pd.DataFrame()])
    across, up = theme.axis(alt.X, "x", x_title), theme.axis(alt.Y, "value", y_title)
    layers = theme.lines(theme.in_turn(lines, [theme.VERMILION]), across, up)
    if points:
        dots = alt.Chart(pd.DataFrame(points, columns=["x", "value"])).mark_point(color=theme.VERMILION, size=60)
        layers.append(dots.encode(across, up))
    view = alt.layer(*layers).properties(width=480, height=260)
    return theme.grid([view], text, data=data, caption="Points: measured." if points else "")
