"""The standing of methods on a board, from their entries: results by condition, ranks, differences, groups and costs.

A value of a method under a condition is that of one search: the mean test accuracy of its final runs, in points. The
searches are the independent repetitions, so every interval is Student's t over them and contains the noise of tuning.
All methods have the same draws and seeds, so differences are paired by search.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtr

from rollcall.benchmark.config.errors import SettingError, check_one_of
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.search.board import Board
from rollcall.benchmark.search.entry import ENDING, Entry, Final
from rollcall.benchmark.search.space import domain
from rollcall.leaderboard.names import method_name
from rollcall.leaderboard.paper.quantities import half_width
from rollcall.leaderboard.render import Column, Number, Printable, Table
from rollcall.leaderboard.runs import HERE, PACKAGE
from rollcall.participation import recording
from rollcall.participation.summary import summarise
from rollcall.participation.weights import l1_distance, normalised

LEVEL = 0.05
"""Of tests; intervals are of 95 %."""

SYMBOLS = {"probability": "p", "stationary": "π", "correlation": "λ", "share": "c", "least_loss": "F*"}
"""What a method knows, as the papers write it."""

MARGIN = 2.0
"""Points of accuracy that matter."""

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
"""Written before the runs; docs/howto/board.md says how each is decided."""

Key = TypeVar("Key", bound=Hashable)
Interval = tuple[float, float]
"""A mean over searches, and half the width of its interval."""


@dataclass(frozen=True)
class Difference:
    """A paired difference of two methods under a condition, in points: mean, half the width of its interval, and p.

    p is that of the t test, corrected (Holm) for all methods under the condition or, of a difference to the best one,
    for all pairs of them.
    """

    mean: float
    half: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= LEVEL


@dataclass(frozen=True)
class Standing:
    """A board with the entries of methods."""

    board: Board
    entries: dict[str, Entry]

    @cached_property
    def values(self) -> dict[str, pd.DataFrame]:
        """By condition: a row for each search, a column for each method that is possible there.

        A final run that diverged counts 0, and so does a search whose samples all diverged.
        """
        tables = {}
        for name in self.board.patterns:
            having = {method: entry.cells[name] for method, entry in self.entries.items() if entry.cells.get(name)}
            columns = {
                method: [100 * float(np.mean([run.value or 0.0 for run in one.finals] or [0.0])) for one in cells]
                for method, cells in having.items()
            }
            tables[name] = pd.DataFrame(columns)
        return tables

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
        p = holm(dict(zip(map(str, others), p_values(others.to_numpy()).tolist(), strict=True)))
        return {method: Difference(*interval(others[method]), p[method]) for method in p}

    def best(self, name: str) -> str:
        """The method with the highest mean under a condition; empty if no method can have it."""
        means = self.values[name].mean()
        return str(means.idxmax()) if len(means) else ""

    @cached_property
    def pairs(self) -> dict[str, dict[tuple[str, str], float]]:
        """By condition: the p-values of all pairs of methods, the one with the lower mean first; see `pairwise`."""
        return {name: pairwise(table) for name, table in self.values.items()}

    def from_best(self, name: str) -> dict[str, Difference]:
        """The differences of all other methods to the best one under a condition."""
        table, best = self.values[name], self.best(name)
        found = {worse: p for (worse, better), p in self.pairs[name].items() if better == best}
        return {method: Difference(*interval(table[method] - table[best]), found[method]) for method in found}

    def group(self, name: str) -> set[str]:
        """The methods under a condition above which no other one is shown to be."""
        return {*map(str, self.values[name])} - {worse for (worse, _), p in self.pairs[name].items() if p <= LEVEL}

    def losses(self, method: str, control: str) -> dict[str, Interval]:
        """By condition, the mean of a method under the control less that under it; empty without the control."""
        if method not in self.values[control]:
            return {}
        return {
            name: interval(self.values[control][method] - table[method])
            for name, table in self.values.items()
            if name != control and method in table
        }

    def conditions(self, method: str) -> list[str]:
        """The conditions that are possible for a method."""
        return [name for name, table in self.values.items() if method in table]

    @property
    def missing(self) -> list[str]:
        """The methods of the board that have no entry yet."""
        return [name for name in self.board.methods if name not in self.entries]

    def finals(self, method: str) -> list[Final]:
        """All final runs of a method."""
        return [run for cells in self.entries[method].cells.values() for one in cells for run in one.finals]

    def lost(self, method: str) -> int:
        """The number of searches of a method whose samples all diverged, so that they have no final runs."""
        return sum(one.best is None for cells in self.entries[method].cells.values() for one in cells)


def interval(values: Sequence[float] | pd.Series, level: float = 0.95) -> Interval:
    """The mean, and half the width of its interval (Student's t); NaN for one value."""
    numbers = np.asarray(values, dtype=float)
    return float(numbers.mean()), float(half_width(numbers, level)) if len(numbers) > 1 else math.nan


def p_values(differences: Float[np.ndarray, "searches n"]) -> Float[np.ndarray, "n"]:
    """Of paired t tests, one a column; 1 for a column of zeros, 0 for equal values that are not 0."""
    searches, n = differences.shape
    if searches < 2:
        return np.ones(n)
    error = differences.std(axis=0, ddof=1) / math.sqrt(searches)
    equal = np.ptp(differences, axis=0) == 0
    t = differences.mean(axis=0) / np.where(equal, 1.0, error)
    p = np.where(equal, 0.0, 2 * stdtr(searches - 1, -np.abs(t)))
    return np.where(differences.any(axis=0), p, 1.0)


def pairwise(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    """The p-values of all pairs of columns, the one with the lower mean first, corrected for all pairs (Holm).

    The best method is chosen by the values that it is tested with, so tests of all others against it need the
    correction for all pairs. In simulations of 18 equal methods in five searches, one is put below another in 5 % of
    tables. With a correction for the comparisons with the best alone it was 15 %.
    """
    ascending = list(map(str, table.mean()[::-1].sort_values(kind="stable").index))  # of equal ones the first is last
    found = list(combinations(ascending, 2))
    if not found:
        return {}
    values = table[ascending].to_numpy()
    worse, better = np.triu_indices(len(ascending), 1)  # in the order of combinations
    p = p_values(values[:, worse] - values[:, better])
    return holm(dict(zip(found, p.tolist(), strict=True)))


def holm(p: Mapping[Key, float]) -> dict[Key, float]:
    """p-values corrected for their number (Holm 1979): the k-th smallest of n times n - k + 1, made increasing."""
    corrected: dict[Key, float] = {}
    largest = 0.0
    for k, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, p[name] * (len(p) - k)))
        corrected[name] = largest
    return {name: corrected[name] for name in p}


