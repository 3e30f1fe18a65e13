"""Experiments judged by their results, the papers' statements and core messages, REPRODUCTION.md and FINDINGS.md.

Both pages follow from kept results alone. The pages of single experiments and statements are on the site.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rollcall.benchmark.config.base import load_yaml, validated
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.search.board import Board
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.paper.claims import (
    ORDER,
    PAPERS,
    SETTLED,
    VERDICTS,
    ClaimResult,
    Results,
    Told,
    Verdict,
    check_claim,
    claim_counts,
    decided,
    of_papers,
    pairs_of,
    tally,
    values_of,
    weakest,
)
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment, printed, printed_for
from rollcall.leaderboard.paper.quantities import Estimate, estimate, geometric
from rollcall.leaderboard.paper.sentences import (
    MARK,
    RATIO,
    change,
    claims_list,
    interval,
    measured_text,
    tally_of,
    unit_of,
    words,
)
from rollcall.leaderboard.render import Table, markdown
from rollcall.leaderboard.runs import Run, unarchive
from rollcall.leaderboard.standing import Standing, expectations, points, result_table, standing
from rollcall.leaderboard.standing import interval as over_searches
from rollcall.leaderboard.tables import Comparison, comparison_tables, how, pairs, paper_table, versions

Entry = SimpleNamespace
"""An entry of `core_messages.yaml`, `statements.yaml` or `findings.yaml`, whose keys are explained there."""


@dataclass(frozen=True)
class Gap:
    """A row with its gap over the seeds, the step from the first row's gap, the printed gap, and the size of the runs.

    `searched`: whether rates were searched, whose uncertainty is not in the interval.
    """

    row: Entry
    gap: Estimate
    step: Estimate | None
    printed: float | None
    metric: Metric
    size: str
    searched: bool

    @property
    def text(self) -> str:
        return self._of(self.gap) + MARK * self.searched

    @property
    def printed_text(self) -> str:
        return "" if self.printed is None else f"{'+' * (self.printed >= 0)}{self.metric.text(self.printed)}"

    @property
    def step_text(self) -> str:
        return f"{'× ' if self.gap.logarithmic else ''}{self._of(self.step)}" if self.step else ""

    def _of(self, quantity: Estimate) -> str:
        return interval(quantity, RATIO) if quantity.logarithmic else change(quantity, self.metric)


def taken_apart(order: Entry, results: Callable[[str], Results]) -> list[Gap]:
    """The gap in each row; `results` gives the experiment, or a variant of it by name, with its cells."""
    made: list[Gap] = []
    first = pd.Series(dtype=float)
    for row in (Entry(**{"variant": "", "changes": {}} | row) for row in order.rows):
        experiment, cells = results(row.variant)
        claim = validated(Claim, {"says": row.setting, "tag": "ours", "least": 0.0, **order.gap, **row.changes})
        metric = claim.metric or experiment.report.metrics[0]
        ((cell, other),) = pairs_of(claim, metric, cells)
        assert other is not None
        values = values_of(claim, metric, experiment, cell, other)
        known = [printed_for(one.labels, metric, printed(experiment)) for one in (cell, other)]
        of_table = [number.value for number in known if number is not None and number.value is not None]
        paper = of_table[0] - of_table[1] if len(of_table) == 2 else None if made else order.printed
        of = geometric if claim.over else estimate
        steps = (values / first if claim.over else values - first).dropna()
        first = values if first.empty else first
        planned = f" of {cell.rounds:,}" if cell.rounds_run < cell.rounds else ""
        size = f"{counted(len(values), 'seed')}, {cell.rounds_run:,}{planned} rounds"
        step, searched = of(steps.to_numpy()) if made else None, bool(cell.searched or other.searched)
        made.append(Gap(row, of(values.to_numpy()), step, paper, metric, size, searched))
    return made


HERE = Path(__file__).parents[1]
NAME, FINDINGS = "REPRODUCTION.md", "FINDINGS.md"
PICTURE, ORDERS = "pictures/printed.svg", "pictures/orders.svg"
MESSAGES, STATEMENTS = HERE / "core_messages.yaml", HERE / "statements.yaml"
MESSAGE: dict[str, Any] = {"number": "", "place": {}, "reading": "", "what": ""}

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def statements() -> list[Entry]:
    """The testable sentences of the papers."""
    return [Entry(**{"done": ""} | one) for one in load_yaml(STATEMENTS)]


def written() -> Entry:
    """The sentences of FINDINGS.md: findings by name, published orders, checks by another route, guide and limits."""
    told: dict[str, Any] = load_yaml(HERE / "findings.yaml")
    own: dict[str, Any] = {"rests": {}, "search": "", "boards": ()}
    lists = {key: [Entry(**own | one) for one in told[key]] for key in ("checks", "guide", "limits")}
    orders = [Entry(**{"printed": None} | one) for one in told["orders"]]
    return Entry(findings={name: Entry(**own | one) for name, one in told["findings"].items()}, orders=orders, **lists)


@dataclass(frozen=True)
class ToldMessage:
    """A core message with its verdict and its numbers as text, empty if there are none; `size`: seeds and rounds."""

    message: Entry
    verdict: Verdict
    printed: str = ""
    measured: str = ""
    size: str = ""


@dataclass(frozen=True)
class Judged:
    """An experiment, or a variant of one, judged by its runs, which include those of its variants."""

    experiment: PaperExperiment
    runs: Sequence[Run]

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(self.experiment, self.runs)

    @property
    def ran(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.runs]

    @cached_property
    def claims(self) -> list[ClaimResult]:
        return [self._result(claim) for claim in self.experiment.judged]

    def _result(self, claim: Claim) -> ClaimResult:
        # The experiment that identifies the data, if it is another one than this, is judged by kept results alone.
        of = self if claim.data == self.experiment.name else kept(claim.data) if claim.data else None
        return check_claim(claim, self.experiment, self.cells, self.results, of.identifying if of else None)

    @cached_property
    def identifying(self) -> ClaimResult | None:
        """The result of the claim whose printed number identifies the paper's data; None if there is none."""
        return next((self._result(claim) for claim in self.experiment.claims if claim.identifies), None)

    @cached_property
    def variants(self) -> dict[str, "Judged"]:
        """Its variants by name; a variant has none."""
        names = () if self.experiment.variant else self.experiment.variants
        return {name: Judged(self.experiment.as_(name), self.runs) for name in names}

    @property
    def variant_tables(self) -> dict[str, Table]:
        """The table of each variant that was run: what it changes, or its own if there is nothing to compare with.

        Two cells whose equal rounds end where one of them was not evaluated are not compared.
        """
        metric, last_rounds, paper = *self.experiment.report.metrics[:1], self.experiment.report.last_rounds, "paper"
        of_paper, tables = {digest for cell in self.ran for digest in cell.trials}, {}
        for name, variant in self.variants.items():
            both = pairs(versions({paper: self.cells, name: variant.cells}), name, paper)
            compared = [
                Comparison(*pair, metric, last_rounds, len(both))
                for pair in both
                if all(cell.diverged or not math.isnan(cell.mean(metric, last_rounds)) for cell in pair)
            ]
            if compared:
                (table,) = comparison_tables({name: compared}, name, paper)[0].values()
                told = f"{metric.head}; paper: the paper's settings; {how(paper, compared)}"
                tables[name] = replace(table, caption=told)
            elif not {digest for cell in variant.ran for digest in cell.trials} <= of_paper:
                tables[name] = variant.table
        return tables

    @property
    def told(self) -> list[Told]:
        """All results, those of its variants last."""
        of = {self.experiment.variant: self, **self.variants}
        return [
            Told(self.experiment, variant, number, result)
            for variant, one in of.items()
            for number, result in enumerate(one.claims, 1)
        ]

    @cached_property
    def table(self) -> Table:
        return paper_table(self.experiment, self.ran, printed(self.experiment))

    def results(self, variant: str) -> Results:
        """The experiment, or a variant by its name, with its cells."""
        one = self.variants[variant] if variant else self
        return one.experiment, one.cells


