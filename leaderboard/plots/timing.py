"""A picture of `rollcall bench`: what a client's round costs, against how many answer and how many there are."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, NullFormatter

from leaderboard.plots.curves import COLOURS

REFERENCE = "plain loop"
Rows = Sequence[Mapping[str, Any]]


def costs(rows: Rows) -> Figure:
    """Medians, with bars from the fastest to the slowest repetition.

    Args:
        rows: as `rollcall bench --json` gives them.
    """
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    most_clients, most_active = (max(row[name] for row in rows) for name in ("clients", "active"))
    colours = dict(zip([*dict.fromkeys(row["engine"] for row in rows), REFERENCE], COLOURS, strict=False))
    _panel(left, [row for row in rows if row["clients"] == most_clients], "active", colours)
    left.set_title(f"{most_clients:,} clients", fontsize=9)
    left.set_xlabel("active clients")
    left.set_ylabel("ms per client-round")
    _panel(right, [row for row in rows if row["active"] == most_active], "clients", colours)
    right.set_title(f"{most_active:,} active", fontsize=9)
    right.set_xlabel("clients")
    handles = {name: line for line, name in zip(*left.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    return figure


def _panel(axes: Axes, rows: Rows, x: str, colours: Mapping[str, str]) -> None:
    """A line for each engine and setting, and one for the plain loop, which ran beside each of the engines."""
    others = [name for name in ("steps", "batch") if len({row[name] for row in rows}) > 1]
    series: dict[tuple[str, ...], dict[float, list[tuple[float, float, float]]]] = {}
    for row in rows:
        setting = tuple(f"{name} {row[name]}" for name in others)
        for name, cost in ((row["engine"], "ms_per_client_round"), (REFERENCE, "reference_ms_per_client_round")):
            measured = row[cost], row[f"{cost}_min"], row[f"{cost}_max"]
            series.setdefault((name, *setting), {}).setdefault(row[x], []).append(measured)
    markers = {setting: "osv^D*"[i % 6] for i, setting in enumerate(dict.fromkeys(key[1:] for key in series))}
    for key, points in series.items():
        middle = np.array([np.median([median for median, _, _ in measured]) for _, measured in sorted(points.items())])
        least = np.array([min(low for _, low, _ in measured) for _, measured in sorted(points.items())])
        most = np.array([max(high for _, _, high in measured) for _, measured in sorted(points.items())])
        axes.errorbar(
            sorted(points),
            middle,
            yerr=(middle - least, most - middle),
            color=colours[key[0]],
            linestyle=":" if key[0] == REFERENCE else "-",
            marker=markers[key[1:]],
            capsize=3,
            label=", ".join(key),
        )
    axes.set_xlim(min(row[x] for row in rows) / 1.5, max(row[x] for row in rows) * 1.5)  # room for a single point
    axes.set_xscale("log")
    axes.set_xticks(ticks := sorted({row[x] for row in rows}), [f"{tick:,}" for tick in ticks])
    axes.set_yscale("log")
    for axis, formatter in ((axes.xaxis, NullFormatter()), (axes.yaxis, LogFormatter(minor_thresholds=(2, 0.5)))):
        axis.set_minor_formatter(formatter)
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.spines[["top", "right"]].set_visible(False)
