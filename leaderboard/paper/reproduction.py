"""What reproduced: a front page, a page of every testable statement for each paper, and a page for each experiment.

All pages follow from kept results alone.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import AfterValidator, Field

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.comparison import VERSION, Comparison, pairs, versions
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
from rollcall.leaderboard.paper.counts import (
    Kind,
    Told,
    by_chance,
    is_trained,
    kind_of,
    of_papers,
    reworded,
    tally,
)
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment
from rollcall.leaderboard.paper.quantities import FEWEST, Quantity, estimate
from rollcall.leaderboard.paper.reported import Printed, printed, printed_for
from rollcall.leaderboard.paper.sentences import MARK, SEARCHED, change, claims_list, interval, tally_of, unit_of
from rollcall.leaderboard.render import Column, Entry, Table, markdown
from rollcall.leaderboard.runs import Run, unarchive
from rollcall.leaderboard.tables import paper_table

NAME = "REPRODUCTION.md"
FOLDER = "reproduction"
PICTURE = "figures/printed.svg"
MESSAGES = Path(__file__).parents[1] / "core_messages.yaml"
STATEMENTS = Path(__file__).parents[1] / "statements.yaml"

SETTLED: tuple[Verdict, ...] = (*DECIDED, "erratum", "not testable")

WORDS = 25
"""Most words of the reason of a core message."""

PAPERS = {"PBC": "FedPBC", "SUN": "Debiased FedAvg", "FOC": "FOCUS", "CAF": "CA-Fed", "HAR": "Spatial correlation"}
"""The papers by the first part of their statements' ids."""

FOLDERS = {"fedpbc": "PBC", "sun": "SUN", "focus": "FOC", "ca_fed": "CAF", "harrak": "HAR"}
"""The first parts by the papers' folders of experiments."""

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
PAGES.filters["line"] = lambda text: " ".join(text.split())


def _paper(prefix: str) -> str:
    if prefix not in PAPERS:
        raise ValueError(f"must be one of {', '.join(PAPERS)}")
    return prefix


def _short(text: str) -> str:
    if len(text.split()) > WORDS:
        raise ValueError(f"has {len(text.split())} words; must have at most {WORDS}")
    return text


class Message(Settings):
    """A core message of a paper. Its claims decide it.

    `number` is the statement whose numbers stand beside the message, `place` the labels of one of its places by axis,
    `reading` one of its readings (by default the first), and `what` says what the numbers are.
    """

    paper: Annotated[str, AfterValidator(_paper)]
    message: str
    statements: tuple[str, ...]
    why: Annotated[str, AfterValidator(_short)]
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


@dataclass(frozen=True)
class ToldMessage:
    """A core message with its verdict and its numbers as text.

    Attributes:
        message: of a paper.
        verdict: of its claims.
        printed, measured: numbers of one place; empty if there is none.
        size: seeds and rounds of the measured number; empty if there is none.
    """

    message: Message
    verdict: Verdict
    printed: str = ""
    measured: str = ""
    size: str = ""


@dataclass(frozen=True)
class Judged:
    """An experiment, or a variant of one, judged by its results.

    Attributes:
        experiment: of a paper.
        runs: those of its variants included.
    """

    experiment: PaperExperiment
    runs: Sequence[Run]

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells of the experiment."""
        return cells(self.experiment, self.runs)

    @property
    def ran(self) -> list[Cell]:
        """The cells that have runs."""
        return [cell for cell in self.cells if cell.runs]

    @cached_property
    def claims(self) -> list[ClaimResult]:
        """The results of its own claims."""
        return [self._result(claim) for claim in self.experiment.judged]

    def _result(self, claim: Claim) -> ClaimResult:
        def variant(name: str) -> Results:
            return self.variants[name].experiment, self.variants[name].cells

        return check_claim(claim, self.experiment, self.cells, variant, self._identified(claim.data))

    def _identified(self, data: str) -> ClaimResult | None:
        """The `identifying` result of an experiment; of another one than this it is judged by kept results alone."""
        if not data:
            return None
        return (self if data == self.experiment.name else kept(data)).identifying

    @cached_property
    def identifying(self) -> ClaimResult | None:
        """The result of the claim whose printed number identifies the paper's data; None if there is none."""
        return next((self._result(claim) for claim in self.experiment.claims if claim.identifies), None)

    @cached_property
    def variants(self) -> dict[str, "Judged"]:
        """Its variants by name; a variant has none."""
        names = () if self.experiment.variant else self.experiment.variants
        return {name: Judged(self.experiment.as_(name), self.runs) for name in names}

    @cached_property
    def changes(self) -> dict[str, Table]:
        """What each variant changes: a row for each cell that it shares with the paper's version."""
        return {name: changes(self, name) for name in self.variants}

    @cached_property
    def apart(self) -> dict[str, "Judged"]:
        """The variants with runs of their own in cells of which the paper's version has no runs."""
        of_paper = {digest for cell in self.ran for digest in cell.trials}
        own = {name: {digest for cell in one.ran for digest in cell.trials} for name, one in self.variants.items()}
        return {
            name: self.variants[name]
            for name, digests in own.items()
            if not digests <= of_paper and not self.changes[name].rows
        }

    @property
    def others(self) -> list[ClaimResult]:
        """The results of its variants' claims."""
        return [result for variant in self.variants.values() for result in variant.claims]

    @property
    def told(self) -> list[Told]:
        """All results, each with its experiment and its variant."""
        of = {"": self, **self.variants}
        return [(self.experiment, variant, result) for variant, one in of.items() for result in one.claims]

    @cached_property
    def table(self) -> Table:
        """The paper's table of the cells that have runs."""
        return paper_table(self.experiment, self.ran, printed(self.experiment))