@cache
def kept(name: str) -> Judged:
    """An experiment of the suite, judged by its kept results."""
    experiment = PaperExperiment.read(name)
    return Judged(experiment, unarchive(experiment.home))


def stated(told: Sequence[Told]) -> list[tuple[Entry, list[Told], Verdict | None]]:
    """Each statement with its claims and its verdict; None if it has no claims of the paper."""
    found = []
    for one in statements():
        own = [claim for claim in told if claim.result.claim.statement == one.id]
        verdicts = [claim.result.verdict for claim in of_papers(own)]  # a sentence counts once
        found.append((one, own, weakest(verdicts) if verdicts else None))
    return found


def coverage(told: Sequence[Told]) -> list[list[int | str]]:
    """Rows of statements: of each paper and of all how many there are, how many are settled, and a count by verdict."""
    every, rows = stated(told), []
    for prefix, title in {**PAPERS, "": "all"}.items():
        own = [verdict for one, _, verdict in every if one.id.startswith(prefix)]
        known = [verdict for verdict in own if verdict]
        rows.append([title, len(own), sum(verdict in SETTLED for verdict in known), *tally(known)])
    return rows


def reproduction(all_judged: Sequence[Judged]) -> str:
    told = [one for judged in all_judged for one in judged.told]
    listed = messages(told)
    return PAGES.get_template("front.md").render(
        messages=listed, message_counts=tally_of(one.verdict for one in listed),
        coverage=coverage(told), counts=claim_counts(told), decided=decided(told),
        papers=PAPERS, verdicts=VERDICTS, order=ORDER, picture=PICTURE,
    )  # fmt: skip


