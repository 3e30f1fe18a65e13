"""Experiments judged by their results, the papers' statements and core messages, REPRODUCTION.md and FINDINGS.md.

Both pages follow from kept results alone. The pages of single experiments and statements are on the site.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import Field

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.comparison import VERSION, Comparison, pairs, versions
from rollcall.leaderboard.names import label_name
from rollcall.leaderboard.paper.claims import (
    DECIDED,
    ORDER,
    VERDICTS,
    ClaimResult,
    Results,
    Verdict,
    check_claim,
    round_reached,
    weakest,
)
from rollcall.leaderboard.paper.counts import PAPERS, Told, claim_counts, decided, of_papers, tally
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment
from rollcall.leaderboard.paper.orders import Gap, Order, taken_apart
from rollcall.leaderboard.paper.quantities import Quantity, estimate
from rollcall.leaderboard.paper.reported import Printed, printed, printed_for
from rollcall.leaderboard.paper.sentences import MARK, SEARCHED, change, claims_list, interval, tally_of, unit_of, words
from rollcall.leaderboard.render import Column, Entry, Table
from rollcall.leaderboard.runs import Run, unarchive
from rollcall.leaderboard.tables import paper_table

HERE = Path(__file__).parents[1]
NAME, FINDINGS = "REPRODUCTION.md", "FINDINGS.md"
PICTURE, ORDERS = "pictures/printed.svg", "pictures/orders.svg"
MESSAGES, STATEMENTS = HERE / "core_messages.yaml", HERE / "statements.yaml"

SITE = ""
"""The address of the published site, with a slash at its end. While it is empty, Markdown names pages instead."""

SETTLED: tuple[Verdict, ...] = (*DECIDED, "erratum", "not testable")

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class Message(Settings):
    """A core message of a paper. Its claims decide it.

    `number` is the statement whose numbers stand beside the message, `place` the labels of one of its places by axis,
    `reading` one of its readings (by default the first), and `what` says what the numbers are.
    """

    paper: Literal["PBC", "SUN", "FOC", "CAF", "HAR"]
    message: str
    statements: tuple[str, ...]
    why: str
    number: str = ""
    place: dict[str, str] = Field({})
    reading: str = ""
    what: str = ""


class Statement(Settings):
    """A testable sentence of a paper. Its claims decide it; if it has none, `done` is the reason in one line.

    `verdict` is that of a sentence without claims which no run can decide, as its setting is not printed.
    """

    id: str
    section: str
    statement: str
    done: str = ""
    verdict: Literal["not testable"] | None = None


class Sentence(Settings):
    """A sentence of `findings.yaml`, and the verdicts that it rests on: by experiment, by the number of the claim."""

    says: str
    rests: dict[str, dict[int, Verdict]] = Field({})


class Finding(Sentence):
    """The main sentence of an experiment.

    Attributes:
        known: what papers already say about it, and what is new.
        search: what its rates were searched with; empty if they were not.
    """

    known: str
    search: str = ""


class Advice(Sentence):
    """What to use (`says`) if the clients are like this, and on which task, or by which theory, that was shown."""

    clients: str
    basis: str


class Findings(Settings):
    """The content of `findings.yaml`: findings, published orders, checks by another route, the guide and its limits."""

    findings: dict[str, Finding]
    orders: tuple[Order, ...]
    checks: tuple[Sentence, ...]
    guide: tuple[Advice, ...]
    limits: tuple[Sentence, ...]

    @classmethod
    def read(cls) -> "Findings":
        return validated(cls, load_yaml(HERE / "findings.yaml"))


@dataclass(frozen=True)
class ToldMessage:
    """A core message with its verdict and its numbers as text, empty if there are none; `size`: seeds and rounds."""

    message: Message
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
        """The table of each variant that was run: what it changes, or its own if there is nothing to compare with."""
        of_paper = {digest for cell in self.ran for digest in cell.trials}
        tables = {}
        for name, variant in self.variants.items():
            changed = changes(self, name)
            apart = not {digest for cell in variant.ran for digest in cell.trials} <= of_paper
            if changed.rows or apart:
                tables[name] = changed if changed.rows else variant.table
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


def statements() -> list[Statement]:
    return [validated(Statement, content) for content in load_yaml(STATEMENTS)]


def stated(told: Sequence[Told]) -> list[tuple[Statement, list[Told], Verdict | None]]:
    """Each statement with its claims and its verdict; None if it has neither claims of the paper nor a verdict."""
    found = []
    for one in statements():
        own = [claim for claim in told if claim.result.claim.statement == one.id]
        verdicts = [claim.result.verdict for claim in of_papers(own)]  # a sentence counts once
        found.append((one, own, one.verdict or (weakest(verdicts) if verdicts else None)))
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
        papers=PAPERS, verdicts=VERDICTS, order=ORDER, picture=PICTURE, site=SITE,
    )  # fmt: skip


def findings(all_judged: Sequence[Judged]) -> str:
    content, own = Findings.read(), {one.experiment.name: one for one in all_judged}

    def rests(sentence: Sentence) -> str:
        """The claims that a sentence rests on, as links where the site has an address."""
        pairs = [(name, number) for name, numbers in sentence.rests.items() for number in numbers]
        page = f"{SITE}experiments/findings/{{0}}.html#claim-{{1}}"
        form = f"[{{0}} {{1}}]({page})" if SITE else "{0} {1}"
        return ", ".join(form.format(*pair) for pair in pairs)

    shown = [
        (name, finding, one, claims_list(one.claims), [run for cell in one.ran for run in cell.runs.values()])
        for name, finding in content.findings.items()
        if (one := own.get(f"findings/{name}")) is not None
    ]
    return PAGES.get_template("findings.md").render(
        told=content, shown=shown, origin=origin, rests=rests,
        orders=orders() if shown else [], picture=ORDERS,
    )  # fmt: skip


def orders() -> list[tuple[Order, str, list[Gap]]]:
    """The published orders of `findings.yaml`: each with what it shows, and its gaps by kept results."""
    listed = [(order, taken_apart(order, kept(order.experiment).results)) for order in Findings.read().orders]
    return [(order, order.says.format(*(gap.text for gap in gaps)), gaps) for order, gaps in listed]


def printed_beside(
    cells: Iterable[Cell], numbers: Sequence[Printed], last_rounds: int
) -> Iterator[tuple[Cell, Metric, Printed, Quantity | None]]:
    """Each cell with a printed number and the measured quantity; None for the latter if a run diverged."""
    for cell, metric in product(cells, dict.fromkeys(number.metric for number in numbers)):
        number = printed_for(cell.labels, metric, numbers)
        if number is not None and number.value is not None and cell.measured(metric):
            values = cell.finals(metric, last_rounds)
            quantity: Quantity | None = None
            if len(values) > 0 and not cell.diverged:
                of_values = metric.threshold is None
                quantity = estimate(values.to_numpy(), cell.exact) if of_values else round_reached(metric, cell, None)
            yield cell, metric, number, quantity


def messages(told: Sequence[Told]) -> list[ToldMessage]:
    """The core messages of the papers, each with the first verdict in `ORDER` of its claims, and with its numbers."""
    own = [one.result for one in of_papers(told)]
    return [_told(validated(Message, content), own) for content in load_yaml(MESSAGES)]


def _told(message: Message, results: Sequence[ClaimResult]) -> ToldMessage:
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
            measured = interval(quantity, unit_of(result), result.level)
            size = f"{counted(place.seeds, 'seed')}{rounds}"
            return ToldMessage(message, verdict, number, f"{measured}{words(result)}{MARK * place.searched}", size)
    return ToldMessage(message, verdict)


def origin(runs: Sequence[Run]) -> str:
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
    texts = {}
    for override in experiment.overrides:
        where = ", ".join(" or ".join(labels) for labels in override.when.values())
        values = ", ".join(f"{path} {value}" for path, value in override.set.items())
        texts[where] = f"{values} ({override.found})" if override.found else values
    return texts


def changes(one: Judged, name: str) -> Table:
    """A row for each cell of a variant with runs of its own, over the seeds and the rounds that both have.

    Two cells whose equal rounds end where one of them was not evaluated have no row.
    """
    metric, last_rounds = one.experiment.report.metrics[0], one.experiment.report.last_rounds
    settings = "paper's settings"
    both = [
        pair
        for pair in pairs(versions({settings: one.cells, name: one.variants[name].cells}), name, settings)
        if all(cell.diverged or not math.isnan(cell.mean(metric, last_rounds)) for cell in pair)
    ]
    rows: list[list[Entry]] = []
    for after, before in both:
        compared = Comparison(after, before, metric, last_rounds).difference
        difference = change(compared, metric) if compared else ""
        means = [metric.text(cell.mean(metric, last_rounds)) for cell in (before, after)]
        where = ", ".join(label_name(axis, label) for axis, label in before.labels.items() if label and axis != VERSION)
        rows.append([where, *means, difference, len(after.runs), f"{after.rounds_run:,}"])
    columns = [Column("cell", words=True), *map(Column, (settings, name, "change", "seeds", "rounds"))]
    searched = f"; {SEARCHED}" if any(cell.searched for pair in both for cell in pair) else ""
    points = " in percentage points" if metric.percent else ""
    return Table(columns, rows, f"{metric.head}; change: {name} minus {settings}{points}, 95 % interval{searched}")
