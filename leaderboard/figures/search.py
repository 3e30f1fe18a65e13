"""The figures of `rollcall tune`.

Each takes the samples of a search, the names of their columns that are settings, the metric that the score is, and
whether high (`max`) or low (`min`) scores are better. A row of the samples has `cell`, `score`, `state` (`finished`,
`stopped` or `failed`), `gradients` and the settings. Only scores after equal rounds are compared: those of samples that
were stopped early are left out.
"""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import Style, method_name, style

WIDE = 30
"""Positive numbers whose largest is this multiple of the smallest have a logarithmic axis."""


def sensitivity(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> alt.ConcatChart:
    """The score of each sample that ran to the end against each setting."""
    done, looks, views = _finished(samples, metric).dropna(subset="value"), _looks(samples), []
    y = theme.axis(alt.Y, "value", Metric(metric).head, theme.room(done["value"]))
    for setting in settings:
        own = done[["line", "value"]].assign(x=done[setting].infer_objects()).dropna()
        if pd.api.types.is_numeric_dtype(own["x"]) and own["x"].dtype != bool:
            log = 0 < WIDE * own["x"].min() <= own["x"].max()
            x = theme.axis(alt.X, "x", setting, theme.room(own["x"], log), log)
        else:
            x = alt.X("x:N", title=setting, axis=alt.Axis(labelAngle=0))
        point = alt.Chart(own, width=theme.WIDTH, height=theme.HEIGHT).mark_point(opacity=0.8)
        views.append(point.encode(x, y, theme.by_line("color", looks), theme.by_line("shape", looks)))
    stopped = int((samples["state"] == "stopped").sum())
    note = f" {stopped} samples that were stopped early are left out." if stopped else ""
    text = f"{Metric(metric).head} of the samples of a search against each setting: {', '.join(settings)}."
    return theme.grid(views, text, caption=f"Samples that ran all rounds.{note}").configure_legend(symbolSize=60)


def best_so_far(samples: pd.DataFrame, settings: Sequence[str], metric: str, mode: str) -> alt.ConcatChart:
    """The best score so far against the client gradients that the search has computed, samples in their order.

    Samples that were stopped early count with their gradients, but their scores are not compared.
    """
    data = _finished(samples, metric)
    by_cell = data.groupby("line", sort=False)
    best = by_cell["value"].cummax() if mode == "max" else by_cell["value"].cummin()
    data = data.assign(x=by_cell["gradients"].cumsum(), value=best.groupby(data["line"]).ffill())
    log = bool((samples["gradients"] > 0).all())
    x = theme.axis(alt.X, "x", "client gradients of the search", theme.room(data["x"], log), log, format="~s")
    return _lines(samples, data, x, f"best {Metric(metric).head} so far", step=True)


def _finished(samples: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The samples with their `line`, and their score as `value`, in printed units, if they ran to the end."""
    scores = Metric(metric).scale * samples["score"].where(samples["state"] == "finished")
    return samples.assign(line=samples["cell"].map(method_name), value=scores)


def _lines(samples: pd.DataFrame, data: pd.DataFrame, x: alt.X, title: str, step: bool = False) -> alt.ConcatChart:
    looks, y = _looks(samples), theme.axis(alt.Y, "value", title, theme.room(data["value"]))
    view = alt.layer(*theme.lines(looks, x, y, step=step, points=True), width=480, height=260)
    text = f"{title} against {x['title']}. Lines: {'; '.join(looks)}."
    return theme.grid([view], text, data=data[["line", "x", "value"]])


def _looks(samples: pd.DataFrame) -> dict[str, Style]:
    cells = [str(cell) for cell in samples["cell"].unique()]
    return {method_name(cell): style(cell, cells) for cell in cells}
