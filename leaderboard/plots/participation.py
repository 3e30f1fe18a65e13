"""Figures of clients: their active rounds, their probabilities, and their data."""

from itertools import cycle

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rollcall.leaderboard.plots.style import COLOURS, plain


def uplinks(mask: Bool[np.ndarray, "T m"], probability: Float[np.ndarray, "T m"] | None, shown: int = 4) -> Figure:
    """A row for a few clients: the probability as a line, the rounds with the uplink on as blocks ([PBC] Fig. 6).

    Args:
        mask: whether the uplink of a client is on in a round.
        probability: p_i^t, if the model knows it.
        shown: number of clients, spread from rarely to often available.
    """
    T, m = mask.shape
    availability = mask.mean(axis=0) if probability is None else probability.mean(axis=0)
    ranks = np.unique(np.linspace(0, m - 1, min(shown, m)).round().astype(int))
    clients = np.argsort(availability, kind="stable")[ranks]
    figure = Figure(figsize=(9, 1.2 + 1.1 * len(clients)), layout="constrained")
    rows = figure.subplots(len(clients), 1, sharex=True, squeeze=False)[:, 0]
    for axes, client, colour in zip(rows, clients, cycle(COLOURS), strict=False):
        _draw_client(axes, mask[:, client], None if probability is None else probability[:, client], colour)
        axes.set_ylabel(f"client {client}", rotation=0, ha="right", va="center")
    rows[-1].set_xlabel("round")
    rows[-1].set_xlim(0, T)
    title = "uplink on (blocks)" if probability is None else "probability (line) and uplink on (blocks)"
    rows[0].set_title(title, fontsize=10)
    return figure


def probabilities(p: Float[np.ndarray, "m"]) -> Figure:
    """The clients' probabilities ([PBC] Fig. 4): a histogram and the sorted values."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(p, bins=np.linspace(0, 1, 21), color=COLOURS[0], edgecolor="white")
    _label(left, "probability", "clients")
    right.step(np.arange(len(p)), np.sort(p), color=COLOURS[1], where="mid")
    right.set_ylim(0, 1.02)
    _label(right, "clients, sorted by probability", "probability")
    return figure


def bubbles(histogram: Int[np.ndarray, "m C"]) -> Figure:
    """The samples of each client as bars; below, a bubble for each of its classes, with an area like the samples."""
    m, C = histogram.shape
    width, row = 9.0, 0.32
    height = row * max(C, 4)
    figure = Figure(figsize=(width, height + 1.9), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, height])
    above.stairs(histogram.sum(axis=1), np.arange(m + 1) - 0.5, fill=True, color="0.6")
    above.set_ylabel("samples")
    clients, classes = np.nonzero(histogram)
    # In points. The largest bubble fills its row, or its column and half of both neighbours; it is never invisible.
    diameter = max(72 * min(0.9 * row, 2 * 0.85 * width / m), 6)
    counts = histogram[clients, classes]
    below.scatter(clients, classes, s=diameter**2 * counts / counts.max(), color=COLOURS[0], alpha=0.7, linewidth=0)
    below.set_xlabel("client")
    below.set_ylabel("class")
    below.set_xlim(-0.8, m - 0.2)
    below.set_ylim(-0.7, C - 0.3)
    below.set_title(f"area of a bubble: number of samples, at most {counts.max():,}", fontsize=10)
    for axis, most in ((below.xaxis, 10), (below.yaxis, C + 2), (above.yaxis, 3)):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=most, steps=[1, 2, 5, 10]))
    for axes in (above, below):
        plain(axes)
    return figure


def _draw_client(axes: Axes, on: Bool[np.ndarray, "T"], p: Float[np.ndarray, "T"] | None, colour: str) -> None:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))  # on and off in turn
    axes.broken_barh(list(zip(edges[::2], edges[1::2] - edges[::2], strict=True)), (-0.45, 0.35), color=colour)
    if p is not None:
        axes.step(np.arange(len(p) + 1), np.append(p, p[-1]), where="post", color=colour)
    axes.set_ylim(-0.5, 1.05)
    axes.set_yticks([0, 1])
    axes.axhline(0, color="0.7", linewidth=0.6)
    plain(axes)


def _label(axes: Axes, x: str, y: str) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=x != "probability"))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    plain(axes)
