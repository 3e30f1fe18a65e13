"""The standing of methods on a board, from their entries: results by condition, ranks, differences, groups and costs.

A value of a method under a condition is that of one search: the mean test accuracy of its final runs, in points. The
searches are the independent repetitions, so every interval is Student's t over them and contains the noise of tuning.
All methods have the same draws and seeds, so differences are paired by search.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.search.board import Board
from rollcall.benchmark.search.entry import ENDING, Entry, Final
from rollcall.benchmark.search.space import domain
from rollcall.leaderboard.render import Column, Number, Table
from rollcall.leaderboard.render import Entry as Shown
from rollcall.leaderboard.runs import HERE, PACKAGE
from rollcall.participation.summary import summarise
from rollcall.participation.theory.weights import l1_distance, normalised

LEVEL = 0.05
"""Of tests; intervals are of 95 %."""

SYMBOLS = {"probability": "p", "stationary": "π", "correlation": "λ", "share": "c", "least_loss": "F*"}
"""What a method knows, as the papers write it."""

EXPECTATIONS = {
    "nothing to correct": "Under `equal`, no method is more than 2 points above FedAvg. Decides: 2 points.",
    "knowledge pays": (
        "On standard/fashion, under `coupled`, fedavg_known is at least 2 points above FedAvg. Decides: 2 points."
    ),
    "memory pays with absences": (
        "The gain of mifa and fedvarp over FedAvg (mean of the two) is larger under `absences` than under `coupled`. "
        "Decides: the sign, 0 points."
    ),
    "no method for all": "No method is in the best group under all patterns. Decides: the groups.",
}
"""Written before the runs. The first three hold or fail where the 95 % interval of the difference leaves out the size
that decides; otherwise they are undecided."""

Interval = tuple[float, float]
"""A mean over searches, and half the width of its interval."""


@dataclass(frozen=True)
class Difference:
    """A paired difference of two methods under a condition, in points.

    Attributes:
        mean, half: with its interval.
        p: of the t test, corrected for all methods under the condition (Holm).
    """

    mean: float
    half: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= LEVEL


@dataclass(frozen=True)
class Standing:
    """The methods of a board that have an entry.

    Attributes:
        board: with its rule.
        entries: by method.
    """

    board: Board
    entries: dict[str, Entry]

    @cached_property
    def values(self) -> dict[str, pd.DataFrame]:
        """By condition: a row for each search, a column for each method that is possible there.

        A final run that diverged counts 0, and so does a search whose samples all diverged.
        """
        return {
            name: pd.DataFrame(
                {
                    method: [100 * float(np.mean([run.value or 0.0 for run in one.finals] or [0.0])) for one in cells]
                    for method, entry in self.entries.items()
                    if (cells := entry.cells.get(name))
                }
            )
            for name in self.board.patterns
        }

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The mean over conditions of each method's rank: a row for each search, a column for each method.

        The best has 1, equal values share the mean of theirs. A condition that a method cannot have is left out of its
        mean; the other methods are ranked there without it.
        """
        ranked = [table.rank(axis=1, ascending=False) for table in self.values.values()]
        return pd.concat(ranked).groupby(level=0).mean()[list(self.entries)]

    @cached_property
    def order(self) -> list[str]:
        """The methods, the best mean rank first."""
        return [str(name) for name in self.ranks.mean().sort_values(kind="stable").index]

    def differences(self, name: str, baseline: str) -> dict[str, Difference]:
        """The differences of all other methods to a baseline under a condition."""
        table = self.values.get(name)
        if table is None or baseline not in table:
            return {}
        others = table.drop(columns=baseline).sub(table[baseline], axis=0)
        p = holm({str(method): p_value(others[method]) for method in others})
        return {method: Difference(*interval(others[method]), p[method]) for method in p}

    def best(self, name: str) -> str:
        """The method with the highest mean under a condition."""
        return str(self.values[name].mean().idxmax())

    def group(self, name: str) -> set[str]:
        """The methods under a condition that are not told apart from the best."""
        best = self.best(name)
        return {best, *(method for method, one in self.differences(name, best).items() if not one.significant)}

    def losses(self, method: str, control: str) -> dict[str, Interval]:
        """By condition, the mean of a method under the control less that under the condition."""
        return {
            name: interval(self.values[control][method] - table[method])
            for name, table in self.values.items()
            if name != control and method in table
        }

    def conditions(self, method: str) -> list[str]:
        """The conditions that are possible for a method."""
        return [name for name, table in self.values.items() if method in table]

    def finals(self, method: str) -> list[Final]:
        """All final runs of a method."""
        return [run for cells in self.entries[method].cells.values() for one in cells for run in one.finals]


