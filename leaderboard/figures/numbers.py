"""The figures of printed numbers beside measured ones, and of published orders taken apart."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import pandas as pd

from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import label_name
from rollcall.leaderboard.paper.counts import FOLDERS, PAPERS, of_papers
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.paper.orders import Gap, Order
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
    told += " A point without a line is of fewer than three seeds, or exact."
    told += f" No printed number to compare: {', '.join(silent)}." if silent else ""
    looks = {paper: look for paper, look in theme.in_turn(PAPERS.values()).items() if paper not in silent}
    x = theme.axis(alt.X, "value", "measured / printed", EDGES)
    agreement = alt.Chart(pd.DataFrame([{"value": 1}])).mark_rule(color=theme.GREY).encode(x)
    rows_of = theme.rows_axis("row").scale(domain=[*data["row"]])
    marks = theme.intervals(x, rows_of, color=theme.by_line("color", looks))
    view = alt.layer(agreement, *marks, width=420, height=alt.Step(17))
    return theme.grid([view], f"{text}1 is agreement. {told}", data=data, caption=told)


def orders_chart(orders: Sequence[tuple[Order, list[Gap]]]) -> alt.ConcatChart:
    """A plot for each order: a row for each setting, with its gap and interval, and the printed gap as a diamond."""
    views = []
    for order, gaps in orders:
        scale = 1.0 if gaps[0].is_ratio else gaps[0].metric.scale
        data = pd.DataFrame(
            {"row": f"{gap.row.part}: {gap.row.setting}", "value": scale * gap.gap.mean, "paper": gap.printed}
            | {end: scale * value for end, value in zip(("low", "high"), gap.gap.interval(), strict=True)}
            for gap in gaps
        )
        paper = data.assign(value=scale * data["paper"].astype(float)).dropna(subset="value")
        ends = theme.room(pd.concat([data["low"], data["high"], paper["value"]]), gaps[0].is_ratio)
        title = "ratio of errors" if gaps[0].is_ratio else "percentage points"
        x, y = theme.axis(alt.X, "value", title, ends, gaps[0].is_ratio), theme.rows_axis("row")
        none = alt.Chart(pd.DataFrame([{"value": 1 if gaps[0].is_ratio else 0}])).mark_rule(color=theme.GREY).encode(x)
        marks = theme.intervals(x, y, data.drop(columns="paper"), color=alt.value(theme.BLUE))
        diamonds = alt.Chart(paper).mark_point(shape="diamond", size=90, color=theme.VERMILION).encode(x, y)
        layers = [*marks, none, *([diamonds] if len(paper) else [])]
        views.append(alt.layer(*layers, width=420, height=alt.Step(17), title=order.title))
    told = "Dots: the measured gap with its 95 % interval. Diamonds: the printed gap. Grey lines: no gap."
    return theme.grid(views, f"Published orders, taken apart. {told}", columns=1, caption=told)


def _of_paper(prefix: str, all_judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    """Rows of a paper's printed numbers: of its claims, then of its tables."""
    own = [one for one in all_judged if FOLDERS.get(one.experiment.name.partition("/")[0]) == prefix]
    for told in of_papers(told for one in own for told in one.told):
        experiment, result = told.experiment, told.result
        for place in result.places:
            if place.quantity is not None and place.printed:
                parts = ((axis, label.split(" against ")) for axis, label in place.labels.items())
                labels = (" against ".join(_label(experiment, axis, one) for one in both) for axis, both in parts)
                reading = f"reading {place.reading}" if place.reading else ""
                where = [text for text in (result.claim.statement, *labels, reading) if text]
                yield _multiple(experiment, where, place.reached, place.quantity, place.printed)
    for one in own:
        for cell, metric, number, quantity in printed_beside(
            one.ran, printed(one.experiment), one.experiment.report.last_rounds
        ):
            if quantity is not None and number.value and math.isfinite(number.value) and math.isfinite(quantity.mean):
                where = [_label(one.experiment, axis, label) for axis, label in cell.labels.items() if label]
                rounds = cell.rounds_run, cell.rounds
                yield _multiple(one.experiment, [*where, metric.title], rounds, quantity, number.value)


def _label(experiment: PaperExperiment, axis: str, label: str) -> str:
    panel = experiment.panels.get(label) if axis == "panel" else None
    return panel.title or label if panel else label_name(axis, label)


def _multiple(
    experiment: PaperExperiment, where: Sequence[str], rounds: tuple[int, int], quantity: Quantity, number: float
) -> dict[str, Any]:
    """A row of a measured quantity as a multiple of the printed number, after so many of the planned rounds."""
    ends = sorted(end / number if math.isfinite(end) else math.nan for end in quantity.interval())
    name = f"{experiment.title.partition(':')[0]}: {', '.join(where)}"
    short = f", {rounds[0]:,} of {rounds[1]:,} rounds" if rounds[0] < rounds[1] else ""
    numbers = {"printed": f"{number:.4g}", "measured": f"{quantity.mean:.4g}"}
    return {"row": name + short, "value": quantity.mean / number, "low": ends[0], "high": ends[1]} | numbers
