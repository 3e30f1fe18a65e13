"""Figures of printed numbers beside measured ones."""

import math
from collections.abc import Iterator, Mapping, Sequence

from rollcall.leaderboard.names import COLOURS, Style, label_name, label_text
from rollcall.leaderboard.paper.counts import FOLDERS, PAPERS, of_papers
from rollcall.leaderboard.paper.quantities import Quantity
from rollcall.leaderboard.paper.reported import printed
from rollcall.leaderboard.paper.reproduction import Judged, printed_beside
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

EDGES = (-2.0, 3.0)
"""The least and the largest multiple of a printed number that is drawn at its place."""


def printed_figure(all_judged: Sequence[Judged]) -> Figure | None:
    """A row for each number that a paper prints: the measured one as a multiple of it, with its 95 % interval.

    Numbers of claims and of tables; one printed as 0 has no multiple. None if nothing was measured.
    """
    rows = [row | {"line": paper} for prefix, paper in PAPERS.items() for row in _of_paper(prefix, all_judged)]
    if not rows:
        return None
    shown = {row["line"] for row in rows}
    silent = [paper for paper in PAPERS.values() if paper not in shown]
    alt = f"Measured numbers as multiples of printed ones. {len(rows)} numbers of {len(shown)} papers; 1 is agreement."
    told = f"A multiple beyond {EDGES[0]:g} or {EDGES[1]:g} is drawn at the edge."
    told += f" No printed number to compare: {', '.join(silent)}." if silent else ""
    colours = zip(PAPERS.values(), list(COLOURS.values())[: len(PAPERS)], strict=True)
    styles = {paper: Style(colour, (1, 0), "circle") for paper, colour in colours if paper in shown}
    x = channel("value", "measured / printed", domain=EDGES, nice=False)
    y = channel("row", kind="nominal", labelLimit=620, grid=True) | {"sort": None}
    numbers = [channel("printed", kind="nominal"), channel("measured", kind="nominal")]
    tips = [channel("row", "of", kind="nominal"), *numbers, channel("value", "multiple")]
    layers = [
        layer("rule", x={"datum": 1}, color=GREY),
        layer("rule", x=x | {"field": "low"}, x2={"field": "high"}, y=y, mark_size=2,
              **by_line(styles, "color", legend={})),
        layer("point", x=x, y=y, tooltip=tips, mark_filled=True, mark_size=60, mark_opacity=1,
              **by_line(styles, "color", legend={})),
    ]  # fmt: skip
    return figure([view(layers, width=420, height={"step": 17})], {"long": rows}, f"{alt} {told}", caption=told)


def _of_paper(prefix: str, all_judged: Sequence[Judged]) -> Iterator[Row]:
    """Rows of a paper's printed numbers: of its claims, then of its tables."""
    own = [one for one in all_judged if FOLDERS.get(one.experiment.name.partition("/")[0]) == prefix]
    for told in of_papers(told for one in own for told in one.told):
        experiment, result = told.experiment, told.result
        for place in result.places:
            if place.quantity is not None and place.printed:
                parts = ((axis, label.split(" against ")) for axis, label in place.labels.items())
                labels = (" against ".join(label_name(axis, one) for one in both) for axis, both in parts)
                reading = f"reading {place.reading}" if place.reading else ""
                name = ", ".join(filter(None, (result.claim.statement, experiment.name, *labels, reading)))
                yield _multiple(_shortened(name, *place.reached), place.quantity, place.printed)
    for one in own:
        for cell, metric, number, quantity in printed_beside(
            one.ran, printed(one.experiment), one.experiment.report.last_rounds
        ):
            if quantity is not None and number.value and math.isfinite(number.value) and math.isfinite(quantity.mean):
                labels = (label_text(axis, label) for axis, label in cell.labels.items() if label)
                name = ", ".join([one.experiment.name, *labels, metric.name])
                yield _multiple(_shortened(name, cell.rounds_run, cell.rounds), quantity, number.value)


def _shortened(name: str, rounds: int, planned: int) -> str:
    return f"{name} ({rounds:,} of {planned:,} rounds)" if rounds < planned else name


def _multiple(name: str, quantity: Quantity, number: float) -> Row:
    """A row of a measured quantity as a multiple of the printed number."""
    low, high = sorted(end / number for end in quantity.interval())
    row: Row = {"row": name, "printed": f"{number:.4g}", "measured": f"{quantity.mean:.4g}"}
    ends = {"value": quantity.mean / number, "low": low, "high": high}
    return row | {key: min(max(value, EDGES[0]), EDGES[1]) for key, value in ends.items()}


def beside(name: str, quantity: Quantity, number: float, scale: float) -> list[Row]:
    """The two rows of a measured quantity and of its printed number, for `beside_figure`."""
    low, high = quantity.interval()
    measured = {"row": name, "value": scale * quantity.mean, "low": scale * low, "high": scale * high}
    return [measured | {"line": MEASURED}, {"row": name, "value": scale * number, "line": PRINTED}]


def beside_figure(rows: Sequence[Row], title: str, alt: str) -> Figure:
    """A row for each number: as printed, and as measured with its 95 % interval.

    Args:
        rows: see `beside`.
        title: of the x axis.
        alt: what it shows, in words.
    """
    styles: Mapping[str, Style] = {
        MEASURED: Style(BLUE, (1, 0), "circle"),
        PRINTED: Style(VERMILION, (1, 0), "diamond"),
    }
    x = channel("value", title)
    y = channel("row", kind="nominal", labelLimit=500, grid=True) | {"sort": None}
    tips = [channel("row", "of", kind="nominal"), channel("value", "value"), channel("low"), channel("high")]
    layers: list[Spec] = [
        layer("rule", x=x | {"field": "low"}, x2={"field": "high"}, y=y, mark_size=2,
              **by_line(styles, "color", legend={})),
        layer("point", x=x, y=y, tooltip=tips, mark_filled=True, mark_size=60, mark_opacity=1,
              **by_line(styles, "color", "shape", legend={})),
    ]  # fmt: skip
    return figure([view(layers, width=480, height={"step": 18})], {"long": rows}, alt)
