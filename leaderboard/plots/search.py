"""The figures of `rollcall tune`.

Each takes the samples of a search, the names of their columns that are settings, the metric that the score is, and
whether high (`max`) or low (`min`) scores are better. A row of the samples has `cell`, `score`, `state` (`finished`,
`stopped` or `failed`), `gradients` and the settings.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from rollcall.leaderboard.plots.style import grid, legend, line_style, plain

WIDE = 30
"""Positive numbers whose largest is this multiple of the smallest have a logarithmic axis."""

COLOURS = "viridis"

BACKGROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1}
"""Behind the labels of an axis, so that lines do not hide them."""

BUDGETS = (1, 3, 10, 30)
"""Numbers of samples for which the expected best is shown."""


def sensitivity(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The score of each sample against each setting. Filled: samples that ran to the end; hollow: stopped early."""
    working = samples[samples["state"] != "failed"]
    figure, all_axes = grid(len(settings), 3, lambda columns, rows: (2.5 + 3.8 * columns, 3.8 * rows), sharey=True)
    for axes, setting in zip(all_axes, settings, strict=True):
        for number, (cell, own) in enumerate(working.groupby("cell", sort=False)):
            values = own.dropna(subset=[setting])
            colour = line_style(number)[0]
            for state, face in (("finished", colour), ("stopped", "none")):
                points = values[values["state"] == state]
                at = points[setting] if _numeric(points[setting]) else points[setting].astype(str)
                axes.scatter(at, points["score"], 22, facecolors=face, edgecolors=colour, alpha=0.8)
            axes.plot([], [], "o", color=colour, label=str(cell))
        if _logarithmic(working[setting].dropna()):
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


def parallel(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """A line for each sample through its cell, its settings and its score; good scores are yellow and drawn last.

    Failed samples are left out. A line has a gap where its method does not have the setting.
    """
    working = samples[samples["state"] != "failed"].sort_values("score", ascending=mode == "max", kind="stable")
    columns = [*(["cell"] if samples["cell"].nunique() > 1 else []), *settings, "score"]
    figure = Figure(figsize=(2.2 + 2.1 * len(columns), 4.6), layout="constrained")
    axes = figure.subplots()
    heights = pd.DataFrame({column: _axis(axes, at, working[column]) for at, column in enumerate(columns)})
    span = Normalize(working["score"].min(), working["score"].max())
    colours = colormaps[COLOURS if mode == "max" else f"{COLOURS}_r"]
    for line, score in zip(heights.to_numpy(), working["score"], strict=True):
        axes.plot(range(len(columns)), line, color=colours(span(score)), linewidth=1.2, alpha=0.8)
    axes.set_xticks(range(len(columns)), [metric if column == "score" else column for column in columns])
    axes.tick_params(axis="x", length=0, pad=12)
    axes.set_xlim(-0.55, len(columns) - 0.6)
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_visible(False)
    axes.spines[:].set_visible(False)
    figure.colorbar(ScalarMappable(span, colours), ax=axes, label=metric, pad=0.02)
    return figure


def scaled(values: pd.Series) -> tuple[pd.Series, dict[str, float]]:
    """Heights from 0 to 1, missing ones as NaN, and the heights of the labels of the axis.

    Numbers keep their distances, on a logarithmic axis their ratios; anything else has equal distances.
    """
    present = values.dropna()
    if not _numeric(present) or not len(present):
        names = list(dict.fromkeys(map(str, present)))
        ticks = {name: i / max(1, len(names) - 1) for i, name in enumerate(names)}
        return values.map(lambda one: math.nan if pd.isna(one) else ticks[str(one)]), ticks
    scale = math.log if _logarithmic(present) else float
    low, high = scale(present.min()), scale(present.max())
    heights = values.map(lambda one: (scale(one) - low) / ((high - low) or 1), na_action="ignore").astype(float)
    levels = sorted(set(present)) if present.nunique() <= 8 else [present.min(), present.max()]
    return heights, {f"{level:.4g}": (scale(level) - low) / ((high - low) or 1) for level in levels}


def _axis(axes: Axes, at: int, values: pd.Series) -> pd.Series:
    """Draw the axis of a column at this position. Returns the heights of its values, from 0 to 1."""
    heights, ticks = scaled(values)
    axes.axvline(at, color="0.75", linewidth=1, zorder=0)
    for label, height in ticks.items():
        axes.text(at - 0.04, height, label, ha="right", va="center", fontsize=8, zorder=3, bbox=BACKGROUND)
    return heights


def _numeric(values: pd.Series) -> bool:
    """Whether all values are numbers."""
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)


def _logarithmic(values: pd.Series) -> bool:
    """Whether values need a logarithmic axis: positive numbers, the largest many times the smallest."""
    return _numeric(values) and len(values) > 0 and bool(0 < WIDE * values.min() <= values.max())