def interval(values: Sequence[float] | pd.Series) -> Interval:
    """The mean, and half the width of its 95 % interval (Student's t); NaN for one value."""
    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2:
        return float(numbers.mean()), math.nan
    error = numbers.std(ddof=1) / math.sqrt(len(numbers))
    return float(numbers.mean()), float(stdtrit(len(numbers) - 1, 1 - LEVEL / 2) * error)


def p_value(differences: pd.Series) -> float:
    """Of the paired t test; 1 for equal values, 0 for differences that are all the same and not 0."""
    if len(differences) < 2 or not differences.any():
        return 1.0
    if np.ptp(differences) == 0:
        return 0.0
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return float(2 * stdtr(len(differences) - 1, -abs(differences.mean() / error)))


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """p-values corrected for their number (Holm 1979): the k-th smallest of n times n - k + 1, made increasing."""
    corrected: dict[str, float] = {}
    largest = 0.0
    for k, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, p[name] * (len(p) - k)))
        corrected[name] = largest
    return {name: corrected[name] for name in p}


def standing(board: Board, store: Path | None = None, more: Sequence[Entry] = (), kept: bool = True) -> Standing:
    """The board with its entries: `kept` ones, those in the store, and more, which replace them.

    Raises:
        SettingError: there is none, or one of the user's own is of another rule.
    """
    folders = [*([PACKAGE, HERE] if kept else []), *([store] if store else [])]
    files = {file.stem: file for folder in folders for file in sorted((folder / board.name).glob(f"*{ENDING}"))}
    entries = {name: Entry.read(file) for name, file in files.items()} | {entry.method: entry for entry in more}
    for name, entry in entries.items():
        if entry.rule != board.rule:
            raise SettingError(f"{files.get(name, name)}: is an entry of another rule of {board.name}; enter it again")
    if not entries:
        raise SettingError(f"{board.name}: has no entries; first: rollcall enter METHOD --board {board.name}")
    known = [name for name in board.methods if name in entries]
    return Standing(board, {name: entries[name] for name in [*known, *sorted(entries.keys() - set(known))]})


def points(value: Interval, sign: str = "") -> str:
    """`91.2 ± 0.4`; with the sign "+", of a difference."""
    mean, half = value
    return "" if math.isnan(mean) else f"{mean:{sign}z.1f}" + ("" if math.isnan(half) else f" ± {half:.1f}")


