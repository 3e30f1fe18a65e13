"""Parallel coordinates of `rollcall tune`: all settings of all samples in one figure."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from rollcall.leaderboard.plots.style import logarithmic, numeric

COLOURS = "viridis"

BACKGROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1}
"""Behind the labels of an axis, so that lines do not hide them."""


def parallel(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """A line for each sample through its cell, its settings and its score; good scores are yellow and drawn last.

    Failed samples are left out. A line has a gap where its method does not have the setting.

    Args:
        samples: a row for each: `cell`, `score`, `state` and the settings.
        settings: the names of the columns that are settings.
        metric: what the score is.
        mode: which end is better, `max` or `min`.
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


def _axis(axes: Axes, at: int, values: pd.Series) -> pd.Series:
    """Draw the axis of a column at this position. Returns the heights of its values, from 0 to 1."""
    heights, ticks = scaled(values)
    axes.axvline(at, color="0.75", linewidth=1, zorder=0)
    for label, height in ticks.items():
        axes.text(at - 0.04, height, label, ha="right", va="center", fontsize=8, zorder=3, bbox=BACKGROUND)
    return heights


def scaled(values: pd.Series) -> tuple[pd.Series, dict[str, float]]:
    """Heights from 0 to 1, missing ones as NaN, and the heights of the labels of the axis.

    Numbers keep their distances, on a logarithmic axis their ratios; anything else has equal distances.
    """
    present = values.dropna()
    if not numeric(present) or not len(present):
        names = list(dict.fromkeys(map(str, present)))
        ticks = {name: i / max(1, len(names) - 1) for i, name in enumerate(names)}
        return values.map(lambda one: math.nan if pd.isna(one) else ticks[str(one)]), ticks
    scale = math.log if logarithmic(present) else float
    low, high = scale(present.min()), scale(present.max())
    heights = values.map(lambda one: (scale(one) - low) / ((high - low) or 1), na_action="ignore").astype(float)
    levels = sorted(set(present)) if present.nunique() <= 8 else [present.min(), present.max()]
    return heights, {f"{level:.4g}": (scale(level) - low) / ((high - low) or 1) for level in levels}