class NoEntries(SettingError):
    """A board has no entries."""


def standing(board: Board, store: Path | None = None, kept: bool = True) -> Standing:
    """The board with its entries: `kept` ones, and those in the store, which replace them.

    Raises NoEntries: there is none. Raises SettingError: one cannot be read, or is of another rule.
    """
    folders = [*([PACKAGE, HERE] if kept else []), *([store] if store else [])]
    files = {file.stem: file for folder in folders for file in sorted((folder / board.name).glob(f"*{ENDING}"))}
    entries = {name: Entry.read(file) for name, file in files.items()}
    for name, entry in entries.items():
        if entry.rule != board.rule:
            raise SettingError(f"{files[name]}: is an entry of another rule of {board.name}; enter it again")
        if any(len(searches) != len(board.search.seeds) for searches in entry.cells.values()):
            raise SettingError(f"{files[name]}: has another number of searches than {board.name}; enter it again")
    if not entries:
        raise NoEntries(f"{board.name}: has no entries")
    known = [name for name in board.methods if name in entries]
    return Standing(board, {name: entries[name] for name in [*known, *sorted(entries.keys() - set(known))]})


def points(value: Interval, sign: str = "", bound: float = math.nan) -> str:
    """`91.2 ± 0.4`; with the sign "+", of a difference.

    With more decimals, four at most, where an end would else read as the bound and is not.
    """
    mean, half = value
    if math.isnan(mean):
        return ""

    def touches(mean: float, half: float) -> bool:
        return math.isclose(abs(mean - bound), half, rel_tol=1e-9, abs_tol=1e-9)

    apart = (digits for digits in range(1, 5) if not touches(round(mean, digits), round(half, digits)))
    digits = 1 if touches(mean, half) else next(apart, 1)
    return f"{mean:{sign}z.{digits}f}" + ("" if math.isnan(half) else f" ± {half:.{digits}f}")


