"""Figures of printed numbers beside measured ones."""

from collections.abc import Sequence

from rollcall.leaderboard.names import Style, label_name
from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.paper.quantities import Quantity
from rollcall.leaderboard.paper.sentences import unit_of
from rollcall.leaderboard.plots.figure import (
    BLUE,
    GREY,
    VERMILION,
    Figure,
    Row,
    Spec,
    by_line,
    channel,
    figure,
    layer,
    view,
)

PRINTED, MEASURED = "printed", "measured, 95 % interval"


def printed_figure(results: Sequence[ClaimResult]) -> Figure | None:
    """A row for each difference in percent whose printed number was judged; None if no number was judged.

    Args:
        results: of claims.
    """
    rows = []
    for result in results:
        for place in result.places:
            if place.size == "not judged" or not unit_of(result).percent or result.claim.minus is None:
                continue
            assert place.quantity is not None
            assert place.printed is not None
            parts = ((axis, label.split(" against ")) for axis, label in place.labels.items())
            labels = (" against ".join(label_name(axis, one) for one in both) for axis, both in parts)
            name = ", ".join(filter(None, (result.claim.statement or result.claim.tag, *labels)))
            rows += beside(name, place.quantity, place.printed, 100)
    alt = f"Printed and measured differences. {len(rows) // 2} differences in test accuracy that papers print, each"
    title = "difference in test accuracy, percentage points"
    zero = layer("rule", x={"datum": 0}, color=GREY)
    return beside_figure(rows, title, f"{alt} with the measured interval.", zero) if rows else None


def beside(name: str, quantity: Quantity, number: float, scale: float) -> list[Row]:
    """The two rows of a measured quantity and of its printed number, for `beside_figure`."""
    low, high = quantity.interval()
    measured = {"row": name, "value": scale * quantity.mean, "low": scale * low, "high": scale * high}
    return [measured | {"line": MEASURED}, {"row": name, "value": scale * number, "line": PRINTED}]


def beside_figure(rows: Sequence[Row], title: str, alt: str, *below: Spec) -> Figure:
    """A row for each number: as printed, and as measured with its 95 % interval.

    Args:
        rows: see `beside`.
        title: of the x axis.
        alt: what it shows, in words.
        below: layers below.
    """
    styles = {MEASURED: Style(BLUE, (1, 0), "circle"), PRINTED: Style(VERMILION, (1, 0), "diamond")}
    x = channel("value", title)
    y = channel("row", kind="nominal", labelLimit=500, grid=True) | {"sort": None}
    tips = [channel("row", "of", kind="nominal"), channel("value", "value"), channel("low"), channel("high")]
    layers = [
        *below,
        layer("rule", x=x | {"field": "low"}, x2={"field": "high"}, y=y, mark_size=2,
              **by_line(styles, "color", legend={})),
        layer("point", x=x, y=y, tooltip=tips, mark_filled=True, mark_size=60, mark_opacity=1,
              **by_line(styles, "color", "shape", legend={})),
    ]  # fmt: skip
    return figure([view(layers, width=480, height={"step": 18})], {"long": rows}, alt)
