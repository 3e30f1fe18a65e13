"""The figure of printed numbers beside measured ones."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import pandas as pd

from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import label_name, label_text
from rollcall.leaderboard.paper.counts import FOLDERS, PAPERS, of_papers
from rollcall.leaderboard.paper.quantities import Quantity
from rollcall.leaderboard.paper.reported import printed
from rollcall.leaderboard.paper.reproduction import Judged, printed_beside

EDGES = (-2.0, 3.0)
"""The least and the largest multiple of a printed number that is drawn at its place."""


def printed_chart(all_judged: Sequence[Judged]) -> alt.ConcatChart | None:
    """A row for each number that a paper prints: the measured one as a multiple of it, with its 95 % interval.

    Numbers of claims and of tables; one printed as 0 has no multiple. None if nothing was measured.
    """
    rows = [row | {"line": paper} for prefix, paper in PAPERS.items() for row in _of_paper(prefix, all_judged)]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    data[["value", "low", "high"]] = data[["value", "low", "high"]].clip(*EDGES)
    text = f"Measured numbers as multiples of printed ones. {len(data)} numbers of {data['line'].nunique()} papers; "
    silent = [paper for paper in PAPERS.values() if paper not in {*data["line"]}]
    told = f"A multiple beyond {EDGES[0]:g} or {EDGES[1]:g} is drawn at the edge."
    told += f" No printed number to compare: {', '.join(silent)}." if silent else ""
    looks = {paper: look for paper, look in theme.in_turn(PAPERS.values()).items() if paper not in silent}
    x = theme.axis(alt.X, "value", "measured / printed", EDGES)
    agreement = alt.Chart(pd.DataFrame([{"value": 1}])).mark_rule(color=theme.GREY).encode(x)
    marks = theme.intervals(x, theme.rows_axis("row"), color=theme.by_line("color", looks))
    view = alt.layer(agreement, *marks).properties(width=420, height=alt.Step(17))
    return theme.grid([view], f"{text}1 is agreement. {told}", data=data, caption=told)


def _of_paper(prefix: str, all_judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
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
                yield _multiple(name, place.reached, place.quantity, place.printed)
    for one in own:
        for cell, metric, number, quantity in printed_beside(
            one.ran, printed(one.experiment), one.experiment.report.last_rounds
        ):
            if quantity is not None and number.value and math.isfinite(number.value) and math.isfinite(quantity.mean):
                labels = (label_text(axis, label) for axis, label in cell.labels.items() if label)
                name = ", ".join([one.experiment.name, *labels, metric.name])
                yield _multiple(name, (cell.rounds_run, cell.rounds), quantity, number.value)


def _multiple(name: str, rounds: tuple[int, int], quantity: Quantity, number: float) -> dict[str, Any]:
    """A row of a measured quantity as a multiple of the printed number, after so many of the planned rounds."""
    low, high = sorted(end / number for end in quantity.interval())
    short = f" ({rounds[0]:,} of {rounds[1]:,} rounds)" if rounds[0] < rounds[1] else ""
    numbers = {"printed": f"{number:.4g}", "measured": f"{quantity.mean:.4g}"}
    return {"row": name + short, "value": quantity.mean / number, "low": low, "high": high} | numbers