@cache
def kept(name: str) -> Judged:
    """An experiment of the suite, judged by its kept results."""
    experiment = PaperExperiment.read(name)
    return Judged(experiment, unarchive(experiment.home))


def reproduction(all_judged: Sequence[Judged]) -> dict[str, str]:
    """The text of every page by its path: `REPRODUCTION.md`, one for each paper, and one for each experiment."""
    told = [one for judged in all_judged for one in judged.told]
    found = _by_statement(all_judged)
    every = [(one, found.get(one.id, [])) for one in statements()]
    decided = {one.id: verdict for one, own in every if (verdict := one.verdict or _verdict(own))}
    titles = {prefix: f"[{paper}]({FOLDER}/statements/{prefix}.md)" for prefix, paper in PAPERS.items()}
    coverage = []
    for prefix, title in {**titles, "": "all"}.items():
        of = [verdict for name, verdict in decided.items() if name.startswith(prefix)]
        settled = sum(verdict in SETTLED for verdict in of)
        coverage.append([title, sum(one.id.startswith(prefix) for one, _ in every), settled, *tally(of)])
    told_messages = messages(told)
    front = PAGES.get_template("front.md").render(
        messages=told_messages, message_counts=tally_of(one.verdict for one in told_messages),
        coverage=coverage, counts=claim_counts(told), experiments=all_judged,
        papers=PAPERS, verdicts=VERDICTS, order=ORDER, picture=PICTURE, folder=FOLDER,
        reworded=reworded(told), by_chance=by_chance(told),
    )  # fmt: skip
    page, pages = PAGES.get_template("statements.md"), {NAME: front}
    judged = [(one, [line for _, line in own], decided.get(one.id)) for one, own in every]
    for prefix, paper in PAPERS.items():
        of_paper = [one for one in judged if one[0].id.startswith(prefix)]
        pages[f"{FOLDER}/statements/{prefix}.md"] = page.render(paper=paper, statements=of_paper)
    return pages | {f"{FOLDER}/{one.experiment.name}.md": _page(one) for one in all_judged}


def _verdict(own: Sequence[tuple[Verdict | None, str]]) -> Verdict | None:
    """The verdict of a statement over its claims; None if it has none of the paper."""
    verdicts = [verdict for verdict, _ in own if verdict]
    return weakest(verdicts) if verdicts else None


def claim_counts(told: Sequence[Told]) -> list[list[int | str]]:
    """Rows of claims by verdict: of each paper, of all, apart for trained figures and theory, and of other kinds."""
    own = of_papers(told)
    rows: dict[str, list[Told]] = {
        paper: [one for one in own if (one[2].claim.statement or "").startswith(prefix)]
        for prefix, paper in PAPERS.items()
    }
    rows["all of the papers"] = own
    rows["- figures and tables with training"] = [one for one in own if is_trained(one[0], one[2].claim)]
    rows["- theory"] = [one for one in own if not is_trained(one[0], one[2].claim)]
    for kind in get_args(Kind)[1:]:
        rows[kind] = [one for one in told if kind_of(one[1], one[2].claim) == kind]
    return [[title, *tally(result.verdict for _, _, result in listed)] for title, listed in rows.items()]


def statements() -> list[Statement]:
    """The testable statements of the papers."""
    return [validated(Statement, content) for content in load_yaml(STATEMENTS)]


