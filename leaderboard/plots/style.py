"""What all figures share: colours, line styles, legends."""

import io

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito, which colour-blind people can read."""

STYLES = ("-", "--", ":")

WIDE = 30
"""Positive numbers of which the largest is so many times the smallest have a logarithmic axis."""


def line_style(index: int) -> tuple[str, str]:
    """Colour and style of the line with this number; the style changes when the colours are used up."""
    return COLOURS[index % len(COLOURS)], STYLES[index // len(COLOURS) % len(STYLES)]


def plain(axes: Axes) -> None:
    """Without the frame at the top and at the right."""
    axes.spines[["top", "right"]].set_visible(False)


def legend(figure: Figure, fontsize: int = 10, least: int = 1) -> None:
    """One legend beside all subplots, a name for each line, if there are at least so many."""
    lines = {name: line for axes in figure.axes for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(lines) >= least:
        figure.legend(lines.values(), lines.keys(), loc="outside right upper", frameon=False, fontsize=fontsize)


def numeric(values: pd.Series) -> bool:
    """Whether all values are numbers."""
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)


def logarithmic(values: pd.Series) -> bool:
    """Whether values need a logarithmic axis: positive numbers, the largest many times the smallest."""
    return numeric(values) and len(values) > 0 and bool(0 < WIDE * values.min() <= values.max())


def svg(figure: Figure) -> str:
    """The figure as an <svg> element."""
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]
