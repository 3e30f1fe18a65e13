"""Cells against each other, methods over many cells, and the tables of rankings, papers and comparisons."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import pandas as pd

from rollcall.benchmark.config.errors import SettingError, check_one_of
from rollcall.benchmark.config.metric import COSTS, Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, after_equal_rounds
from rollcall.leaderboard.names import label_name, label_text, method_name
from rollcall.leaderboard.paper.claims import round_reached
from rollcall.leaderboard.paper.experiment import PaperExperiment, Printed, printed_for
from rollcall.leaderboard.paper.quantities import Quantity, estimate
from rollcall.leaderboard.paper.sentences import SEARCHED, change, interval, signed
from rollcall.leaderboard.ranking import METHOD, Ranking
from rollcall.leaderboard.render import SIZE, Column, Number, Printable, Table, finite, number


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
    if near_0 := dict.fromkeys(one.metric.title for one in comparisons if one.metric.direction == "zero"):
        parts += [f"of {', '.join(near_0)}: the distance from 0 minus that of {baseline}"]
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


def against(ranking: Ranking, baseline: str) -> dict[str, list[Comparison | None]]:
    """By metric, each cell of a ranking against the baseline of its block; None for the baseline, or without one.

    Raises SettingError: no cell has this method.
    """
    methods = dict.fromkeys(cell.labels[METHOD] for cell in ranking.cells)
    check_one_of("against", baseline, methods)
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
    """Methods over blocks in which each of them has a value, and over the seeds that all blocks have, at least one.

    Blocks share what a seed draws: data, initial model, minibatches. So the seed is the unit of every interval.
    `left_out` blocks lack a method's value.
    """

    blocks: list[Block]
    metric: Metric
    last_rounds: int
    left_out: int = 0

    @cached_property
    def scores(self) -> list[pd.DataFrame]:
        """The scores in each block, over all its seeds; see `scores_of`."""
        return [scores_of(block, self.metric, self.last_rounds) for block in self.blocks]

    @cached_property
    def seeds(self) -> list[Any]:
        """The seeds that all blocks have. With others the mean over blocks would be of other blocks in each seed."""
        return sorted(set.intersection(*({*one.index} for one in self.scores)), key=int)

    @property
    def other_seeds(self) -> list[Any]:
        """The seeds that a block has and another one lacks."""
        return sorted({seed for one in self.scores for seed in one.index} - {*self.seeds}, key=int)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The mean rank over blocks: a row for each seed, a column for each method, the best one first.

        The best of a block has 1, equal scores share the mean of theirs.
        """
        ranked = [(-one.loc[self.seeds]).rank(axis=1) for one in self.scores]
        by_seed = pd.concat(ranked).groupby(level=0).mean()
        return by_seed[by_seed.mean().sort_values(kind="stable").index]

    @cached_property
    def means(self) -> list[dict[str, float]]:
        """The score of each method's mean in each block, as tables show it: with a threshold, of the mean curve."""
        own = [{name: cell.of(self.seeds) for name, cell in block.items()} for block in self.blocks]
        mean = [{name: cell.mean(self.metric, self.last_rounds) for name, cell in block.items()} for block in own]
        return [{name: -self.metric.penalty(value) for name, value in block.items()} for block in mean]

    def best_in(self, method: str) -> int:
        return sum(math.isfinite(block[method]) and block[method] == max(block.values()) for block in self.means)


def scores_of(block: Block, metric: Metric, last_rounds: int) -> pd.DataFrame:
    """The scores of the runs of a block: a row for each seed that all its methods have, a column for each method."""
    return pd.DataFrame({name: cell.scores(metric, last_rounds) for name, cell in block.items()}).dropna()


