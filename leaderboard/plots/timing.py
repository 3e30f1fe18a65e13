"""The figure of `rollcall bench`: the cost of a client's round against the numbers of active and of all clients."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, NullFormatter

from leaderboard.plots.style import COLOURS, legend, plain

REFERENCE = "plain loop"
MARKERS = "osv^D*"
Rows = Sequence[Mapping[str, Any]]
Series = dict[tuple[str, ...], dict[float, list[tuple[float, float, float]]]]
"""(median, fastest, slowest) of each measurement, by x, by line: the engine, then the settings that vary."""


def costs(rows: Rows) -> Figure:
    """Medians, with bars from the fastest to the slowest repetition.

    Args:
        rows: as `rollcall bench --json` prints them.
    """
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    most_clients, most_active = (max(row[name] for row in rows) for name in ("clients", "active"))
    colours = dict(zip([*dict.fromkeys(row["engine"] for row in rows), REFERENCE], COLOURS, strict=False))
    _draw(left, [row for row in rows if row["clients"] == most_clients], "active", colours)
    left.set_title(f"{most_clients:,} clients", fontsize=9)
    left.set_xlabel("active clients")
    left.set_ylabel("ms per client and round")
    _draw(right, [row for row in rows if row["active"] == most_active], "clients", colours)
    right.set_title(f"{most_active:,} active clients", fontsize=9)
    right.set_xlabel("clients")
    legend(figure)
    return figure


def _draw(axes: Axes, rows: Rows, x: str, colours: Mapping[str, str]) -> None:
    """A line for each engine and setting, and one for the plain loop, which ran beside each engine."""
    series = _series(rows, x)
    settings = list(dict.fromkeys(line[1:] for line in series))
    for line, points in series.items():
        measured = [np.array(points[value]) for value in sorted(points)]
        middle = np.array([np.median(repeated[:, 0]) for repeated in measured])
        fastest = np.array([repeated[:, 1].min() for repeated in measured])
        slowest = np.array([repeated[:, 2].max() for repeated in measured])
        axes.errorbar(
            sorted(points),
            middle,
            yerr=(middle - fastest, slowest - middle),
            color=colours[line[0]],
            linestyle=":" if line[0] == REFERENCE else "-",
            marker=MARKERS[settings.index(line[1:]) % len(MARKERS)],
            capsize=3,
            label=", ".join(line),
        )
    _scale(axes, sorted({row[x] for row in rows}))


def _series(rows: Rows, x: str) -> Series:
    varying = [name for name in ("steps", "batch") if len({row[name] for row in rows}) > 1]
    series: Series = {}
    for row in rows:
        setting = [f"{name} {row[name]}" for name in varying]
        for name, cost in ((row["engine"], "ms_per_client_round"), (REFERENCE, "reference_ms_per_client_round")):
            measured = row[cost], row[f"{cost}_min"], row[f"{cost}_max"]
            series.setdefault((name, *setting), {}).setdefault(row[x], []).append(measured)
    return series


def _scale(axes: Axes, ticks: Sequence[float]) -> None:
    """Logarithmic axes, with a tick for each measured x."""
    axes.set_xlim(ticks[0] / 1.5, ticks[-1] * 1.5)  # room for a single point
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_yscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.yaxis.set_major_formatter(LogFormatter())
    plain(axes)