BEST_GROUP = " group: no other method is shown to be better (paired t tests, Holm over all pairs of methods)"

METHOD_COLUMN = Column("method", words=True, axis="algorithm")


def result_table(standing: Standing, baseline: str) -> Table:
    """A row for each method: accuracy by condition, worst condition, largest loss, mean rank, and what it needs."""
    control, names = standing.board.patterns[0], [*standing.values]
    apart = {name: standing.differences(name, baseline) for name in names}
    groups = {name: standing.group(name) for name in names}

    def accuracy(method: str, name: str) -> Printable:
        if method not in standing.values[name]:
            return ""
        mean, half = interval(standing.values[name][method])
        mark = "†" if method in apart[name] and apart[name][method].significant else ""
        spread = "" if math.isnan(half) else f"{half:.1f}"  # of one search
        return Number(mean, half, f"{mean:.1f}", f"{spread}{mark}", best=method in groups[name])

    rows: list[list[Printable]] = []
    for method in standing.order:
        worst = min((float(standing.values[name][method].mean()), name) for name in standing.conditions(method))
        loss = max(standing.losses(method, control).values(), default=(math.nan, math.nan))
        marks = standing.entries[method].marks
        row: list[Printable] = [method, points(interval(standing.ranks[method]))]
        possible = len(standing.conditions(method))
        row += [f"{count_best(standing, method)} of {possible}", *(accuracy(method, name) for name in names)]
        row += [f"{worst[0]:.1f} {worst[1]}", points(loss), " ".join(SYMBOLS.get(one, one) for one in marks.knows)]
        rows.append([*row, marks.stores, f"{marks.up}+{marks.down}", "yes" if marks.absent else ""])
    heads = [METHOD_COLUMN, Column("mean rank", group="rank"), Column("best group in", group="rank")]
    heads += [Column(name, group=name) for name in names]
    heads += [Column("worst", group="worst"), Column(f"largest loss from {control}", group="worst")]
    needs = {"knows": True, "stores": True, "sends": False, "absent compute": True}
    heads += [Column(title, words=words, group="needs") for title, words in needs.items()]
    return Table(heads, rows, caption(standing, baseline), BEST_GROUP)


def count_best(standing: Standing, method: str) -> int:
    """The number of conditions in whose best group a method is."""
    return sum(method in standing.group(name) for name in standing.conditions(method))


def caption(standing: Standing, baseline: str) -> str:
    """How the numbers were computed, and what is unequal."""
    board, search = standing.board, standing.board.search
    rounds = next(iter(board.conditions(next(iter(board.methods))).values()))["rounds"]
    parts = [
        f"test accuracy in %, mean of the last {board.last} of {rounds} rounds",
        f"mean ± 95 % interval (Student's t) over {len(search.seeds)} independent searches, each of "
        f"{search.samples} samples by validation accuracy and {search.finals} final seeds",
        f"†: differs from {baseline} (paired t test, Holm over methods)",
        "largest loss: the interval does not allow for the choice of the largest",
        "sends: models up + down for a client of a round",
    ]
    parts += [f"no entry yet: {', '.join(standing.missing)}"] if standing.missing else []
    for name, entry in standing.entries.items():
        parts += [f"{name} cannot have {', '.join(entry.impossible)}"] if entry.impossible else []
        own = [path.removeprefix("algorithm.") for path in entry.space if path.startswith("algorithm.")]
        fixed = [path for path in search.space if path not in entry.space]
        parts += [f"{name}: {', '.join(fixed)} not searched"] if fixed else []
        parts += [f"{name}: also {own[0]} searched"] if own else []
        diverged = sum(run.value is None for run in standing.finals(name))
        parts += [f"{name}: {diverged} final runs diverged and count 0"] if diverged else []
        lost = standing.lost(name)
        parts += [f"{name}: searches whose samples all diverged, which count 0: {lost}"] if lost else []
    if edges := at_edges(standing):
        parts.append(
            "searches whose best sample is at an edge of the space, named where their share is above a tenth and above "
            f"twice the share of all samples there: {edges}"
        )
    return "; ".join(parts)