def result_table(standing: Standing, baseline: str) -> Table:
    """A row for each method: accuracy by condition, worst condition, largest loss, mean rank, and what it needs."""
    board, order = standing.board, standing.order
    control = board.patterns[0]
    columns: list[tuple[Column, list[Shown]]] = [(Column("method", words=True, axis="algorithm"), list(order))]
    for name, table in standing.values.items():
        group, apart = standing.group(name), standing.differences(name, baseline)
        cells: list[Shown] = []
        for method in order:
            if method not in table:
                cells.append("")
                continue
            mean, half = interval(table[method])
            mark = "†" if method in apart and apart[method].significant else ""
            cells.append(Number(mean, half, f"{mean:.1f}", f"{half:.1f}{mark}", best=method in group))
        columns.append((Column(name, group=name), cells))
    worst = {
        method: min((interval(standing.values[name][method]), name) for name in standing.conditions(method))
        for method in order
    }
    losses = {method: max(standing.losses(method, control).values(), default=(math.nan, math.nan)) for method in order}
    columns += [
        (Column("worst", group="worst"), [f"{worst[method][0][0]:.1f} {worst[method][1]}" for method in order]),
        (Column(f"largest loss from {control}", group="worst"), [points(losses[method]) for method in order]),
        (Column("mean rank", group="rank"), [points(interval(standing.ranks[method])) for method in order]),
        (
            Column("best group in", group="rank"),
            [f"{count_best(standing, method)} of {len(board.patterns)}" for method in order],
        ),
    ]
    marks = [standing.entries[method].marks for method in order]
    columns += [
        (
            Column("knows", words=True, group="needs"),
            [" ".join(SYMBOLS.get(one, one) for one in mark.knows) for mark in marks],
        ),
        (Column("stores", words=True, group="needs"), [mark.stores for mark in marks]),
        (Column("sends", group="needs"), [f"{mark.up}+{mark.down}" for mark in marks]),
        (Column("absent compute", words=True, group="needs"), ["yes" if mark.absent else "" for mark in marks]),
    ]
    return Table.of_columns(columns, caption(standing, baseline), " or not told apart from it (paired t test, Holm)")


def count_best(standing: Standing, method: str) -> int:
    """The number of conditions in whose best group a method is."""
    return sum(method in standing.group(name) for name in standing.conditions(method))


def caption(standing: Standing, baseline: str) -> str:
    """How the numbers were computed, and what is unequal."""
    board = standing.board
    search = board.search
    parts = [
        f"test accuracy in %, mean of the last {board.last} of {board.experiment.trial['rounds']} rounds",
        f"mean ± 95 % interval (Student's t) over {len(search.seeds)} independent searches, each of "
        f"{search.samples} samples by validation accuracy and {search.finals} final seeds",
        f"†: differs from {baseline} (paired t test, Holm over methods)",
        "sends: models up + down for a client of a round",
    ]
    missing = [name for name in board.methods if name not in standing.entries]
    parts += [f"no entry yet: {', '.join(missing)}"] if missing else []
    for name, entry in standing.entries.items():
        parts += [f"{name} cannot have {', '.join(entry.impossible)}"] if entry.impossible else []
        own = [path.removeprefix("algorithm.") for path in entry.space if path.startswith("algorithm.")]
        fixed = [path for path in search.space if path not in entry.space]
        parts += [f"{name}: {', '.join(fixed)} not searched"] if fixed else []
        parts += [f"{name}: also {own[0]} searched"] if own else []
        diverged = sum(run.value is None for run in standing.finals(name))
        parts += [f"{name}: {diverged} final runs diverged and count 0"] if diverged else []
    parts += [f"best rates at an edge of the space: {edges}"] if (edges := at_edges(standing)) else []
    return "; ".join(parts)


def at_edges(standing: Standing) -> str:
    """The methods whose best samples lie at an edge of the space, in the outermost 5 %, with the share of searches."""
    texts = []
    for name, entry in standing.entries.items():
        found = [
            (one.samples[one.best].settings, entry.space)
            for cells in entry.cells.values()
            for one in cells
            if one.best is not None
        ]
        edge = sum(
            any(domain(path, space[path]).at_edge(value) for path, value in settings.items())
            for settings, space in found
        )
        texts += [f"{name} {edge} of {len(found)}"] if edge else []
    return ", ".join(texts)


def difference_table(standing: Standing, baseline: str) -> Table:
    """Differences of all methods to a baseline by condition; an empty one is the best of each condition."""
    order = standing.order
    columns: list[tuple[Column, list[Shown]]] = [(Column("method", words=True, axis="algorithm"), list(order))]
    for name in standing.values:
        other = baseline or standing.best(name)
        apart = standing.differences(name, other)
        texts = [
            points((one.mean, one.half), "+") + ("†" if one.significant else "") if (one := apart.get(method)) else ""
            for method in order
        ]
        columns.append((Column(name if baseline else f"{name} (best: {other})", group=name), list(texts)))
    what = baseline or "the best of each pattern"
    return Table.of_columns(
        columns,
        f"points of accuracy minus {what}, paired by search, with the 95 % interval; †: significant at 5 % (t test, "
        "Holm over methods)",
    )


