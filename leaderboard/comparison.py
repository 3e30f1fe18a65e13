"""Cells against each other, seed by seed, and methods over many cells."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, after_equal_rounds
from rollcall.leaderboard.names import label_text, method_name
from rollcall.leaderboard.paper.claims import round_reached
from rollcall.leaderboard.paper.quantities import Quantity, estimate
from rollcall.leaderboard.paper.sentences import SEARCHED, change, interval
from rollcall.leaderboard.ranking import METHOD, Ranking
from rollcall.leaderboard.render import Column, Entry, Table, finite


@dataclass(frozen=True)
class Comparison:
    """A cell minus another one, seed by seed, over the seeds that both have.

    A final value is the mean over the evaluations of `last_rounds`. The correction of Bonferroni divides 5 % by
    `among`, the number of comparisons in the table.
    """

    cell: Cell
    other: Cell
    metric: Metric
    last_rounds: int
    among: int = 1

    @cached_property
    def difference(self) -> Quantity | None:
        """The mean paired difference and its interval. None if a run diverged or no seed has a value in both cells.

        With a threshold: of the first rounds that reach it; a round that was not reached is censored. Of a metric that
        is best near 0: of the distances from 0.
        """
        if self.cell.diverged or self.other.diverged:
            return None
        if self.metric.threshold is not None:
            return round_reached(self.metric, self.cell, self.other)
        a, b = (cell.finals(self.metric, self.last_rounds) for cell in (self.cell, self.other))
        both = (a.abs() - b.abs() if self.metric.direction == "zero" else a - b).dropna()
        return estimate(both.to_numpy()) if len(both) else None

    @cached_property
    def wins(self) -> tuple[int, int, int]:
        """Number of seeds in which `cell` is better, equal and worse. A diverged run is worse than all others."""
        a, b = (cell.scores(self.metric, self.last_rounds) for cell in (self.cell, self.other))
        a, b = a.align(b, join="inner")
        return int((a > b).sum()), int((a == b).sum()), int((a < b).sum())

    def verdict(self, level: float = 0.95) -> int:
        """1 if the interval of a level says that `cell` is better, -1 if worse, 0 if it does not tell."""
        low, high = self.difference.interval(level) if self.difference else (-math.inf, math.inf)
        return 0 if not (low > 0 or high < 0) else 1 if (low > 0) == (self.metric.direction == "max") else -1

    @property
    def searched(self) -> bool:
        """Whether settings of a cell are the best of a search, whose chance the interval does not have."""
        return bool(self.cell.searched or self.other.searched)

    @property
    def text(self) -> str:
        """The difference and its interval; † if it holds for all comparisons together, ‡ if `searched`."""
        marks = ("†" if self.verdict(1 - 0.05 / self.among) else "") + ("‡" if self.searched else "")
        return f"{change(self.difference, self.metric)}{marks}" if self.difference else ""

    @property
    def row(self) -> dict[str, Any]:
        low, high = self.difference.interval() if self.difference else (math.nan, math.nan)
        row = {"difference": self.difference.mean if self.difference else None, "low": low, "high": high}
        counts = dict(zip(("wins", "ties", "losses"), self.wins, strict=True))
        decided = {"corrected": bool(self.verdict(1 - 0.05 / self.among)), "searched": self.searched}
        return {key: finite(value) for key, value in row.items()} | decided | counts


def how(baseline: str, comparisons: Sequence[Comparison]) -> str:
    """How the differences from a baseline, at least one, were computed."""
    parts = [f"difference: minus {baseline}, paired by seed, with its 95 % interval (Student's t, from three seeds)"]
    if any(one.metric.threshold is not None for one in comparisons):
        parts += ["of first rounds or costs: of the two mean curves and their intervals, not paired"]
    parts += [f"†: leaves out 0 also when corrected for {counted(comparisons[0].among, 'row')} (Bonferroni)"]
    return "; ".join([*parts, *([f"‡: {SEARCHED}"] if any(one.searched for one in comparisons) else [])])


RANK = Metric("mean rank", "min")

Block = dict[str, Cell]
"""Cells that differ on one axis only, by their label on it."""

VERSION = "variant"
"""The axis whose labels are the names of versions of an experiment."""


def versions(by_name: Mapping[str, Iterable[Cell]]) -> list[Cell]:
    """The cells of several versions of an experiment, each with the name of its version as a label."""
    return [replace(cell, labels=cell.labels | {VERSION: name}) for name in by_name for cell in by_name[name]]


def blocks(cells: Iterable[Cell], axis: str = METHOD) -> list[Block]:
    """The cells with a label on an axis in blocks."""
    made: dict[tuple[tuple[str, str], ...], Block] = {}
    for cell in cells:
        if axis in cell.labels:
            others = tuple((name, label) for name, label in cell.labels.items() if name != axis)
            made.setdefault(others, {})[cell.labels[axis]] = cell
    return list(made.values())


def blocks_of(ranking: Ranking) -> list[Block]:
    """The blocks of all groups. A group in which each method has one cell is a block, whatever their rates."""
    whole = [{cell.labels[METHOD]: cell for cell in group} for group in ranking.groups]
    groups = zip(whole, ranking.groups, strict=True)
    return [block for one, group in groups for block in ([one] if len(one) == len(group) else blocks(group))]


def by_condition(ranking: Ranking) -> list[Cell]:
    """The cells of a ranking, whose labels are the method and what the whole block has in common."""
    made = []
    for block in blocks_of(ranking):
        common = set.intersection(*({*cell.labels.items()} for cell in block.values()))
        for name, cell in block.items():
            labels = {axis: label for axis, label in cell.labels.items() if (axis, label) in common}
            made.append(replace(cell, labels=labels | {METHOD: name}))
    return made


def pairs(cells: Sequence[Cell], a: str, b: str) -> list[tuple[Cell, Cell]]:
    """The cells with one of two labels of an axis, methods first, and equal other labels: with equal rounds and seeds.

    Without pairs that have no seed in common, or that are the same trials.
    """
    for axis in dict.fromkeys([METHOD, *(name for cell in cells for name in cell.labels)]):
        both = [(block[a], block[b]) for block in blocks(cells, axis) if a in block and b in block]
        ran = [after_equal_rounds(one.of(other.runs), other.of(one.runs)) for one, other in both]
        if found := [(one, other) for one, other in ran if one.runs and one.trials != other.trials]:
            return found
    return []


def not_among(baseline: str, methods: Iterable[str]) -> SettingError:
    return SettingError(f"against: {baseline!r} is not allowed; must be one of {listed(methods, baseline)}")


def against(ranking: Ranking, baseline: str) -> dict[str, list[Comparison | None]]:
    """By metric, each cell of a ranking against the baseline of its block; None for the baseline, or without one.

    Raises:
        SettingError: no cell has this method.
    """
    methods = dict.fromkeys(cell.labels[METHOD] for cell in ranking.cells)
    if baseline not in methods:
        raise not_among(baseline, methods)
    having = [block for block in blocks_of(ranking) if baseline in block]
    compared = [(cell, block[baseline]) for block in having for name, cell in block.items() if name != baseline]
    made: dict[str, list[Comparison | None]] = {}
    for metric in ranking.metrics:
        every = (Comparison(*pair, metric, ranking.last_rounds, len(compared)) for pair in compared)
        by_cell = {id(one.cell): one for one in every}
        made[metric.name] = [by_cell.get(id(cell)) for cell in ranking.cells]
    return made


@dataclass(frozen=True)
class Overall:
    """Methods over blocks in which each of them has a value, and a seed in common with the others.

    Blocks share what a seed draws: data, initial model, minibatches. So the seed is the unit of every interval.
    `left_out` blocks lack a method's value.
    """

    blocks: list[Block]
    metric: Metric
    last_rounds: int
    left_out: int = 0

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The mean rank over blocks: a row for each seed, a column for each method, the best one first.

        The best of a block has 1, equal scores share the mean of theirs.
        """
        ranked = [(-scores_of(block, self.metric, self.last_rounds)).rank(axis=1) for block in self.blocks]
        by_seed = pd.concat(ranked).groupby(level=0).mean()
        return by_seed[by_seed.mean().sort_values(kind="stable").index]

    def best_in(self, method: str) -> int:
        means = [scores_of(block, self.metric, self.last_rounds).mean() for block in self.blocks]
        return sum(bool(mean[method] == mean.max()) for mean in means)


