"""Colours, line styles, legends and grids of subplots, for all figures."""

import io
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito, which colour-blind people can read."""

STYLES = ("-", "--", ":")


def line_style(index: int) -> tuple[str, str]:
    """Colour and style of the line with this number; the style changes when the colours are used up."""
    return COLOURS[index % len(COLOURS)], STYLES[index // len(COLOURS) % len(STYLES)]


def plain(axes: Axes) -> None:
    """Remove the frame at the top and at the right."""
    axes.spines[["top", "right"]].set_visible(False)


def legend(figure: Figure, fontsize: int = 10, least: int = 1) -> None:
    """One legend beside all subplots with the name of each line, if there are at least `least` names."""
    lines = {name: line for axes in figure.axes for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(lines) >= least:
        figure.legend(lines.values(), lines.keys(), loc="outside right upper", frameon=False, fontsize=fontsize)


def grid(
    count: int, most: int, size: Callable[[int, int], tuple[float, float]], sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` subplots, at most `most` in a row; `size` gives its inches for columns and rows."""
    columns = min(count, most)
    rows = -(-count // columns)
    figure = Figure(figsize=size(columns, rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).flat)
    for one in axes[count:]:
        one.remove()
    return figure, axes[:count]


def svg(figure: Figure) -> str:
    """The figure as an <svg> element."""
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]