def loss_table(standing: Standing) -> Table:
    """The loss of each method from the control to each condition."""
    control = standing.board.patterns[0]
    rows = {method: standing.losses(method, control) for method in standing.order}
    columns: list[tuple[Column, list[Shown]]] = [(Column("method", words=True, axis="algorithm"), list(rows))]
    for name in standing.board.patterns[1:]:
        columns.append((Column(name, group=name), [points(one[name]) if name in one else "" for one in rows.values()]))
    return Table.of_columns(
        columns,
        f"points of accuracy under {control} minus those under the pattern, paired by search, with the 95 % interval",
    )


def cost_table(standing: Standing, target: float) -> Table:
    """What a method costs, means over all final runs; and rounds and uploads until the target, medians over them."""
    columns: list[tuple[Column, list[Shown]]] = [(Column("method", words=True, axis="algorithm"), list(standing.order))]
    finals = {method: standing.finals(method) for method in standing.order}

    def column(title: str, text: Callable[[list[Final]], str]) -> None:
        columns.append((Column(title, group=title), [text(runs) for runs in finals.values()]))

    column("client gradients", lambda runs: f"{np.mean([run.costs['gradients'] for run in runs]):,.0f}")
    column(
        "floats sent",
        lambda runs: f"{np.mean([run.costs['floats_up'] + run.costs['floats_down'] for run in runs]):.3g}",
    )
    column("floats stored", lambda runs: f"{np.mean([run.costs['memory'] for run in runs]):.3g}")
    column("seconds", lambda runs: f"{np.mean([run.seconds for run in runs]):.2g}")
    column(f"rounds to {100 * target:g} %", lambda runs: until(runs, target, "round"))
    column(f"uploads to {100 * target:g} %", lambda runs: until(runs, target, "floats_up"))
    return Table.of_columns(
        columns,
        "means over all final runs; until the target: medians over them, and the share that reaches it; uploads in "
        "floats; seconds as measured, also on a busy machine",
    )


def until(runs: Sequence[Final], target: float, cost: str) -> str:
    """The median round, or cost, at which runs reach a target accuracy, and the share that does; `-` if half do not."""
    first = [next((t for t, value in run.curve if value >= target), math.inf) for run in runs]
    spent = [t if cost == "round" else t / run.rounds * run.costs[cost] for t, run in zip(first, runs, strict=True)]
    middle = float(np.median(spent))
    share = np.mean(np.isfinite(first))
    return f"{middle:.3g} ({share:.0%})" if math.isfinite(middle) else f"- ({share:.0%})"


def pattern_table(board: Board) -> Table:
    """Facts on the conditions, means over the final seeds: from theory where the model states them, else counted."""
    rows = {}
    for name, spec in board.conditions(next(iter(board.methods))).items():
        facts = []
        for seed in [seed for search in range(len(board.search.seeds)) for seed in board.finals(search)]:
            model = build(board.final(spec, {}, seed)).participation
            mask = np.zeros((spec["rounds"], model.clients), bool)
            for t in range(len(mask)):
                mask[t, model.active(t)] = True
            summary = summarise(model, mask)
            weights = model.share
            distance = summary.weights["total_variation"]
            if weights is not None:
                distance = l1_distance(np.full(model.clients, 1 / model.clients), normalised(weights)) / 2
            pi = mask.mean(axis=0) if model.stationary is None else model.stationary
            correlation = math.nan if model.correlation is None else float(model.correlation.mean())
            facts.append(
                [pi.mean(), pi.min(), pi.max(), distance, correlation, summary.empty, summary.never / model.clients]
            )
        rows[name] = np.mean(facts, axis=0)
    columns: list[tuple[Column, list[Shown]]] = [(Column("pattern", words=True), list(rows))]
    columns += [
        (Column("mean availability"), [f"{row[0]:.2f} ({row[1]:.2f} to {row[2]:.2f})" for row in rows.values()]),
        (Column("total variation"), [f"{row[3]:.2f}" for row in rows.values()]),
        (
            Column("correlation time"),
            [
                "-" if math.isnan(row[4]) else f"{-1 / math.log(row[4]):.1f}" if row[4] > 0 else "0"
                for row in rows.values()
            ],
        ),
        (Column("empty rounds"), [f"{row[5]:.1%}" for row in rows.values()]),
        (Column("never seen"), [f"{row[6]:.1%}" for row in rows.values()]),
    ]
    return Table.of_columns(
        columns,
        "means over the final seeds; availability: mean over clients, least and largest; total variation: of FedAvg's "
        "expected weights to uniform ones; correlation time in rounds",
    )