def at_edges(standing: Standing) -> str:
    """The methods with best samples at an edge of the space in more than a tenth of their searches.

    All methods have the same draws. So it must also be more than twice the share of all samples at this edge.
    """
    texts = []
    for name, entry in standing.entries.items():
        searches = [one for cells in entry.cells.values() for one in cells if one.best is not None]
        chosen = [one.samples[one.best].settings for one in searches if one.best is not None]
        domains = {path: domain(path, written) for path, written in entry.space.items()}
        drawn = [sample.settings for one in searches for sample in one.samples]
        edges, among = (
            Counter((path, domains[path].edge(value)) for point in points for path, value in point.items())
            for points in (chosen, drawn)
        )
        often = sorted(
            where
            for where, count in edges.items()
            if where[1] and count / len(chosen) > max(0.1, 2 * among[where] / len(drawn))
        )
        counts = [f"{path.removeprefix('algorithm.')} {side} {edges[path, side]}" for path, side in often]
        texts += [f"{name} {', '.join(counts)}"] if counts else []
    return "; ".join(texts)


def difference_table(standing: Standing, baseline: str) -> Table:
    """Differences of all methods to a baseline by condition; an empty one is the best of each condition."""
    heads = [METHOD_COLUMN]
    rows: list[list[Printable]] = [[method] for method in standing.order]
    for name in standing.values:
        best = "" if baseline else standing.best(name)
        title, named = (f" (best: {best})", f"{name} (best: {method_name(best)})") if best else ("", "")
        heads.append(Column(name + title, named=named, group=name))
        apart = standing.differences(name, baseline) if baseline else standing.from_best(name)
        for row, method in zip(rows, standing.order, strict=True):
            one = apart.get(method)
            row.append(points((one.mean, one.half), "+") + "†" * one.significant if one else "")
    told = (
        f"points of accuracy minus {baseline or 'the best of each pattern'}, paired by search, with the 95 % interval; "
        f"†: significant at 5 % (t test, Holm over {'methods' if baseline else 'all pairs of methods'})"
    )
    return Table(heads, rows, told)


def loss_table(standing: Standing) -> Table:
    """The loss of each method from the control to each condition."""
    control, *others = standing.board.patterns
    losses = {method: standing.losses(method, control) for method in standing.order}
    rows: list[list[Printable]] = [
        [method, *(points(one[name]) if name in one else "" for name in others)] for method, one in losses.items()
    ]
    told = f"points of accuracy under {control} minus those under the pattern, paired by search, with the 95 % interval"
    return Table([METHOD_COLUMN, *(Column(name, group=name) for name in others)], rows, told)


def cost_table(standing: Standing, target: float = 0.9) -> Table:
    """What a method costs, means over all final runs; and rounds and uploads until the target, medians over them.

    A final run of a search whose samples all diverged does not exist, and does not reach the target. If no run reaches
    it, there is no column for it.
    """
    rows: list[list[Printable]] = []
    finals = {method: standing.finals(method) for method in standing.order}
    reached = any(value >= target for runs in finals.values() for run in runs for _, value in run.curve)
    for method, runs in finals.items():
        lost = standing.lost(method) * (standing.board.search.finals or 0)
        until_target = [until(runs, target, cost, lost) for cost in ("round", "floats_up") if reached]
        means = {name: np.mean([run.costs[name] for run in runs]) for name in runs[0].costs} if runs else {}
        costs = ["", "", ""]
        if means:
            sent = means["floats_up"] + means["floats_down"]
            costs = [f"{means['gradients']:,.0f}", f"{sent:.3g}", f"{means['memory']:.3g}"]
        rows.append([method, *costs, *until_target])
    heads, told = ["client gradients", "floats sent", "floats stored"], "means over all final runs"
    if reached:
        heads += [f"{what} to {100 * target:g} %" for what in ("rounds", "uploads")]
        told += "; until the target: medians over them, and the share that reaches it; uploads in floats, as if spread "
        told += "evenly over the rounds"
    else:
        told += f"; none reaches {100 * target:g} %"
    return Table([METHOD_COLUMN, *(Column(head, group=head) for head in heads)], rows, told)


