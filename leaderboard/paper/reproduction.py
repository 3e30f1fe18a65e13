"""What reproduced: a front page, a page of every testable statement for each paper, and a page for each experiment.

All pages follow from kept results alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.comparison import SEARCHED, VERSION, Comparison, pairs, versions
from rollcall.leaderboard.paper.claims import VERDICTS, ClaimResult, Verdict, check_claim, round_reached, weakest
from rollcall.leaderboard.paper.quantities import FEWEST, Quantity, estimate
from rollcall.leaderboard.paper.reported import Printed, printed, printed_for
from rollcall.leaderboard.paper.sentences import change, claims_list, interval
from rollcall.leaderboard.render import Column, Entry, Table, markdown
from rollcall.leaderboard.runs import Run
from rollcall.leaderboard.tables import paper_table

NAME = "REPRODUCTION.md"
FOLDER = "reproduction"
PICTURE = "figures/printed.svg"
MESSAGES = Path(__file__).parents[1] / "core_messages.yaml"
STATEMENTS = Path(__file__).parents[1] / "statements.yaml"

PAPERS = {"PBC": "FedPBC", "SUN": "Debiased FedAvg", "FOC": "FOCUS", "CAF": "CA-Fed", "HAR": "Spatial correlation"}
"""The papers by the first part of their statements' ids."""

FOLDERS = dict(zip(("fedpbc", "sun", "focus", "ca_fed", "harrak"), PAPERS, strict=True))
"""The first parts by the papers' folders of experiments."""

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
PAGES.filters["line"] = lambda text: " ".join(text.split())

DECIDED: tuple[Verdict, ...] = ("holds", "contradicted", "no difference that matters")


class Message(Settings):
    """A core message of a paper.

    Its claims decide it: `yes` if they hold, `no` if one is contradicted, else `open`.
    """

    paper: Literal["PBC", "SUN", "FOC", "CAF", "HAR"]
    message: str
    statements: tuple[str, ...]
    why: str


class Statement(Settings):
    """A testable sentence of a paper. Its claims decide it; if it has none, `done` is the reason in one line."""

    id: str
    section: str
    statement: str
    done: str = ""


@dataclass(frozen=True)
class Judged:
    """An experiment, or a variant of one, judged by its results.

    Attributes:
        experiment: of a paper.
        runs: those of its variants included.
    """

    experiment: Experiment
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
        return [check_claim(claim, self.experiment, self.cells) for claim in self.experiment.judged]

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

    @cached_property
    def table(self) -> Table:
        """The paper's table of the cells that have runs."""
        return paper_table(self.experiment, self.ran, printed(self.experiment))


def reproduction(all_judged: Sequence[Judged]) -> dict[str, str]:
    """The text of every page by its path: `REPRODUCTION.md`, one for each paper, and one for each experiment."""
    results = [result for one in all_judged for result in (*one.claims, *one.others)]
    found = _by_statement(all_judged)
    every = [(one, found.get(one.id, [])) for one in statements()]
    titles = {prefix: f"[{paper}]({FOLDER}/statements/{prefix}.md)" for prefix, paper in PAPERS.items()}
    coverage = []
    for prefix, title in {**titles, "": "all"}.items():
        listed = [own for one, own in every if one.id.startswith(prefix)]
        weak = [weakest(verdict for verdict, _ in own) for own in listed if own]
        coverage.append([title, len(listed), len(weak), sum(one in DECIDED for one in weak), *_tally(weak)])
    kinds = {
        paper: [one.verdict for one in results if (one.claim.statement or "").startswith(prefix)]
        for prefix, paper in PAPERS.items()
    }
    tags = {"all of the papers": "paper", "about released code": "released code", "own checks": "ours"}
    kinds |= {title: [one.verdict for one in results if one.claim.tag == tag] for title, tag in tags.items()}
    counts = [[title, *_tally(verdicts)] for title, verdicts in kinds.items()]
    front = PAGES.get_template("front.md").render(
        messages=messages(results), coverage=coverage, counts=counts, experiments=all_judged,
        papers=PAPERS, verdicts=VERDICTS, picture=PICTURE, folder=FOLDER,
    )  # fmt: skip
    page, pages = PAGES.get_template("statements.md"), {NAME: front}
    judged = [(one, [line for _, line in own], weakest(verdict for verdict, _ in own)) for one, own in every]
    for prefix, paper in PAPERS.items():
        of_paper = [one for one in judged if one[0].id.startswith(prefix)]
        pages[f"{FOLDER}/statements/{prefix}.md"] = page.render(paper=paper, statements=of_paper)
    return pages | {f"{FOLDER}/{one.experiment.name}.md": _page(one) for one in all_judged}


def _tally(verdicts: Sequence[Verdict]) -> list[int | str]:
    return [verdicts.count(verdict) or "" for verdict in VERDICTS]


def statements() -> list[Statement]:
    """The testable statements of the papers."""
    return [validated(Statement, content) for content in load_yaml(STATEMENTS)]


def agreement(experiment: Experiment, measured: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
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


def messages(results: Sequence[ClaimResult]) -> list[tuple[Message, Verdict]]:
    """The core messages of the papers, each with the weakest verdict of its claims."""
    listed = [validated(Message, content) for content in load_yaml(MESSAGES)]
    return [(one, weakest(own.verdict for own in results if own.claim.statement in one.statements)) for one in listed]


Found = dict[str, list[tuple[Verdict, str]]]
"""The verdict and the line of each claim by the id of its statement."""


def _by_statement(all_judged: Sequence[Judged]) -> Found:
    """Verdicts and lines of the papers' claims; a line links to the claim's details."""
    found: Found = {}
    for one in all_judged:
        lines = [*claims_list(one.claims), *claims_list(one.others)]
        for index, (line, result) in enumerate(zip(lines, (*one.claims, *one.others), strict=True)):
            number, text = line.split(". ", 1)
            anchor = f"#{number}" if index < len(one.claims) else ""  # a variant's claims have no anchors
            link = f"[{one.experiment.name}](../{one.experiment.name}.md{anchor})"
            found.setdefault(result.claim.statement or "", []).append((result.verdict, f"{link} {text}"))
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


def overrides(experiment: Experiment) -> dict[str, str]:
    """The settings of each override by the labels that it is for."""
    texts = {}
    for override in experiment.overrides:
        where = ", ".join(" or ".join(labels) for labels in override.when.values())
        values = ", ".join(f"{path} {value}" for path, value in override.set.items())
        texts[where] = f"{values} ({override.found})" if override.found else values
    return texts


def changes(one: Judged, name: str) -> Table:
    """A row for each cell of a variant with runs of its own, over the seeds that both have."""
    metric, last_rounds = one.experiment.report.metrics[0], one.experiment.report.last_rounds
    rows: list[list[Entry]] = []
    both = pairs(versions({"paper": one.cells, name: one.variants[name].cells}), name, "paper")
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
