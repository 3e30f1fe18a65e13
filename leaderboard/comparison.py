"""Cells against each other, seed by seed, and methods over many cells. `statistics` has the definitions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard import statistics
from rollcall.leaderboard.cells import Cell, after_equal_rounds
from rollcall.leaderboard.names import method_name
from rollcall.leaderboard.paper.claims import round_reached
from rollcall.leaderboard.paper.quantities import Quantity, estimate
from rollcall.leaderboard.paper.sentences import SEARCHED, change
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
        seeds = a.index.intersection(b.index)
        return statistics.wins(a[seeds].to_numpy(), b[seeds].to_numpy())

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
        """As JSON has it."""
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


Interval = tuple[float, float, float]
"""A value and the ends of its interval."""

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
    """The error of a baseline that is none of the methods."""
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
    """Methods over blocks, in which each of them has a value, and a seed in common with the others.

    Attributes:
        blocks: at least one, each with its metric and the last rounds that a final value is the mean of.
        left_out: number of blocks that lack a method's value.
    """

    blocks: list[tuple[Block, Metric, int]]
    left_out: int = 0

    @cached_property
    def by_seed(self) -> Float[np.ndarray, "seeds methods"]:
        """The mean rank of each method over the blocks, seed by seed."""
        return statistics.ranks_by_seed([scores_of(*one) for one in self.blocks])

    @cached_property
    def ranks(self) -> dict[str, float]:
        """The mean rank of each method, the best first."""
        ranks = zip(self.blocks[0][0], self.by_seed.mean(axis=0).tolist(), strict=True)
        return dict(sorted(ranks, key=lambda pair: pair[1]))

    @cached_property
    def test(self) -> tuple[float, float]:
        """The p-value of the test that all methods rank alike; and the difference of ranks that tells two apart."""
        return statistics.equal_ranks(self.by_seed)

    @property
    def alike(self) -> list[list[int]]:
        """The sets of methods, by their place in `ranks`, that are not told apart."""
        return statistics.alike(np.array([*self.ranks.values()]), self.test[1])

    def tasks(self, *methods: str) -> list[pd.Series]:
        """The scores of the runs of a method in each block, by seed, then those of the next method."""
        return [block[method].scores(metric, last) for method in methods for block, metric, last in self.blocks]

    def improvement(self, a: str, b: str) -> Interval:
        """The probability that a run of `a` is better than one of `b`, with its interval."""
        better, low, high = map(float, statistics.interval(statistics.improvement, self.tasks(a, b)))
        return better, float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))


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
    complete = [(block, metric, last) for block in whole if len(scores_of(block, metric, last))]
    if len(methods) < 2 or len(complete) < 2:
        raise SettingError(
            f"overall: {len(complete)} of {len(every)} conditions have a value of {metric.name} for each of "
            f"{', '.join(methods)}, and a seed that all have; needs two conditions and two methods. "
            "See --only algorithm=... and --last-rounds"
        )
    return Overall(complete, len(every) - len(complete))


def overall_table(over: Overall, baseline: str) -> tuple[Table, list[dict[str, Any]]]:
    """Methods over the conditions of a ranking, the best mean rank first; and as JSON has it.

    `alike` has a letter for each set of methods that the test of equal ranks does not tell apart.

    Args:
        over: these conditions.
        baseline: the method that others are compared with; if empty, the first by rank.
    """
    baseline, (_, metric, _) = baseline or next(iter(over.ranks)), over.blocks[0]
    if baseline not in over.ranks:
        raise not_among(baseline, over.ranks)
    columns = [Column("method", words=True, axis=METHOD), Column("rank"), Column("alike", words=True)]
    columns += [Column(f"P(>{baseline})", group="better", named=f"P(>{method_name(baseline)})")]

    entries: list[list[Entry]] = []
    rows = []
    for index, (method, rank) in enumerate(over.ranks.items()):
        letters = "".join(letter for letter, one in zip(ascii_lowercase, over.alike, strict=False) if index in one)
        better = over.improvement(method, baseline)
        entries.append([method, f"{rank:.2f}", letters, "" if method == baseline else _interval(better)])
        row = {"labels": {METHOD: method}, "metric": metric.name, "mean_rank": rank, "alike": letters}
        row |= _ends("better", better) | {"against": baseline, "conditions": len(over.blocks)}
        diverged = sum(block[method].diverged for block, *_ in over.blocks)
        rows.append(row | {"runs": sum(map(len, over.tasks(method))), "diverged": diverged})
    p, width = over.test
    seeds = counted(len(over.by_seed), "seed")
    apart = (
        f"at 5 %, corrected for all pairs: from {width:.2f} ranks on" if math.isfinite(width) else f"{seeds} tell none"
    )
    parts = [f"{metric.name} {metric.arrow} over {len(over.blocks)} conditions"]
    parts += [f"{over.left_out} left out, in which a method has no value"] if over.left_out else []
    parts += [
        f"rank: mean over conditions and seeds, 1 is best; permutation test of equal ranks over {seeds}: p = {p:.2g}"
    ]
    parts += [f"methods with a common letter are not told apart ({apart})"]
    parts += [f"P(>{baseline}): probability that a run is better than one of {baseline}, ties count half"]
    parts += [
        "brackets: 95 %, Student's t over seeds (jackknife), not corrected; a diverged run is worse than all others"
    ]
    parts += [SEARCHED] if any(cell.searched for block, *_ in over.blocks for cell in block.values()) else []
    return Table(columns, entries, "; ".join(parts)), rows


def _interval(interval: Interval) -> str:
    """A probability and its interval; without the latter where a cell has a single run."""
    value, low, high = map("{:.2f}".format, interval)
    return value if math.isnan(interval[1]) else f"{value} [{low}, {high}]"


def _ends(name: str, interval: Interval) -> dict[str, float | None]:
    return {f"{name}{end}": finite(one) for end, one in zip(("", "_low", "_high"), interval, strict=True)}


def comparison_tables(
    found: Mapping[str, Sequence[Comparison]], a: str, b: str
) -> tuple[dict[str, Table], dict[str, Any]]:
    """A table for each experiment with a row for each pair of cells; and all rows and an overall part, for JSON.

    Args:
        found: by experiment, at least one pair of cells.
        a, b: what they are.
    """
    every = [one for comparisons in found.values() for one in comparisons]
    columns = [Column("cell", words=True), Column(a), Column(b), Column("difference"), Column("wins")]
    tables: dict[str, Table] = {}
    rows = []
    for experiment, comparisons in found.items():
        metric = comparisons[0].metric
        table = tables[f"{experiment}: {metric.head} {metric.arrow}"] = Table(columns, [], "")
        common = [dict(one.cell.labels.items() & one.other.labels.items()) for one in comparisons]
        for one, own in zip(comparisons, common, strict=True):
            labels = {axis: own[axis] for axis in one.cell.labels if own.get(axis)}
            differing = [label for axis, label in labels.items() if any(other.get(axis) != label for other in common)]
            numbers = [cell.number(metric, one.last_rounds) for cell in (one.cell, one.other)]
            won, tied, _ = one.wins
            wins = f"{won} of {sum(one.wins)}{f', {tied} tied' if tied else ''}"
            texts = [number.text if number else "" for number in numbers]
            table.rows.append([", ".join(differing) or "all", *texts, one.text, wins])
            row = {"experiment": experiment, "labels": labels, "metric": metric.name, "rounds": one.cell.rounds_run}
            for side, number in zip("ab", numbers, strict=True):
                row |= {f"mean_{side}": finite(number.mean if number else None)}
                row |= {f"sd_{side}": finite(number.sd if number else None)}
            rows.append(row | one.row)
    verdicts = [one.verdict() for one in every]
    data: dict[str, Any] = {"cells": len(every), "better": verdicts.count(1), "worse": verdicts.count(-1)}
    pairs = [({a: one.cell, b: one.other}, one.metric, one.last_rounds) for one in every]
    says = f"{a} is better in {data['better']} of {counted(len(every), 'cell')}, worse in {data['worse']}"
    over = Overall([one for one in pairs if all(cell.number(*one[1:]) for cell in one[0].values())])
    if over.blocks:
        better = over.improvement(a, b)
        seeds = counted(len(over.by_seed), "seed")
        data |= {"p": over.test[0]} | _ends("improvement", better)
        says += f" (by the 95 % interval). Permutation test of equal ranks over {seeds}: p = {over.test[0]:.2g}"
        says += f". Probability that a run of {a} is better than one of {b}: {_interval(better)}"
        says += " (Student's t over seeds)"
    return tables, {"rows": rows, "overall": data | {"says": f"{says}."}}
