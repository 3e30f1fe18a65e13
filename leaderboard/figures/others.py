"""Figures besides curves and intervals: one metric against another, the samples of a search, and a roll call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from pandas.api.types import is_numeric_dtype

from rollcall.benchmark.config.errors import SettingError
from rollcall.leaderboard.cells import Cell
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import SHAPES, Style, label_name, label_names, style
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.ranking import METHOD

if TYPE_CHECKING:
    from rollcall.benchmark.search.tune import Tuning

MOST = 60
"""Clients that the picture of a roll call shows, evenly from the rarely to the often available."""


def scatter(experiment: PaperExperiment, cells: Sequence[Cell]) -> alt.ConcatChart:
    """The first metric against each of the report's `against`: the means of each cell, in the style of its method."""
    report, metric = experiment.report, experiment.report.metrics[0]
    methods = [cell.labels.get(METHOD, "") for cell in cells]
    names = label_names(METHOD, methods)
    rows: list[dict[str, Any]] = []
    for (number, across), cell in product(enumerate(report.against), cells):
        labels = [label_name(axis, label) for axis, label in cell.labels.items() if label and axis != METHOD]
        x, y = (one.scale * cell.finals(one, report.last_rounds) for one in (across, metric))
        point = {"plot": number, "line": names[cell.labels.get(METHOD, "")], "where": ", ".join(labels)}
        rows.append(point | {"x": x.mean(), "value": y.mean(), "sd": y.std(), "seeds": len(y)})
    columns = ["plot", "line", "where", "x", "value", "sd", "seeds"]
    data = pd.DataFrame(rows, columns=columns).dropna(subset=["x", "value"])
    if data.empty:
        raise SettingError(f"metric: {metric.name!r} was measured in no run of {experiment.name}")
    looks = _looks({one: names[one] for one in methods if names[one] in {*data["line"]}})
    y, look = theme.axis(alt.Y, "value", metric.head), [theme.by_line(one, looks) for one in ("color", "shape")]
    views = []
    for number, across in enumerate(report.against):
        view = alt.Chart(width=300, height=theme.HEIGHT + 60).transform_filter(f"datum.plot === {number}")
        views.append(view.mark_point().encode(theme.axis(alt.X, "x", across.head), y, *look))
    what = f"{metric.head} against {', '.join(across.head for across in report.against)}"
    text = f"{experiment.title}. {what}. Methods: {', '.join(looks)}."
    chart = theme.grid(views, text, data=data, columns=2, caption="Points: the mean of a cell over its seeds.")
    return chart.configure_legend(symbolSize=60)


def _looks(methods: Mapping[str, str]) -> dict[str, Style]:
    """The style of each method by its display name; with a free shape if an earlier one has its colour and shape."""
    looks: dict[str, Style] = {}
    for method, name in methods.items():
        look = style(method, methods)
        taken, first = {one.shape for one in looks.values() if one.colour == look.colour}, SHAPES.index(look.shape)
        free = [shape for shape in SHAPES[first:] + SHAPES[:first] if shape not in taken]
        looks[name] = replace(look, shape=free[0]) if free else look
    return looks


def searched(tuning: "Tuning") -> alt.ConcatChart:
    """The score of each sample of a search against each of its settings, in the style of its method.

    The best sample of each cell is large. SettingError: all samples failed.
    """
    best = tuning.tuned.best
    if not best:
        raise SettingError("samples: all have failed; there is nothing to draw")
    methods = {name: one.when.get(METHOD, "") for name, one in best.items()}
    names, metric = label_names(METHOD, list(methods.values())), next(iter(best.values())).how.metric
    samples = tuning.samples[tuning.samples["cell"].isin([*best])].dropna(subset=["score"])
    samples = samples.assign(
        line=[names[methods[cell]] for cell in samples["cell"]],
        value=metric.scale * samples["score"],
        best=[
            all(row[path] == value for path, value in best[row["cell"]].settings.items())
            for _, row in samples.iterrows()
        ],
    )
    looks = _looks({one: names[one] for one in methods.values()})
    look = [theme.by_line(one, looks) for one in ("color", "shape")]
    size = alt.condition("datum.best", alt.value(160), alt.value(30))
    views: list[alt.Chart] = []
    for path in dict.fromkeys(path for one in best.values() for path in one.settings):
        own = samples.loc[samples[path].notna(), ["line", "value", "best", path]].rename(columns={path: "x"})
        x = alt.X("x:N", title=path, sort=None)
        if is_numeric_dtype(own["x"]):
            log = bool(own["x"].min() > 0 and own["x"].max() > 30 * own["x"].min())
            x = theme.axis(alt.X, "x", path, theme.room(own["x"], log), log)
        y = theme.axis(alt.Y, "value", metric.head if not views else None, theme.room(samples["value"]))
        points = alt.Chart(own).mark_point(opacity=0.7)
        views.append(points.encode(x, y, *look, size=size).properties(width=theme.WIDTH, height=theme.HEIGHT))
    text = f"Scores against settings. Methods: {', '.join(looks)}."
    caption = "Points: samples. Large: the best of each cell, whose score is optimistic."
    return theme.grid(views, text, caption=caption).configure_legend(symbolSize=60)


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
    on = [(f"{i}", start, end) for i in clients for start, end in stretches(mask[:, i])]
    chances = [(f"{i}", p[:, i].mean(), p[:, i].min(), p[:, i].max()) for i in clients]
    counts = pd.DataFrame({"round": np.arange(T), "active": mask.sum(axis=1), "expected": p.sum(axis=1)})
    step = max(5, min(18, 480 // len(clients)))
    rows = theme.rows_axis("client", "client", labels=step > 9, ticks=False, grid=False)
    rows = rows.scale(domain=[f"{i}" for i in clients])
    said = "probability" if probability is not None else "share of rounds"
    blocks = alt.Chart(pd.DataFrame(on, columns=["client", "start", "end"]))
    blocks = blocks.mark_bar(height=alt.RelativeBandSize(0.8), color=theme.BLUE)
    blocks = blocks.encode(theme.axis(alt.X, "start", "round", (0, T)), alt.X2("end"), rows)
    data = pd.DataFrame(chances, columns=["client", "value", "low", "high"])
    chance = theme.axis(alt.X, "value", said, (0, 1), tickCount=3)
    ranges = theme.intervals(chance, rows.axis(None), data, color=alt.value(theme.VERMILION))
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
    some = f"{len(clients)} of {m:,}" if len(clients) < m else f"All {m}"
    told = f"{some} clients, the most available one above. Blocks: rounds with the uplink on. Right: {said}, its mean"
    told += " and its range."
    told += f" Below: active clients{' and their expected number' if probability is not None else ''}."
    return theme.grid(views, f"The roll call of {T:,} rounds. {told}", columns=2, caption=told)


def stretches(on: Bool[np.ndarray, "T"]) -> list[tuple[int, int]]:
    """First round, and the round after the last, of each stretch of rounds that is on."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in list(pairwise(edges))[::2]]