def all_tables(standing: Standing, baseline: str, target: float = 0.9) -> dict[str, Table]:
    """All tables of a board, by heading.

    Raises:
        SettingError: the baseline has no entry.
    """
    if baseline not in standing.entries:
        raise SettingError(f"against: {baseline!r} is not allowed; must be one of {listed(standing.entries, baseline)}")
    return {
        "test accuracy": result_table(standing, baseline),
        f"minus {baseline}": difference_table(standing, baseline),
        "minus the best": difference_table(standing, ""),
        f"loss from {standing.board.patterns[0]}": loss_table(standing),
        "costs": cost_table(standing, target),
        "patterns": pattern_table(standing.board),
    }


def as_data(standing: Standing) -> dict[str, Any]:
    """The board as plain data: a row for each method and condition, ranks, groups and the expectations."""
    rows = [
        {"method": method, "pattern": name, "mean": mean, "half": half, "values": list(table[method])}
        | {"best_group": method in standing.group(name)}
        for name, table in standing.values.items()
        for method in map(str, table)
        for mean, half in [interval(table[method])]
    ]
    ranks = {str(method): interval(standing.ranks[method]) for method in standing.order}
    judged = {
        name: {"says": EXPECTATIONS[name], "verdict": one[0], "measured": one[1]}
        for name, one in verdicts(standing).items()
    }
    return {"board": standing.board.name, "rows": rows, "ranks": ranks, "expectations": judged}


def verdicts(standing: Standing) -> dict[str, tuple[str, str]]:
    """The verdict on each expectation that the entries allow, and what was measured."""
    values, found = standing.values, {}
    equal, coupled = (standing.differences(name, "fedavg") for name in ("equal", "coupled"))
    if equal:
        top = max(equal, key=lambda method: equal[method].mean)
        one = (equal[top].mean, equal[top].half)
        found["nothing to correct"] = (side(*one, 2.0, above=False), f"{top} {points(one, '+')}")
    if "fedavg_known" in coupled:
        one = (coupled["fedavg_known"].mean, coupled["fedavg_known"].half)
        speaks = standing.board.experiment.base  # the larger board extends the smaller one
        verdict = side(*one, 2.0, above=True) if speaks else "not about this board"
        found["knowledge pays"] = (verdict, points(one, "+"))
    if {"mifa", "fedvarp"} <= coupled.keys():
        pair = ["mifa", "fedvarp"]
        gains = [values[name][pair].mean(axis=1) - values[name]["fedavg"] for name in ("absences", "coupled")]
        one = interval(gains[0] - gains[1])
        found["memory pays with absences"] = (side(*one, 0.0, above=True), points(one, "+"))
    everywhere = [name for name in standing.entries if count_best(standing, name) == len(standing.board.patterns)]
    found["no method for all"] = ("contradicted" if everywhere else "holds", ", ".join(everywhere) or "none")
    return found


def side(mean: float, half: float, size: float, above: bool) -> str:
    """`holds` or `contradicted` if the interval lies on one side of the size, else `undecided`."""
    if math.isnan(half) or abs(mean - size) <= half:
        return "undecided"
    return "holds" if (mean > size) == above else "contradicted"