def agreement(experiment: PaperExperiment, measured: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
    """Lines: how many printed numbers agree with the measured ones, and those that differ.

    Only cells with all rounds and at least three seeds are judged. A number agrees if it is within the interval,
    widened by the paper's standard deviation.
    """
    verdicts: Counter[str] = Counter()
    differing = []
    for cell, metric, number, quantity in printed_beside(measured, numbers, experiment.report.last_rounds):
        if cell.rounds_run < cell.rounds or quantity is None or quantity.seeds < FEWEST:
            verdicts["not judged (fewer rounds or seeds than printed, or diverged)"] += 1
            continue
        low, high = quantity.interval()
        value, sd = number.value or 0.0, number.sd or 0.0
        agrees = low - sd <= value <= high + sd
        verdicts["agree" if agrees else "differ"] += 1
        if not agrees:
            text = interval(quantity, metric)
            differing.append(f"- {cell.where}, {metric.name}: {text}, printed {metric.text(value)}")
    if not verdicts:
        return []
    tally = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return [f"Printed numbers: {tally}.", "", *differing, *([""] if differing else [])]


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


def variant_tables(one: Judged) -> dict[str, Table]:
    """The table of each variant that was run: what it changes, or its own table if there is nothing to compare with."""
    tables = one.changes | {name: variant.table for name, variant in one.apart.items()}
    return {name: table for name, table in tables.items() if table.rows}


def variants(one: Judged) -> list[str]:
    """Lines: for each variant that was run, what it changes and its claims."""
    lines = []
    for name, table in variant_tables(one).items():
        lines += [f"`{name}`: {' '.join(one.experiment.variants[name].about.split())}", "", markdown(table)]
        claims = one.variants[name].claims
        lines += [*claims_list(claims, why=True), ""] if claims else []
    return lines


def messages(told: Sequence[Told]) -> list[ToldMessage]:
    """The core messages of the papers, each with the first verdict in `ORDER` of its claims, and with its numbers."""
    listed = [validated(Message, content) for content in load_yaml(MESSAGES)]
    own = [result for _, _, result in of_papers(told)]
    return [_told(one, own) for one in listed]


def _told(message: Message, results: Sequence[ClaimResult]) -> ToldMessage:
    """A core message with the numbers of the first place of its `number` that has the labels and the reading."""
    verdict = weakest(result.verdict for result in results if result.claim.statement in message.statements)
    places = (
        (result, place)
        for result in results
        for place in result.places
        if place.quantity is not None
        and result.claim.statement == message.number
        and (not message.reading or place.reading == message.reading)
        and message.place.items() <= place.labels.items()
    )
    result, place = next(places, (None, None))
    if result is None or place is None or place.quantity is None:
        return ToldMessage(message, verdict)
    unit = unit_of(result)
    points = (" points" if result.claim.minus is not None else " %") if unit.percent else ""
    rounds = f", {place.reached[0]:,} of {place.reached[1]:,} rounds" if place.reached[0] < place.reached[1] else ""
    return ToldMessage(
        message,
        verdict,
        "" if place.printed is None else f"{unit.text(place.printed)}{points}",
        f"{interval(place.quantity, unit, result.level)}{points}{MARK * place.searched}",
        f"{counted(place.seeds, 'seed')}{rounds}",
    )


def _by_statement(all_judged: Sequence[Judged]) -> dict[str, list[tuple[Verdict | None, str]]]:
    """Verdicts and lines of the papers' claims; a line links to the claim's details.

    The verdict is None for a claim that is judged again under released code: a sentence counts once.
    """
    found: dict[str, list[tuple[Verdict | None, str]]] = {}
    for one in all_judged:
        lines = [*claims_list(one.claims), *claims_list(one.others)]
        for line, (_, variant, result) in zip(lines, one.told, strict=True):
            number, text = line.split(". ", 1)
            link = f"[{one.experiment.name}](../{one.experiment.name}.md{'' if variant else f'#{number}'})"
            verdict = result.verdict if kind_of(variant, result.claim) == "of the papers" else None
            under = "" if verdict else f"(by `{variant}`) "
            found.setdefault(result.claim.statement or "", []).append((verdict, f"{link} {under}{text}"))
    return found


def _page(one: Judged) -> str:
    """The page of one experiment: its claims, findings, table and figure, and the settings that need an explanation."""
    experiment = one.experiment
    text = PAGES.get_template("experiment.md").render(
        one=one,
        experiment=experiment,
        claims=[re.sub(r"^(\d+)\. ", r'\1. <a id="\1"></a>', line) for line in claims_list(one.claims, why=True)],
        table=markdown(one.table) if one.ran else "",
        agreement=agreement(experiment, one.ran, printed(experiment)),
        variants=variants(one),
        origin=origin([run for cell in one.ran for run in cell.runs.values()]),
        overrides=overrides(experiment),
    )
    return f"{text.rstrip()}\n"


def origin(runs: Sequence[Run]) -> str:
    """Where the results come from."""

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
    rows: list[list[Entry]] = []
    both = [
        pair
        for pair in pairs(versions({"paper": one.cells, name: one.variants[name].cells}), name, "paper")
        if all(cell.diverged or not math.isnan(cell.mean(metric, last_rounds)) for cell in pair)
    ]
    for after, before in both:
        compared = Comparison(after, before, metric, last_rounds).difference
        difference = change(compared, metric) if compared else ""
        means = [metric.text(cell.mean(metric, last_rounds)) for cell in (before, after)]
        where = ", ".join(label for axis, label in before.labels.items() if label and axis != VERSION)
        rows.append([where, *means, difference, len(after.runs), f"{after.rounds_run:,}"])
    columns = [Column("cell", words=True)]
    columns += [Column(title) for title in ("paper", name, "change", "seeds", "rounds")]
    searched = f"; {SEARCHED}" if any(cell.searched for pair in both for cell in pair) else ""
    return Table(columns, rows, f"{metric.name}; change: {name} minus paper, with its 95 % interval{searched}")
