"""What clients hold: a picture of a partition."""

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rollcall.leaderboard.plots.style import COLOURS, plain


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