def findings(all_judged: Sequence[Judged]) -> str:
    boards = {name: standing(Board.read(name)) for name in names("standard")}
    content, own = guided(boards), {one.experiment.name: one for one in all_judged}

    def rests(sentence: Entry) -> str:
        """The claims that a sentence rests on."""
        return ", ".join(f"{name} {number}" for name, numbers in sentence.rests.items() for number in numbers)

    shown = [
        (name, finding, one, claims_list(one.claims), [run for cell in one.ran for run in cell.runs.values()])
        for name, finding in content.findings.items()
        if (one := own.get(f"findings/{name}")) is not None
    ]
    return PAGES.get_template("findings.md").render(
        told=content, shown=shown, origin=origin, rests=rests, boards=boards.values(),
        board_table=lambda board: markdown(result_table(board, "fedavg")), expectations=expectations,
        orders=orders() if shown else [], picture=ORDERS,
    )  # fmt: skip


def guided(boards: Mapping[str, Standing]) -> Entry:
    """The sentences of FINDINGS.md, those of the guide with their numbers of boards."""
    content = written()
    for row in content.guide:
        row.says = row.says.format(*(gap_on(place, boards) for place in row.boards))
    return content


def gap_on(place: str, boards: Mapping[str, Standing]) -> str:
    """How far a method is above another, with the 95 % interval over searches; place: `BOARD PATTERN METHOD OTHER`."""
    board, pattern, method, baseline = place.split()
    values = boards[board].values[pattern]
    return points(over_searches(values[method] - values[baseline]), "+")


def orders() -> list[tuple[Entry, str, list[Gap]]]:
    """The published orders of `findings.yaml`: each with what it shows, and its gaps by kept results."""
    listed = [(order, taken_apart(order, kept(order.experiment).results)) for order in written().orders]
    return [(order, order.says.format(*(gap.text for gap in gaps)), gaps) for order, gaps in listed]


def messages(told: Sequence[Told]) -> list[ToldMessage]:
    """The core messages of the papers, each with the first verdict in `ORDER` of its claims, and with its numbers."""
    own = [one.result for one in of_papers(told)]
    return [_told(Entry(**MESSAGE | content), own) for content in load_yaml(MESSAGES)]


def _told(message: Entry, results: Sequence[ClaimResult]) -> ToldMessage:
    """A core message with the numbers of the first place of its `number` that has the labels and the reading."""
    verdict = weakest(result.verdict for result in results if result.claim.statement in message.statements)
    for result in (one for one in results if one.claim.statement == message.number):
        for place in result.places:
            quantity, fits = place.quantity, message.place.items() <= place.labels.items()
            if quantity is None or not fits or (message.reading and place.reading != message.reading):
                continue
            reached, planned = place.reached
            rounds = f", {reached:,} of {planned:,} rounds" if reached < planned else ""
            number = "" if place.printed is None else f"{unit_of(result).text(place.printed)}{words(result)}"
            measured = measured_text(result, quantity)
            size = f"{counted(place.seeds, 'seed')}{rounds}"
            return ToldMessage(message, verdict, number, f"{measured}{MARK * place.searched}", size)
    return ToldMessage(message, verdict)


def origin(runs: Sequence[Run]) -> str:
    runs = list({run.digest: run for run in runs}.values())  # one may be in several cells

    def values(tag: str) -> str:
        return ", ".join(sorted({run.tags.get(tag, "not recorded") for run in runs}))

    seconds = sum(float(run.tags.get("rollcall.seconds", 0.0)) for run in runs)
    return (
        f"{counted(len(runs), 'run')}, {seconds / 3600:.2f} hours in total; commit {values('commit')}; "
        f"Rollcall {values('version')}; device {values('device')}; machine {values('machine')}; "
        f"threads {values('threads')}."
    )


def overrides(experiment: PaperExperiment) -> dict[str, str]:
    """The settings of each override by the labels that it is for."""
    where = [", ".join(" or ".join(labels) for labels in one.when.values()) for one in experiment.overrides]
    values = [", ".join(f"{path} {value}" for path, value in one.set.items()) for one in experiment.overrides]
    found = [f" ({one.found})" if one.found else "" for one in experiment.overrides]
    return {labels: value + how for labels, value, how in zip(where, values, found, strict=True)}
