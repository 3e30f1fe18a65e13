"""Experiments judged by their results, the papers' statements and core messages, and REPRODUCTION.md.

The page follows from kept results alone. The pages of single experiments and statements are on the site.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.paper.claims import (
    LEVELS,
    MEANINGS,
    ORDER,
    PAPERS,
    SETTLED,
    ClaimResult,
    Results,
    Told,
    Verdict,
    check_claim,
    claim_counts,
    decided,
    of_papers,
    tally,
    weakest,
)
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment, printed
from rollcall.leaderboard.paper.sentences import MARK, measured_text, tally_of, unit_of, words
from rollcall.leaderboard.render import Table
from rollcall.leaderboard.runs import Run, unarchive
from rollcall.leaderboard.tables import Comparison, comparison_tables, how, pairs, paper_table, versions

Written = SimpleNamespace
"""An entry of `core_messages.yaml`, `statements.yaml` or `findings.yaml`, whose keys are explained there."""

HERE = Path(__file__).parents[1]
NAME, PICTURE = "REPRODUCTION.md", "pictures/printed.svg"
MESSAGES, STATEMENTS = HERE / "core_messages.yaml", HERE / "statements.yaml"
MESSAGE: dict[str, Any] = {"number": "", "place": {}, "reading": "", "what": ""}

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def statements() -> list[Written]:
    """The testable sentences of the papers."""
    return [Written(**{"done": ""} | one) for one in load_yaml(STATEMENTS)]


@dataclass(frozen=True)
class ToldMessage:
    """A core message with its verdict and its numbers as text, empty if there are none; `size`: seeds and rounds."""

    message: Written
    verdict: Verdict
    printed: str = ""
    measured: str = ""
    size: str = ""


@dataclass(frozen=True)
class Judged:
    """An experiment, or a variant of one, judged by its runs, which include those of its variants.

    `archives` have the runs of the experiment that identifies its data, if it is another one; see `unarchive`.
    """

    experiment: PaperExperiment
    runs: Sequence[Run]
    archives: tuple[Path, ...] = ()

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
        other = kept(claim.data, *self.archives) if claim.data not in ("", self.experiment.name) else None
        of = self if claim.data == self.experiment.name else other
        return check_claim(claim, self.experiment, self.cells, self.results, of.identifying if of else None)

    @cached_property
    def identifying(self) -> ClaimResult | None:
        """The result of the claim whose printed number identifies the paper's data; None if there is none."""
        return next((self._result(claim) for claim in self.experiment.claims if claim.identifies), None)

    @cached_property
    def variants(self) -> dict[str, "Judged"]:
        """Its variants by name; a variant has none."""
        names = () if self.experiment.variant else self.experiment.variants
        return {name: Judged(self.experiment.as_(name), self.runs, self.archives) for name in names}

    @property
    def variant_tables(self) -> dict[str, Table]:
        """The table of each variant that was run: what it changes, or its own if there is nothing to compare with.

        Two cells whose equal rounds end where one of them was not evaluated are not compared.
        """
        metric, last_rounds, paper = *self.experiment.report.metrics[:1], self.experiment.report.last_rounds, "paper"
        of_paper, tables = {digest for cell in self.ran for digest in cell.trials}, {}
        for name, variant in self.variants.items():
            both = [
                pair
                for pair in pairs(versions({paper: self.cells, name: variant.cells}), name, paper)
                if all(cell.diverged or not math.isnan(cell.mean(metric, last_rounds)) for cell in pair)
            ]
            compared = [Comparison(*pair, metric, last_rounds, len(both)) for pair in both]
            if compared:
                (table,) = comparison_tables({name: compared}, name, paper)[0].values()
                told = f"{metric.head}; paper: the paper's settings; {how(paper, compared)}"
                tables[name] = replace(table, caption=told)
            elif not {digest for cell in variant.ran for digest in cell.trials} <= of_paper:
                tables[name] = paper_table(variant.experiment, variant.ran, printed(variant.experiment))
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

    def results(self, variant: str) -> Results:
        """The experiment, or a variant by its name, with its cells."""
        one = self.variants[variant] if variant else self
        return one.experiment, one.cells


@cache
def kept(name: str, *archives: Path) -> Judged:
    """An experiment of the suite, judged by its runs in some archives; see `unarchive`."""
    experiment = PaperExperiment.read(name)
    return Judged(experiment, unarchive(experiment.home, *archives), archives)


def stated(told: Sequence[Told]) -> list[tuple[Written, list[Told], Verdict | None]]:
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
        papers=PAPERS, levels=LEVELS, meanings=MEANINGS, order=ORDER, picture=PICTURE,
    )  # fmt: skip


def messages(told: Sequence[Told]) -> list[ToldMessage]:
    """The core messages of the papers, each with the first verdict in `ORDER` of its claims, and with its numbers."""
    own = [one.result for one in of_papers(told)]
    return [_told(Written(**MESSAGE | content), own) for content in load_yaml(MESSAGES)]


def _told(message: Written, results: Sequence[ClaimResult]) -> ToldMessage:
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
