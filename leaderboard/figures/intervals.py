"""Figures of rows with an interval each: boards, mean ranks, printed numbers beside measured ones, published orders."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import label_name, method_name
from rollcall.leaderboard.paper.claims import FOLDERS, PAPERS, of_papers
from rollcall.leaderboard.paper.experiment import PaperExperiment, printed, printed_for
from rollcall.leaderboard.paper.quantities import Quantity, estimate
from rollcall.leaderboard.paper.reproduction import Judged, Written
from rollcall.leaderboard.tables import Overall

if TYPE_CHECKING:  # import torch, which other figures need not wait for
    from rollcall.leaderboard.paper.findings import Gap
    from rollcall.leaderboard.standing import Standing

EDGES = (-2.0, 3.0)
"""The least and the largest multiple of a printed number that is drawn at its place."""


def _forest(
    data: pd.DataFrame, quantity: str, ends: tuple[float, float], colour: Any = None, *, log: bool = False,
    width: int = 420, at: float | None = None, more: Sequence[Any] = (), **view: Any,
) -> alt.LayerChart | alt.FacetChart:  # fmt: skip
    """A row for each name in `row`: a point at `value`, a line from `low` to `high`; a grey rule `at` a value."""
    x, y = theme.axis(alt.X, "value", quantity, ends, log), theme.rows_axis("row").scale(domain=[*data["row"].unique()])
    marks = theme.intervals(x, y, data, color=colour or alt.value(theme.BLUE))
    rules = [] if at is None else [alt.Chart(pd.DataFrame([{"value": at}])).mark_rule(color=theme.GREY).encode(x)]
    return alt.layer(*rules, *marks, *(one.encode(x, y) for one in more), width=width, height=alt.Step(17), **view)


def board_chart(standing: "Standing") -> alt.ConcatChart:
    """A plot for each condition: a row for each method, the best mean rank first, with its accuracy and interval."""
    from rollcall.leaderboard.standing import interval

    colour = theme.by_line("color", theme.in_turn(["best group", "others"]))
    views = []
    for name, table in standing.values.items():
        if table.empty:  # no method can have it
            continue
        rows = []
        for method in (method for method in standing.order if method in table):
            mean, half = interval(table[method])
            row = {"row": method_name(method), "value": mean, "low": mean - half, "high": mean + half}
            rows.append(row | {"line": "best group" if method in standing.group(name) else "others"})
        data = pd.DataFrame(rows)
        ends = theme.room(pd.concat([data["low"], data["high"]]))
        views.append(_forest(data, "test accuracy (%)", ends, colour, width=theme.WIDTH, title=name))
    told = f"Mean and 95 % interval over {len(standing.board.search.seeds)} independent searches."
    return theme.grid(views, f"{standing.board.experiment.title}. {told}", caption=told)


def overall_chart(over: Overall) -> alt.ConcatChart:
    """A row for each method with its mean rank and its 95 % interval over seeds, the best first."""
    ranks = {str(method): estimate(over.ranks[method].to_numpy()) for method in over.ranks}
    rows = [(method_name(method), rank.mean, *rank.interval()) for method, rank in ranks.items()]
    data = pd.DataFrame(rows, columns=["row", "value", "low", "high"])
    text = f"Mean ranks of methods over {len(over.blocks)} conditions by {over.metric.title}."
    view = _forest(data, "mean rank, 1 is best", (1, len(rows)))
    return theme.grid([view], text, caption="Lines: 95 %, Student's t over seeds.")


def printed_chart(all_judged: Sequence[Judged]) -> alt.ConcatChart | None:
    """A row for each number that a paper prints: the measured one as a multiple of it, with its 95 % interval.

    Numbers of claims and of tables; one printed as 0 has no multiple. None if nothing was measured.
    """
    rows = [row | {"line": paper} for prefix, paper in PAPERS.items() for row in _of_paper(prefix, all_judged)]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    data[["value", "low", "high"]] = data[["value", "low", "high"]].clip(*EDGES)
    silent = [paper for paper in PAPERS.values() if paper not in {*data["line"]}]
    told = f"A multiple beyond {EDGES[0]:g} or {EDGES[1]:g} is drawn at the edge."
    told += " A point without a line is of fewer than three seeds, or exact. A line to the edge has one end only."
    told += f" No printed number to compare: {', '.join(silent)}." if silent else ""
    looks = {paper: look for paper, look in theme.in_turn(PAPERS.values()).items() if paper not in silent}
    view = _forest(data, "measured / printed", EDGES, theme.by_line("color", looks), at=1)
    text = f"Measured numbers as multiples of printed ones. {len(data)} numbers of {data['line'].nunique()} papers; "
    return theme.grid([view], f"{text}1 is agreement. {told}", caption=told)


def orders_chart(orders: Sequence[tuple[Written, "list[Gap]"]]) -> alt.ConcatChart:
    """A plot for each order: a row for each setting, with its gap and interval, and the printed gap as a diamond."""
    views = []
    for order, gaps in orders:
        scale, is_ratio = (1.0, True) if gaps[0].gap.logarithmic else (gaps[0].metric.scale, False)
        rows = [(f"{gap.row.part}: {gap.row.setting}", gap.gap.mean, *gap.gap.interval(), gap.printed) for gap in gaps]
        data = pd.DataFrame(rows, columns=["row", "value", "low", "high", "paper"])
        data[["value", "low", "high", "paper"]] = scale * data[["value", "low", "high", "paper"]].astype(float)
        paper = data[["row", "paper"]].dropna().rename(columns={"paper": "value"})
        ends = theme.room(data[["low", "high", "paper"]].to_numpy().ravel(), is_ratio)
        diamonds = alt.Chart(paper).mark_point(shape="diamond", size=90, color=theme.VERMILION)
        title = "ratio of errors" if is_ratio else "percentage points"
        more = [diamonds] if len(paper) else []
        own = data.drop(columns="paper")
        views.append(_forest(own, title, ends, log=is_ratio, at=float(is_ratio), more=more, title=order.title))
    told = "Dots: the measured gap with its 95 % interval. Diamonds: the printed gap. Grey lines: no gap."
    return theme.grid(views, f"Published orders, taken apart. {told}", columns=1, caption=told)


def _of_paper(prefix: str, all_judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    """Rows of a paper's printed numbers: of its claims, then of its tables."""
    own = [one for one in all_judged if FOLDERS.get(one.experiment.name.partition("/")[0]) == prefix]
    for told in of_papers(told for one in own for told in one.told):
        for place in told.result.places:
            if place.quantity is not None and place.printed:
                labels = [_label(told.experiment, *pair) for pair in place.labels.items()]
                reading = f"reading {place.reading}" if place.reading else ""
                where = [text for text in (told.result.claim.statement, *labels, reading) if text]
                yield _multiple(told.experiment, where, place.reached, place.quantity, place.printed)
    for one in own:
        numbers, last_rounds = printed(one.experiment), one.experiment.report.last_rounds
        for cell, metric in product(one.ran, dict.fromkeys(number.metric for number in numbers)):
            known, values = printed_for(cell.labels, metric, numbers), cell.finals(metric, last_rounds)
            if known is None or not known.value or not math.isfinite(known.value) or values.empty or cell.diverged:
                continue
            quantity: Quantity = estimate(values.to_numpy(), cell.exact)
            quantity = quantity if metric.threshold is None else cell.crossing(metric)
            if math.isfinite(quantity.mean):
                where = [_label(one.experiment, axis, label) for axis, label in cell.labels.items() if label]
                rounds = cell.rounds_run, cell.rounds
                yield _multiple(one.experiment, [*where, metric.title], rounds, quantity, known.value)


def _label(experiment: PaperExperiment, axis: str, labels: str) -> str:
    """A label as people read it, or two of them, `a against b`; a panel by its title."""
    titles = {name: panel.title for name, panel in experiment.panels.items()} if axis == "panel" else {}
    return " against ".join(titles.get(label) or label_name(axis, label) for label in labels.split(" against "))


def _multiple(
    experiment: PaperExperiment, where: Sequence[str], rounds: tuple[int, int], quantity: Quantity, number: float
) -> dict[str, Any]:
    """A row of a measured quantity as a multiple of the printed number, after so many of the planned rounds."""
    interval = quantity.interval()
    ends = sorted(end / number if any(map(math.isfinite, interval)) else math.nan for end in interval)
    name = f"{experiment.title.partition(':')[0]}: {', '.join(where)}"
    short = f", {rounds[0]:,} of {rounds[1]:,} rounds" if rounds[0] < rounds[1] else ""
    return {"row": name + short, "value": quantity.mean / number, "low": ends[0], "high": ends[1]}