def scores_of(block: Block, metric: Metric, last_rounds: int) -> pd.DataFrame:
    """The scores of the runs of a block: a row for each seed that all its methods have, a column for each method."""
    return pd.DataFrame({name: cell.scores(metric, last_rounds) for name, cell in block.items()}).dropna()


def overall(ranking: Ranking) -> Overall:
    """The methods of a ranking over its blocks, by its first metric.

    Raises:
        SettingError: there are fewer than two methods, or fewer than two blocks with a value of each.
    """
    metric, last = ranking.metrics[0], ranking.last_rounds
    methods = list(dict.fromkeys(cell.labels[METHOD] for cell in ranking.cells))
    every = blocks_of(ranking)
    known = [{name: cell for name, cell in block.items() if cell.number(metric, last)} for block in every]
    whole = [{name: block[name] for name in methods} for block in known if len(block) == len(methods)]
    complete = [block for block in whole if len(scores_of(block, metric, last))]
    if len(methods) < 2 or len(complete) < 2:
        raise SettingError(
            f"overall: needs two methods, and two conditions in which each has a value of {metric.name}; "
            f"{', '.join(methods)} have {len(complete)} among {counted(len(every), 'condition')}. "
            "See --only algorithm=... and --last-rounds"
        )
    return Overall(complete, metric, last, len(every) - len(complete))


