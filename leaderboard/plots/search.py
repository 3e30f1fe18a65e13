"""The figures of `rollcall tune`.

Each takes the samples of a search, the names of their columns that are settings, the metric that the score is, and
whether high (`max`) or low (`min`) scores are better. A row of the samples has `cell`, `score`, `state` (`finished`,
`stopped` or `failed`), `gradients` and the settings. Only scores after equal rounds are compared: those of samples that
were stopped early are left out.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.names import Style, method_name, style
from rollcall.leaderboard.plots.figure import Figure, by_line, channel, figure, layer, lines, room, shown, view

WIDE = 30
"""Positive numbers whose largest is this multiple of the smallest have a logarithmic axis."""

BUDGETS = (1, 3, 10, 30)
"""Numbers of samples for which the expected best is shown."""


def sensitivity(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The score of each sample that ran to the end against each setting."""
    done, rows, views, styles = samples[samples["state"] == "finished"], [], [], _styles(samples)
    y = _score(metric, "{}", Metric(metric).scale * done["score"])
    for number, setting in enumerate(settings):
        own = done.dropna(subset=[setting, "score"])
        numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in own[setting])
        wide = numeric and len(own) > 0 and 0 < WIDE * own[setting].min() <= own[setting].max()
        across: Any = {"domain": room(own[setting], wide)} if numeric else {"kind": "nominal", "labelAngle": 0}
        x = channel("x", setting, log=wide, **across)
        rows += _rows(number, own, own[setting] if numeric else own[setting].astype(str), own["score"], metric)
        look: Any = by_line(styles, "color", "shape", legend={})
        tips = [channel("line", "cell", kind="nominal"), x, y]
        layers = [
            layer("point", plot=number, name=f"curve{number}", x=x, y=y, opacity=shown(0.8), tooltip=tips, **look)
        ]
        views.append(view(layers))
    stopped = int((samples["state"] == "stopped").sum())
    note = f" {stopped} samples that were stopped early are left out." if stopped else ""
    alt = f"{y['title']} of the samples of a search against each setting: {', '.join(settings)}."
    return figure(views, {"long": rows}, alt, caption=f"Samples that ran all rounds.{note}")


def best_so_far(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The best score so far against the client gradients that the search has computed, samples in their order.

    Samples that were stopped early count with their gradients, but their scores are not compared.
    """
    rows = []
    for _, own in samples.groupby("cell", sort=False):
        scores = own["score"].where(own["state"] == "finished")
        best = (scores.cummax() if mode == "max" else scores.cummin()).ffill()
        rows += _rows(0, own, own["gradients"].cumsum(), best, metric)
    log = bool((samples["gradients"] > 0).all())
    ends = room((row["x"] for row in rows), log)
    x = channel("x", "client gradients of the search", log=log, format="~s", domain=ends, nice=False)
    y = _score(metric, "best {} so far", (row["value"] for row in rows))
    return lines(rows, _styles(samples), x, y, step=True)


def expected_best(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> Figure:
    """The expected best score of a search with 1, 3, 10 and 30 samples: Dodge et al. (2019), eq. 2.

    It is shown up to the number of samples that ran to the end.
    """
    rows = []
    for _, own in samples[samples["state"] == "finished"].groupby("cell", sort=False):
        counts = pd.Series([n for n in BUDGETS if n <= len(own)])
        means = counts.map(lambda n, own=own: expected(own["score"].to_numpy(), n, mode))
        rows += _rows(0, own.iloc[: len(counts)], counts, means, metric)
    x = channel("x", "samples of a search", log=True, domain=[0.9, 1.1 * BUDGETS[-1]], values=list(BUDGETS))
    y = _score(metric, "expected best {}", (row["value"] for row in rows))
    return lines(rows, _styles(samples), x, y)


def expected(scores: Float[np.ndarray, "N"], n: int, mode: str) -> float:
    """The mean of the best of n scores that are drawn with replacement from these N scores."""
    ordered = np.sort(scores) if mode == "max" else np.sort(scores)[::-1]
    below = (np.arange(len(scores) + 1) / len(scores)) ** n
    return float(ordered @ np.diff(below))


def _score(metric: str, words: str, values: Iterable[float]) -> Any:
    """The axis of the score, or of what `words` make of it, with room for these values."""
    return channel("value", words.format(Metric(metric).head), domain=room(values), nice=False)


def _rows(plot: int, own: pd.DataFrame, x: pd.Series, score: pd.Series, metric: str) -> list[dict[str, Any]]:
    scale = Metric(metric).scale
    return [
        {"plot": plot, "line": method_name(cell), "x": at, "value": scale * value, "few": 1}
        for cell, at, value in zip(own["cell"], x, score, strict=True)
    ]


def _styles(samples: pd.DataFrame) -> dict[str, Style]:
    """By display name of a cell, the style of its method."""
    cells = [str(cell) for cell in samples["cell"].unique()]
    return {method_name(cell): style(cell, cells) for cell in cells}
