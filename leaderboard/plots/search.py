"""The figures of `rollcall tune`: score against each setting, best score so far, and expected best of n samples."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from rollcall.leaderboard.plots.style import legend, line_style, logarithmic, numeric, plain

BUDGETS = (1, 3, 10, 30)
"""Numbers of samples for which the expected best is shown."""


def sensitivity(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The score of each sample against each setting. Filled: samples that ran to the end; hollow: stopped early.

    Args:
        samples: a row for each: `cell`, `score`, `state`, `gradients` and the settings.
        settings: the names of the columns that are settings.
        metric: what the score is.
        mode: which end is better, `max` or `min`.
    """
    working = samples[samples["state"] != "failed"]
    columns = min(len(settings), 3)
    rows = -(-len(settings) // columns)
    figure = Figure(figsize=(2.5 + 3.8 * columns, 3.8 * rows), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for axes, setting in zip(grid, settings, strict=False):
        for number, (cell, own) in enumerate(working.groupby("cell", sort=False)):
            values = own.dropna(subset=[setting])
            colour = line_style(number)[0]
            for state, face in (("finished", colour), ("stopped", "none")):
                points = values[values["state"] == state]
                axes.scatter(
                    _positions(points[setting]), points["score"], 22, facecolors=face, edgecolors=colour, alpha=0.8
                )
            axes.plot([], [], "o", color=colour, label=str(cell))
        if logarithmic(working[setting].dropna()):
            axes.set_xscale("log")
        axes.set_xlabel(setting)
        plain(axes)
    for axes in grid[len(settings) :]:
        axes.remove()
    for row in range(rows):
        grid[row * columns].set_ylabel(metric)
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
        spent = own["gradients"].cumsum()
        scores = own["score"].where(own["state"] == "finished")
        best = (scores.cummax() if mode == "max" else scores.cummin()).ffill()
        colour, style = line_style(number)
        axes.step(spent, best, where="post", color=colour, linestyle=style, marker="o", markersize=3, label=str(cell))
    if (samples["gradients"] > 0).all():
        axes.set_xscale("log")
    axes.set_xlabel("client gradients of the search")
    axes.set_ylabel(f"best {metric} so far")
    plain(axes)
    legend(figure)
    return figure


def expected_best(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The expected best score of a search with 1, 3, 10 and 30 samples: Dodge et al. (2019), eq. 2.

    It is shown up to the number of samples. A sample that was stopped early has the score of its last rung.
    """
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    most = 1
    for number, (cell, own) in enumerate(samples[samples["state"] != "failed"].groupby("cell", sort=False)):
        counts = [n for n in BUDGETS if n <= len(own)]
        most = max(most, *counts)
        colour, style = line_style(number)
        means = [expected(own["score"].to_numpy(), n, mode) for n in counts]
        axes.plot(counts, means, color=colour, linestyle=style, marker="o", label=str(cell))
    axes.set_xscale("log")
    ticks = [n for n in BUDGETS if n <= most]
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.set_xlabel("samples of a search")
    axes.set_ylabel(f"expected best {metric}")
    plain(axes)
    legend(figure)
    return figure


def expected(scores: Float[np.ndarray, "N"], n: int, mode: str) -> float:
    """The mean of the best of n scores that are drawn with replacement from these N scores."""
    ordered = np.sort(scores) if mode == "max" else np.sort(scores)[::-1]
    below = (np.arange(len(scores) + 1) / len(scores)) ** n
    return float(ordered @ np.diff(below))


def _positions(values: pd.Series) -> pd.Series:
    """Where values are on an axis: numbers at themselves, anything else at its text."""
    return values if numeric(values) else values.astype(str)