def overall_table(over: Overall, baseline: str = "") -> tuple[Table, list[dict[str, Any]]]:
    """Methods over the conditions of a ranking, the best mean rank first; and as JSON has it.

    With a baseline also the difference of ranks to it, paired by seed.
    """
    ranks = over.ranks
    if baseline and baseline not in ranks:
        raise not_among(baseline, map(str, ranks))
    columns = [Column("method", words=True, axis=METHOD), Column("mean rank"), Column("best in")]
    columns += [Column(f"minus {baseline}", named=f"minus {method_name(baseline)}")] if baseline else []
    entries: list[list[Entry]] = []
    rows = []
    for method in map(str, ranks):
        rank, best = estimate(ranks[method].to_numpy()), over.best_in(method)
        low, high = map(finite, rank.interval())
        row = {"labels": {METHOD: method}, "metric": over.metric.name, "mean_rank": rank.mean, "low": low, "high": high}
        row |= {"best_in": best, "conditions": len(over.blocks)}
        entry: list[Entry] = [method, interval(rank, RANK), f"{best} of {len(over.blocks)}"]
        if baseline:
            less = estimate((ranks[method] - ranks[baseline]).to_numpy()) if method != baseline else None
            entry.append(change(less, RANK) if less else "")
            row |= {"against": baseline, "difference": less.mean if less else None}
        entries.append(entry)
        rows.append(row)
    parts = [f"{over.metric.name} {over.metric.arrow} over {len(over.blocks)} conditions"]
    parts += [f"{over.left_out} left out, in which a method has no value"] if over.left_out else []
    parts.append(f"mean rank over conditions and {counted(len(ranks), 'seed')}, 1 is best; a diverged run is worst")
    parts.append("brackets: 95 %, Student's t over seeds, from three seeds")
    parts += [SEARCHED] if any(cell.searched for block in over.blocks for cell in block.values()) else []
    return Table(columns, entries, "; ".join(parts)), rows


def comparison_tables(
    found: Mapping[str, Sequence[Comparison]], a: str, b: str
) -> tuple[dict[str, Table], dict[str, Any]]:
    """A table for each experiment with a row for each pair of cells, a and b; and all rows and a summary, as JSON."""
    columns = [Column("cell", words=True), Column(a), Column(b), Column("difference"), Column("wins")]
    tables: dict[str, Table] = {}
    rows = []
    for experiment, comparisons in found.items():
        metric = comparisons[0].metric
        table = tables[f"{experiment}: {metric.head} {metric.arrow}"] = Table(columns, [], "")
        common = [dict(one.cell.labels.items() & one.other.labels.items()) for one in comparisons]
        for one, own in zip(comparisons, common, strict=True):
            labels = {axis: own[axis] for axis in one.cell.labels if own.get(axis)}
            differing = {axis: own for axis, own in labels.items() if any(of.get(axis) != own for of in common)}
            where = ", ".join(label_text(axis, label, differing) for axis, label in differing.items())
            numbers = [cell.number(metric, one.last_rounds) for cell in (one.cell, one.other)]
            won, tied, _ = one.wins
            wins = f"{won} of {sum(one.wins)}{f', {tied} tied' if tied else ''}"
            texts = [number.text if number else "" for number in numbers]
            table.rows.append([where or "all", *texts, one.text, wins])
            row = {"experiment": experiment, "labels": labels, "metric": metric.name, "rounds": one.cell.rounds_run}
            for side, number in zip("ab", numbers, strict=True):
                row |= {f"mean_{side}": finite(number.mean if number else None)}
                row |= {f"sd_{side}": finite(number.sd if number else None)}
            rows.append(row | one.row)
    verdicts = [one.verdict() for comparisons in found.values() for one in comparisons]
    data: dict[str, Any] = {"cells": len(verdicts), "better": verdicts.count(1), "worse": verdicts.count(-1)}
    says = f"{a} is better in {data['better']} of {counted(len(verdicts), 'cell')}, worse in {data['worse']}"
    return tables, {"rows": rows, "overall": data | {"says": f"{says} (by the 95 % interval)."}}