def until(runs: Sequence[Final], target: float, cost: str, lost: int = 0) -> str:
    """The median round, or cost, at which runs reach a target accuracy, and the share that does; `-` if half do not.

    `lost` runs more do not exist, and do not reach it.
    """
    first = [next((t for t, value in run.curve if value >= target), math.inf) for run in runs]
    spent = [t if cost == "round" else t / run.rounds * run.costs[cost] for t, run in zip(first, runs, strict=True)]
    middle = float(np.median([*spent, *[math.inf] * lost]))
    share = np.isfinite(first).sum() / (len(first) + lost)
    return f"{middle:.3g} ({share:.0%})" if math.isfinite(middle) else f"- ({share:.0%})"


def pattern_table(board: Board) -> Table:
    """Facts on the conditions, means over the final seeds: from theory where the model states them, else counted."""
    rows: list[list[Printable]] = []
    seeds = [seed for search in range(len(board.search.seeds)) for seed in board.finals(search)]
    for name, spec in board.conditions(next(iter(board.methods))).items():
        facts = []
        for seed in seeds:
            model = build(Trial.read(board.final(spec, {}, seed))).participation
            mask = recording.record(model, spec["rounds"])
            summary = summarise(model, mask)
            distance = summary.weights["total_variation"]
            if model.share is not None:
                distance = l1_distance(np.full(model.clients, 1 / model.clients), normalised(model.share)) / 2
            pi = mask.mean(axis=0) if model.stationary is None else model.stationary
            memory = math.nan if model.correlation is None else float(model.correlation.mean())
            facts.append([pi.mean(), pi.min(), pi.max(), distance, memory, summary.empty, summary.never / len(pi)])
        mean, least, most, distance, memory, empty, never = np.mean(facts, axis=0)
        time = "-" if math.isnan(memory) else f"{-1 / math.log(memory):.1f}" if memory > 0 else "0"
        available = f"{mean:.2f} ({least:.2f} to {most:.2f})"
        rows.append([name, available, f"{distance:.2f}", time, f"{empty:.1%}", f"{never:.1%}"])
    heads = ("mean availability", "total variation", "correlation time", "empty rounds", "never seen")
    told = (
        "means over the final seeds; availability: mean over clients, least and largest; total variation: of FedAvg's "
        "expected weights to uniform ones; correlation time in rounds"
    )
    return Table([Column("pattern", words=True), *map(Column, heads)], rows, told)


def tables(standing: Standing, baseline: str) -> dict[str, Table]:
    """The tables of results by heading; those of differences are to the best and, if it has an entry, to a baseline.

    Raises SettingError: the baseline has no entry.
    """
    check_one_of("against", baseline, standing.entries)
    return {
        "test accuracy": result_table(standing, baseline),
        f"minus {method_name(baseline)}": difference_table(standing, baseline),
        "minus the best": difference_table(standing, ""),
        f"loss from {standing.board.patterns[0]}": loss_table(standing),
        "costs": cost_table(standing),
    }


def as_data(standing: Standing) -> dict[str, Any]:
    """The board as plain data: a row for each method and condition, ranks, groups and the expectations.

    Means, their spread and the values of the searches are in points. A number that is not known is NaN.
    """
    board, entries = standing.board, standing.entries.values()
    metric, points_of = board.experiment.report.metrics[0].name, board.points(next(iter(board.methods)))
    rows = []
    for name, table in standing.values.items():
        for method in map(str, table):
            (mean, half), values = interval(table[method]), table[method]
            labels = {axis: label for axis, label in points_of[name].labels.items() if label} | {"algorithm": method}
            row = {"labels": labels, "metric": metric, "mean": mean, "sd": float(values.std(ddof=1))}
            row |= {"seeds": len(values), "method": method, "pattern": name, "half": half, "values": values.tolist()}
            rows.append(row | {"best_group": method in standing.group(name)})
    ranks = {str(method): interval(standing.ranks[method]) for method in standing.order}
    judged = {
        name: {"says": EXPECTATIONS[name], "verdict": verdict, "measured": measured}
        for name, (verdict, measured) in verdicts(standing).items()
    }
    origins = [entry.origin | {"version": (entry.origin.get("versions") or {}).get("rollcall")} for entry in entries]
    tags = {key: sorted({str(one.get(key) or "unknown") for one in origins}) for key in ("version", "commit", "device")}
    of_design = {"rows": rows, "claims": [], "provenance": {"experiment": board.name, **tags}}
    return of_design | {"board": board.name, "ranks": ranks, "expectations": judged}


