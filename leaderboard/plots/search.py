"""The figures of `rollcall tune`.

Each takes the samples of a search, the names of their columns that are settings, the metric that the score is, and
whether high (`max`) or low (`min`) scores are better. A row of the samples has `cell`, `score`, `state` (`finished`,
`stopped` or `failed`), `gradients` and the settings.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from rollcall.leaderboard.plots.style import grid, legend, line_style, plain

WIDE = 30
"""Positive numbers whose largest is this multiple of the smallest have a logarithmic axis."""

BUDGETS = (1, 3, 10, 30)
"""Numbers of samples for which the expected best is shown."""


def sensitivity(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The score of each sample against each setting. Filled: samples that ran to the end; hollow: stopped early."""
    working = samples[samples["state"] != "failed"]
    figure, all_axes = grid(len(settings), 3, lambda columns, rows: (2.5 + 3.8 * columns, 3.8 * rows), sharey=True)
    for axes, setting in zip(all_axes, settings, strict=True):
        values = working[setting].dropna()
        numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
        for number, (cell, own) in enumerate(working.groupby("cell", sort=False)):
            colour = line_style(number)[0]
            for state, face in (("finished", colour), ("stopped", "none")):
                points = own[own["state"] == state].dropna(subset=[setting])
                at = points[setting] if numeric else points[setting].astype(str)
                axes.scatter(at, points["score"], 22, facecolors=face, edgecolors=colour, alpha=0.8)
            axes.plot([], [], "o", color=colour, label=str(cell))
        if numeric and len(values) and 0 < WIDE * values.min() <= values.max():
            axes.set_xscale("log")
        axes.set_xlabel(setting)
        plain(axes)
    for axes in all_axes[::3]:
        axes.set_ylabel(metric)
    figure.suptitle("filled: all rounds; hollow: stopped early", fontsize=9)
    legend(figure)
    return figure


def best_so_far(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The best score so far against the client gradients that the search has computed, samples in their order.

    Samples that were stopped early count with their gradients, but their scores are not compared.
    """
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, (cell, own) in enumerate(samples.groupby("cell", sort=False)):
        scores = own["score"].where(own["state"] == "finished")
        best = (scores.cummax() if mode == "max" else scores.cummin()).ffill()
        colour, style = line_style(number)
        spent = own["gradients"].cumsum()
        axes.step(spent, best, where="post", color=colour, linestyle=style, marker="o", markersize=3, label=str(cell))
    axes.set_xscale("log" if (samples["gradients"] > 0).all() else "linear")
    axes.set(xlabel="client gradients of the search", ylabel=f"best {metric} so far")
    plain(axes)
    legend(figure)
    return figure


def expected_best(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The expected best score of a search with 1, 3, 10 and 30 samples: Dodge et al. (2019), eq. 2.

    It is shown up to the number of samples. None of them was stopped early: scores after equal rounds are compared.
    """
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    working = samples[samples["state"] != "failed"]
    for number, (cell, own) in enumerate(working.groupby("cell", sort=False)):
        counts = [n for n in BUDGETS if n <= len(own)]
        colour, style = line_style(number)
        means = [expected(own["score"].to_numpy(), n, mode) for n in counts]
        axes.plot(counts, means, color=colour, linestyle=style, marker="o", label=str(cell))
    ticks = [n for n in BUDGETS if n <= working.groupby("cell").size().max()]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.set(xlabel="samples of a search", ylabel=f"expected best {metric}")
    plain(axes)
    legend(figure)
    return figure


def expected(scores: Float[np.ndarray, "N"], n: int, mode: str) -> float:
    """The mean of the best of n scores that are drawn with replacement from these N scores."""
    ordered = np.sort(scores) if mode == "max" else np.sort(scores)[::-1]
    below = (np.arange(len(scores) + 1) / len(scores)) ** n
    return float(ordered @ np.diff(below))
