"""The figure of `rollcall bench`: the cost of a client's round against the numbers of active and of all clients."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, NullFormatter

from rollcall.leaderboard.plots.style import COLOURS, legend, plain

REFERENCE = "plain loop"
MARKERS = "osv^D*"
Y = "ms_per_client_round"


def costs(measured: Sequence[Mapping[str, Any]]) -> Figure:
    """Medians, with bars from the fastest to the slowest repetition.

    Args:
        measured: rows as `rollcall bench --json` prints them.
    """
    rows = pd.DataFrame(measured)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    clients, active = rows["clients"].max(), rows["active"].max()
    _draw(left, rows[rows["clients"] == clients], "active")
    left.set(xlabel="active clients", ylabel="ms per client and round")
    left.set_title(f"{clients:,} clients", fontsize=9)
    _draw(right, rows[rows["active"] == active], "clients")
    right.set_xlabel("clients")
    right.set_title(f"{active:,} active clients", fontsize=9)
    legend(figure)
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    """A line for each engine and setting, and one for the plain loop, which ran beside each engine."""
    looped = rows.drop(columns=[Y, f"{Y}_min", f"{Y}_max"]).rename(columns=lambda name: name.removeprefix("reference_"))
    both = pd.concat([rows, looped.assign(engine=REFERENCE)])
    varying = [name for name in ("steps", "batch") if rows[name].nunique() > 1]
    colours = dict(zip(both["engine"].unique(), COLOURS, strict=False))
    markers: dict[str, str] = {}
    for (engine, *setting), line in both.groupby(["engine", *varying], sort=False):
        name = ", ".join(f"{key} {value}" for key, value in zip(varying, setting, strict=True))
        points = line.groupby(x).agg({Y: "median", f"{Y}_min": "min", f"{Y}_max": "max"})
        axes.errorbar(
            points.index,
            points[Y],
            yerr=(points[Y] - points[f"{Y}_min"], points[f"{Y}_max"] - points[Y]),
            color=colours[engine],
            linestyle=":" if engine == REFERENCE else "-",
            marker=markers.setdefault(name, MARKERS[len(markers) % len(MARKERS)]),
            capsize=3,
            label=", ".join(filter(None, [str(engine), name])),
        )
    ticks = sorted(rows[x].unique())
    axes.set_xlim(ticks[0] / 1.5, ticks[-1] * 1.5)  # room for a single point
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_yscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.yaxis.set_major_formatter(LogFormatter())
    plain(axes)
