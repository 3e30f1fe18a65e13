"""Printed numbers against measured ones: differences that a paper prints, where all rounds were run."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from rollcall.leaderboard.paper.claims import ClaimResult, PlaceResult
from rollcall.leaderboard.paper.sentences import unit_of
from rollcall.leaderboard.plots.style import COLOURS, legend, plain


def printed_figure(results: Sequence[ClaimResult]) -> Figure | None:
    """A row for each difference in percent whose printed number was judged: the number and the 95 % interval.

    Args:
        results: of claims.

    Returns:
        None if no number was judged.
    """
    rows = [
        (_name(result, place), place)
        for result in results
        for place in result.places
        if place.size != "not judged" and unit_of(result).percent and result.claim.minus is not None
    ]
    if not rows:
        return None
    figure = Figure(figsize=(7.5, 1.2 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for y, (_, place) in enumerate(rows):
        assert place.quantity is not None
        assert place.printed is not None
        low, high = (100 * end for end in place.quantity.interval())
        if math.isfinite(low + high):
            axes.plot([low, high], [y, y], color=COLOURS[0], linewidth=2)
        label = "measured, 95 % interval" if y == 0 else None
        axes.plot(100 * place.quantity.mean, y, "o", color=COLOURS[0], markersize=5, label=label)
        axes.plot(100 * place.printed, y, "D", color=COLOURS[1], markersize=5, label="printed" if y == 0 else None)
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("difference in test accuracy, percentage points")
    plain(axes)
    legend(figure, fontsize=8)
    return figure


def _name(result: ClaimResult, place: PlaceResult) -> str:
    """The statement, and the place if there are several."""
    return ", ".join(filter(None, (result.claim.statement or result.claim.tag, *place.labels.values())))