def overall(ranking: Ranking) -> Overall:
    """The methods of a ranking over its blocks, by its first metric.

    Raises SettingError: there are fewer than two methods, fewer than two blocks with a value of each, or no seed in
    all.
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
    found = Overall(complete, metric, last, len(every) - len(complete))
    if not found.seeds:
        raise SettingError(f"overall: no seed has a value of {metric.name} in all {len(complete)} conditions; run one")
    return found


def overall_table(over: Overall, baseline: str = "") -> tuple[Table, list[dict[str, Any]]]:
    """Methods over the conditions of a ranking, the best mean rank first; and as JSON has it.

    With a baseline also the difference of ranks to it, paired by seed.
    """
    ranks = over.ranks
    if baseline:
        check_one_of("against", baseline, map(str, ranks))
    columns = [Column("method", words=True, axis=METHOD), Column("mean rank"), Column("best in")]
    columns += [Column(f"minus {baseline}", named=f"minus {method_name(baseline)}")] if baseline else []
    entries: list[list[Printable]] = []
    rows = []
    for method in map(str, ranks):
        rank, best = estimate(ranks[method].to_numpy()), over.best_in(method)
        low, high = map(finite, rank.interval())
        row = {"labels": {METHOD: method}, "metric": over.metric.name, "mean_rank": rank.mean, "low": low, "high": high}
        row |= {"best_in": best, "conditions": len(over.blocks)}
        entry: list[Printable] = [method, interval(rank, RANK), f"{best} of {len(over.blocks)}"]
        if baseline:
            less = estimate((ranks[method] - ranks[baseline]).to_numpy()) if method != baseline else None
            entry.append(change(less, RANK) if less else "")
            row |= {"against": baseline, "difference": less.mean if less else None}
        entries.append(entry)
        rows.append(row)
    parts = [f"{over.metric.name} {over.metric.arrow} over {len(over.blocks)} conditions"]
    parts += [f"{over.left_out} left out, in which a method has no value"] if over.left_out else []
    parts.append(f"mean rank over conditions and {counted(len(ranks), 'seed')}, 1 is best; a diverged run is worst")
    parts += (
        [f"not all conditions have the seeds {', '.join(map(str, left))}: left out"]
        if (left := over.other_seeds)
        else []
    )
    parts.append("brackets: 95 %, Student's t over seeds, from three seeds")
    parts += [SEARCHED] if any(cell.searched for block in over.blocks for cell in block.values()) else []
    return Table(columns, entries, "; ".join(parts)), rows


def comparison_tables(
    found: Mapping[str, Sequence[Comparison]], a: str, b: str
) -> tuple[dict[str, Table], dict[str, Any]]:
    """A table for each experiment with a row for each pair of cells, a and b; and all rows and a summary, as JSON."""
    columns = [Column("cell", words=True), *(Column(title, group="means") for title in (a, b, "difference"))]
    columns.append(Column("wins", group="wins"))
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
            both = [cell.number(metric, one.last_rounds) for cell in (one.cell, one.other)]
            won, tied, _ = one.wins
            wins = f"{won} of {sum(one.wins)}{f', {tied} tied' if tied else ''}"
            texts = [value.text if value else "" for value in both]
            table.rows.append([where or "all", *texts, one.text, wins])
            row = {"experiment": experiment, "labels": labels, "metric": metric.name, "rounds": one.cell.rounds_run}
            for side, value in zip("ab", both, strict=True):
                row |= {f"mean_{side}": finite(value.mean if value else None)}
                row |= {f"sd_{side}": finite(value.sd if value else None)}
            rows.append(row | one.row)
    verdicts = [one.verdict() for comparisons in found.values() for one in comparisons]
    data: dict[str, Any] = {"cells": len(verdicts), "better": verdicts.count(1), "worse": verdicts.count(-1)}
    says = f"{a} is better in {data['better']} of {counted(len(verdicts), 'cell')}, worse in {data['worse']}"
    return tables, {"rows": rows, "overall": data | {"says": f"{says} (by the 95 % interval)."}}


def ranking_table(
    ranking: Ranking, baseline: str = "", beside: Mapping[str, Sequence[Comparison | None]] | None = None
) -> Table:
    """The cells of a ranking, group by group, the best value of each metric of a group marked.

    `beside` has, by metric, the comparison of each cell with a baseline; see `against`.
    """
    cells, last_rounds = ranking.cells, ranking.last_rounds
    columns: list[tuple[Column, Sequence[Printable]]] = []
    for key in (METHOD, *ranking.settings):
        head = Column("method" if key == METHOD else ranking.short(key), words=True, axis=key)
        columns.append((head, [one.labels[key] for one in cells]))
    for metric in ranking.metrics:
        values = [entry for group in ranking.groups for entry in _marked(group, metric, last_rounds)]
        columns.append((Column(metric.head, arrow=metric.arrow, group=metric.name), values))
        if beside:
            less = Column(f"minus {baseline}", named=f"minus {method_name(baseline)}", group=metric.name)
            columns.append((less, [one.text if one else "" for one in beside[metric.name]]))
    columns.append((Column("seeds", group=SIZE), [len(cell.runs) for cell in cells]))
    parts = [", ".join(f"{metric.name} {metric.arrow}" for metric in ranking.metrics)]
    parts += _how(cells, ranking.metrics, last_rounds)
    seeds = [",".join(sorted(cell.runs, key=int)) for cell in cells]
    if len(set(seeds)) > 1:  # as when the best settings of a search run with more seeds
        columns.append((Column("which seeds", words=True, group=SIZE), seeds))
        parts.append("rows have different seeds (to compare equal ones: --only seed=...)")
    columns.append((Column("rounds", group=SIZE), [cell.rounds_run for cell in cells]))
    compared = [one for every in (beside or {}).values() for one in every if one]
    parts += [how(baseline, compared)] if compared else []
    best_of = f" of the rows with equal {', '.join(ranking.equal)}" if ranking.equal else ""
    return Table.of_columns(columns, "; ".join(parts), best_of)


def paper_table(experiment: PaperExperiment, cells: Sequence[Cell], numbers: Sequence[Printed]) -> Table:
    """The table as the paper lays it out: the report's `columns` across, the other axes that vary down the side.

    If the paper prints a number, it stands beside the measured one, also where nothing was run, with the difference and
    its interval over our seeds; in brackets, with the share of the steps, where the runs have fewer rounds.
    A metric that the paper prints for other cells only is left out, and so is an empty column beside printed ones.
    There is at least one cell. Of an axis of the experiment on which all cells have one label, the caption says which.
    """
    report, last_rounds = experiment.report, experiment.report.last_rounds
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    varying = [axis for axis in axes if len({cell.labels.get(axis, "") for cell in cells}) > 1]
    down = [axis for axis in varying if axis not in report.columns]
    if METHOD in axes and METHOD not in (*down, *report.columns):
        down.append(METHOD)  # a single method is named too
    across = [axis for axis in report.columns if axis in varying]
    heads = list(product(*(dict.fromkeys(cell.labels.get(axis, "") for cell in cells) for axis in across)))
    compared = {number.metric for number in numbers}
    elsewhere = compared - {number.metric for number in numbers if any(number.of(cell.labels) for cell in cells)}
    metrics = [metric for metric in report.metrics if any(cell.measured(metric) for cell in cells)]
    metrics = [metric for metric in metrics if metric not in elsewhere] or metrics
    mixed = len({run.source for cell in cells for run in cell.runs.values()}) > 1
    filled = {(_labels(cell, across), metric) for cell in cells for metric in metrics if cell.measured(metric)}
    asked = product(heads, metrics)
    measures = [(head, one) for head, one in asked if not compared or one in compared or (head, one) in filled]
    rows = []
    for labels in dict.fromkeys(_labels(cell, down) for cell in cells):
        in_row = [cell for cell in cells if _labels(cell, down) == labels]
        row: list[Printable] = list(labels)
        for head, metric in measures:
            cell = next((cell for cell in in_row if _labels(cell, across) == head), None)
            at = cells[0].labels | dict(zip([*down, *across], [*labels, *head], strict=True))
            row += beside_printed(cell, at, metric, last_rounds, numbers)[: 3 if metric in compared else 1]
        done = [cell for cell in in_row if cell.runs] or in_row
        row.append(f"{span([len(cell.runs) for cell in done])} of {span([cell.seeds for cell in done])}")
        row.append(f"{span([cell.rounds_run for cell in done])} of {span([cell.rounds for cell in done])}")
        sources = sorted({run.source for cell in in_row for run in cell.runs.values()}, reverse=True)
        rows.append([*row, ", ".join(sources)] if mixed else row)
    columns = [Column(axis, words=True, axis=axis) for axis in down]
    for head, metric in measures:
        names = [label_name(axis, label) for axis, label in zip(across, head, strict=True) if label]
        title, named = (" ".join([*filter(None, words), metric.head]) for words in (head, names))
        first = Column(title, named=named, group=f"{head} {metric.name}", above=str(head))
        beside = [replace(first, title=text, named="") for text in ("printed", "less printed") if metric in compared]
        columns += [first, *beside]
    columns += [Column(title, group=SIZE) for title in ("seeds", "rounds")]
    columns += [Column("runs", words=True, group=SIZE)] if mixed else []
    parts = [*_how(cells, metrics, last_rounds), "seeds and rounds: done of planned"]
    if compared:
        parts.append("less printed: with the 95 % interval over our seeds, from three on")
    if any(0 < cell.rounds_run < cell.rounds for cell in cells):
        parts.append("in brackets: after a share of the paper's steps, weighted by their learning rates")
    several = [axis for axis, labels in experiment.shown.items() if len(labels) > 1 and axis not in varying]
    titles = {label: panel.title for label, panel in experiment.panels.items() if panel.title}
    single = [(axis, label) for axis in several if (label := cells[0].labels.get(axis))]
    texts = [(axis == "panel" and titles.get(label)) or label_name(axis, label) for axis, label in single]
    parts += [f"all rows: {', '.join(texts)}"] if texts else []
    among = {one.among for one in numbers if one.metric in metrics and any(one.of(cell.labels) for cell in cells)}
    shared = [" and ".join(labels) for labels in sorted(among - {()})]
    parts += [f"*: one number for {labels} in our copy; whose it is, is not known" for labels in shared]
    return Table(columns, rows, "; ".join(parts))


def long_rows(
    cells: Iterable[Cell], metrics: Sequence[Metric], last_rounds: int, numbers: Sequence[Printed] = ()
) -> list[dict[str, Any]]:
    """A row for each cell that was run and each metric.

    `mean` is null where the evaluations do not cover the window or a seed diverged; `evaluations` is how many of them a
    run's mean is of; `planned` is the number of rounds that the file asks for.
    """
    rows = []
    for cell, metric in product([cell for cell in cells if cell.runs], metrics):
        if not (cell.measured(metric) or cell.diverged):
            continue
        measured, known = cell.number(metric, last_rounds), printed_for(cell.labels, metric, numbers)
        row = {
            "labels": {axis: label for axis, label in cell.labels.items() if label},
            "metric": metric.name,
            "mean": finite(measured.mean if measured else None),
            "sd": finite(measured.sd if measured else None),
            "seeds": len(cell.runs),
            "rounds": cell.rounds_run,
            "planned": cell.rounds,
            "evaluations": cell.evaluations(metric, last_rounds),
            "paper_mean": finite(known.value if known else None),
            "paper_sd": finite(known.sd if known else None),
            "source": ", ".join(sorted({run.source for run in cell.runs.values()})),
        }
        rows.append(
            row
            | ({"diverged": cell.diverged} if cell.diverged else {})
            | ({"note": known.note} if known and known.note else {})
        )
    return rows


def _marked(cells: Sequence[Cell], metric: Metric, last_rounds: int) -> list[Printable]:
    """The entries of competing cells, the best one of several marked; empty where there is no number.

    Cells of unequal seeds have no best one.
    """
    values = [cell.number(metric, last_rounds) for cell in cells]
    known = [one for one in zip(cells, values, strict=True) if one[1] and not math.isnan(one[1].mean)]  # NaN: diverged
    means = [value.mean for _, value in known if value]
    best = metric.best(means) if means else math.nan
    marked = len(cells) > 1 and math.isfinite(best) and len({frozenset(cell.runs) for cell, _ in known}) == 1
    return ["" if value is None else replace(value, best=marked and value.mean == best) for value in values]


def _labels(cell: Cell, axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell.labels.get(axis, "") for axis in axes)


def beside_printed(
    cell: Cell | None, labels: Mapping[str, str], metric: Metric, last_rounds: int, numbers: Sequence[Printed]
) -> list[Printable]:
    """The measured number, the printed one, and the difference with its 95 % interval; empty where there is none.

    The difference of runs with fewer rounds than planned stands in brackets, with their share of the steps.
    """
    measured = None if cell is None else cell.number(metric, last_rounds)
    known = printed_for(labels, metric, numbers)
    if known is None or known.value is None:
        return [measured or "", f"({known.shared})*" if known else "", ""]
    sd = math.nan if known.sd is None else known.sd
    paper = number(known.value, sd, lambda value: metric.text(value, sd))
    if cell is None or measured is None or not math.isfinite(measured.mean - known.value):
        return [measured or "", paper, ""]
    less = measured.mean - known.value
    if metric.threshold is not None:  # a round that was reached stays the first
        return [measured, paper, Number(less, math.nan, signed(less, metric.text(abs(less))))]
    text = change(estimate((cell.finals(metric, last_rounds) - known.value).to_numpy()), metric)
    if cell.rounds_run < cell.rounds:
        return [measured, paper, f"({text} at {cell.share:.0%})"]
    return [measured, paper, Number(less, math.nan, text)]


def span(counts: Collection[int]) -> str:
    """`300`, or `300 to 10,000`: the least and the largest of some counts."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _how(cells: Sequence[Cell], metrics: Sequence[Metric], last_rounds: int) -> list[str]:
    ran = [cell for cell in cells if cell.runs]
    counts = {cell.evaluations(metric, last_rounds) for cell in ran for metric in metrics} - {0}
    over = f" ({span(counts)} evaluation{'' if counts == {1} else 's'})" if counts else ""
    reached = dict.fromkeys(metric.over for metric in metrics if metric.threshold is not None)
    parts = ["last evaluation" if last_rounds == 1 else f"mean of the last {last_rounds} rounds{over}"]
    parts = parts if any(metric.threshold is None for metric in metrics) else []
    for cost in reached:
        until = "first round at which" if cost == "round" else f"{COSTS[cost]} until"
        parts.append(f"{until} the mean curve over the seeds reaches the value")
    parts.append("mean ± standard deviation over seeds")
    measured = [(cell, metric) for cell in ran for metric in metrics if not cell.is_analysis and cell.measured(metric)]
    if any(cell.number(metric, last_rounds) is None for cell, metric in measured):
        parts.append("empty: the evaluations do not cover these rounds (--last-rounds N averages fewer)")
    return parts