def verdicts(standing: Standing) -> dict[str, tuple[str, str]]:
    """The verdict on each expectation that the entries allow, and what was measured.

    They are about the suite's boards and their methods; one of the user's own does not count. What is said of all
    methods is `open` while a missing entry can change it.
    """
    if standing.board.name not in ("standard/digits", "standard/fashion"):
        return {}
    of_board = {name: entry for name, entry in standing.entries.items() if name in standing.board.methods}
    standing = replace(standing, entries=of_board)
    values, found = standing.values, {}
    equal, coupled = (standing.differences(name, "fedavg") for name in ("equal", "coupled"))
    if equal:
        verdict, top = none_above(values["equal"], "fedavg", MARGIN, len(standing.board.methods) - 1)
        verdict = "open" if standing.missing and verdict != "contradicted" else verdict
        end = "begins" if verdict == "contradicted" else "ends"
        lead = points((equal[top].mean, equal[top].half), "+", MARGIN)
        found["nothing to correct"] = (verdict, f"{top} {lead}, the interval that {end} highest")
    if "fedavg_known" in coupled:
        one = (coupled["fedavg_known"].mean, coupled["fedavg_known"].half)
        speaks = standing.board.name == "standard/fashion"
        found["knowledge pays"] = (side(*one, MARGIN) if speaks else "not about this board", points(one, "+", MARGIN))
    pair = ["mifa", "fedvarp"]
    if all({"fedavg", *pair} <= {*values.get(name, ())} for name in ("absences", "coupled")):
        gains = [values[name][pair].mean(axis=1) - values[name]["fedavg"] for name in ("absences", "coupled")]
        one = interval(gains[0] - gains[1])
        found["memory pays with absences"] = (side(*one, 0.0), points(one, "+", 0.0))
    everywhere = [name for name in standing.entries if count_best(standing, name) == len(standing.board.patterns)]
    verdict = "open" if standing.missing else "contradicted" if everywhere else "holds"
    found["no method for all"] = (verdict, ", ".join(everywhere) or "none")
    return found


def expectations(standing: Standing) -> list[str]:
    """Each expectation on which there is a verdict, in a line."""
    methods = standing.board.methods
    size = f"Measured with {len(standing.entries.keys() & methods.keys())} of {len(methods)} methods"
    judged = verdicts(standing).items()
    return [f"{verdict}: {EXPECTATIONS[name]} {size}: {measured}." for name, (verdict, measured) in judged]


def none_above(table: pd.DataFrame, baseline: str, size: float, k: int) -> tuple[str, str]:
    """The verdict on "no method is more than a size above the baseline", and the method that decides.

    It holds if the 95 % interval of each method lies below the size. One method above it is enough against it, so there
    the intervals of the k methods of the board have the level 1 - 0.05 / k. The method that decides is the one whose
    interval ends highest or, if the verdict is `contradicted`, begins highest.
    """
    leads = table.drop(columns=baseline).sub(table[baseline], axis=0)
    strict = {str(method): interval(leads[method], 1 - LEVEL / k) for method in leads}
    low = {method: mean - half for method, (mean, half) in strict.items()}
    if max(low.values()) > size:
        return "contradicted", max(low, key=lambda method: low[method])
    high = {str(method): sum(interval(leads[method])) for method in leads}
    return ("holds" if all(end < size for end in high.values()) else "undecided"), max(high, key=lambda one: high[one])


def side(mean: float, half: float, size: float) -> str:
    """`holds` if the interval lies above the size, `contradicted` if below, else `undecided`."""
    if math.isnan(half) or abs(mean - size) <= half:
        return "undecided"
    return "holds" if mean > size else "contradicted"
