"""What reproduced: a front page, a page of every testable statement for each paper, and a page for each experiment.

All pages follow from kept results alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.report import Tag
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard.cells import Cell, after_equal_rounds, cells
from rollcall.leaderboard.paper.claims import VERDICTS, ClaimResult, Verdict, check_claim, weakest
from rollcall.leaderboard.paper.quantities import FEWEST, estimate
from rollcall.leaderboard.paper.reported import Printed, printed, printed_for
from rollcall.leaderboard.paper.sentences import change, claims_list, counts, interval
from rollcall.leaderboard.render import Column, Entry, Table, markdown
from rollcall.leaderboard.runs import Run, unarchive
from rollcall.leaderboard.tables import paper_table

NAME = "REPRODUCTION.md"
FOLDER = "reproduction"
PICTURE = "figures/printed.svg"
MESSAGES = Path(__file__).parents[1] / "core_messages.yaml"
STATEMENTS = Path(__file__).parents[1] / "statements.yaml"

PAPERS = {"PBC": "FedPBC", "SUN": "Debiased FedAvg", "FOC": "FOCUS", "CAF": "CA-Fed", "HAR": "Spatial correlation"}
"""The papers by the first part of their statements' ids."""

INTRODUCTION = """\
# What reproduced

`rollcall report` writes this page from the results in `results`; do not edit it by hand. [FINDINGS.md](FINDINGS.md) has
what the suite's own experiments show. A claim restates one sentence of a paper as a quantity with bounds. The verdict
judges the direction that the sentence states, by a 95 % interval over seeds:

- **holds**, **contradicted**: the interval is within the bounds, or outside them.
- **no difference that matters**: the interval is within a margin of the bound (a quarter of the printed difference).
- **undecided**: a part of the interval is within the bounds.
- **too short**: fewer rounds or seeds than decide it. This size was written before the runs.
- **not run**; **data missing**: we do not have the data set.

A sentence about several places holds if it holds at all places whose data we have, and is contradicted by one of them
(with k places at the level 1 - 0.05 / k). A statement of several claims is contradicted by one of them and holds if all
of them hold. Details, causes and tables are in the page of each experiment.
"""


ABOUT_STATEMENTS = """\
Each statement is in our words, with the section of the paper. Its verdict is the weakest of its claims, which follow
with links to their details. A statement that is no claim here has the reason in their place.
"""

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
    """An experiment with its cells and the results of its claims.

    Attributes:
        experiment: of a paper.
        runs: those of its variants included.
        cells: of the experiment.
        claims: of the experiment.
        others: of its variants.
    """

    experiment: Experiment
    runs: Sequence[Run]
    cells: Sequence[Cell]
    claims: Sequence[ClaimResult]
    others: Sequence[ClaimResult]


def judged(experiment: Experiment, *folders: Path, own: Sequence[Run] = (), kept: bool = True) -> Judged:
    """An experiment judged by its results.

    Args:
        experiment: of a paper.
        folders: archives of results; by default the one that comes with Rollcall.
        own: the user's runs, which count too.
        kept: whether kept results count.
    """
    runs = [*(unarchive(experiment.home, *folders) if kept else ()), *own]
    of_paper = cells(experiment, runs)
    claims = [check_claim(claim, experiment, of_paper) for claim in experiment.claims]
    others: list[ClaimResult] = []
    for name, variant in experiment.variants.items():
        changed = cells(experiment.as_(name), runs) if variant.claims else []
        others += [check_claim(claim, experiment, changed) for claim in variant.claims]
    return Judged(experiment, runs, of_paper, claims, others)


def reproduction(all_judged: Sequence[Judged]) -> dict[str, str]:
    """The text of every page by its path: `REPRODUCTION.md`, one for each paper, and one for each experiment."""
    results = [result for one in all_judged for result in (*one.claims, *one.others)]
    found = _by_statement(all_judged)
    front = [
        INTRODUCTION,
        *_messages(results),
        *_coverage(found),
        *_counts(results),
        f"![Printed and measured differences]({PICTURE})",
        "",
        "Experiments: " + ", ".join(f"[{one.experiment.name}]({_path(one.experiment)})" for one in all_judged) + ".",
        "",
    ]
    papers = {f"{FOLDER}/statements/{prefix}.md": _statements_page(prefix, found) for prefix in PAPERS}
    return {NAME: "\n".join(front)} | papers | {_path(one.experiment): _page(one) for one in all_judged}


def statements(prefix: str = "") -> list[Statement]:
    """The testable statements of the papers whose ids start with a prefix."""
    listed = [validated(Statement, content) for content in load_yaml(STATEMENTS)]
    return [one for one in listed if one.id.startswith(prefix)]


def agreement(experiment: Experiment, measured: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
    """Lines: how many printed numbers agree with the measured ones, and those that differ.

    Only cells with all rounds and at least three seeds are judged. A number agrees if it is within the interval,
    widened by the paper's standard deviation.
    """
    verdicts: Counter[str] = Counter()
    differing = []
    for cell in measured:
        for metric in dict.fromkeys(number.metric for number in numbers):
            number = printed_for(cell.labels, metric, numbers)
            if number is None or number.value is None or not cell.measured(metric):
                continue
            values = cell.finals(metric, experiment.report.last_rounds)
            if cell.rounds_run < cell.rounds or len(values) < FEWEST or cell.diverged:
                verdicts["not judged (fewer rounds or seeds than printed, or diverged)"] += 1
                continue
            quantity = estimate(values.to_numpy(), cell.exact)
            low, high = quantity.interval()
            agrees = low - (number.sd or 0.0) <= number.value <= high + (number.sd or 0.0)
            verdicts["agree" if agrees else "differ"] += 1
            if not agrees:
                printed = metric.text(number.value)
                differing.append(f"- {cell.where}, {metric.name}: {interval(quantity, metric)}, printed {printed}")
    if not verdicts:
        return []
    tally = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return [f"Printed numbers: {tally}.", "", *differing, *([""] if differing else [])]


def variants(experiment: Experiment, runs: Sequence[Run], paper: Sequence[Cell]) -> list[str]:
    """Lines: for each variant that was run, what it changes and its claims.

    Args:
        experiment: with variants.
        runs: of the experiment and its variants.
        paper: the cells of the experiment itself.
    """
    metric = experiment.report.metrics[0]
    lines = []
    for name, variant in experiment.variants.items():
        changed = cells(experiment.as_(name), runs)
        table = changes(name, metric, experiment.report.last_rounds, paper, changed)
        if not any(cell.runs for cell in paper):  # nothing to compare with but the printed numbers
            measured = [cell for cell in changed if cell.runs]
            table = paper_table(experiment.as_(name), measured, printed(experiment)) if measured else table
        if table.rows:
            lines += [f"`{name}`: {' '.join(variant.about.split())}", "", markdown(table)]
            lines += claims_list([check_claim(claim, experiment, changed) for claim in variant.claims], why=True)
            lines += [""] if variant.claims else []
    return lines


def messages(results: Sequence[ClaimResult]) -> list[tuple[Message, Verdict]]:
    """The core messages of the papers, each with the weakest verdict of its claims."""
    listed = [validated(Message, content) for content in load_yaml(MESSAGES)]
    return [(one, weakest(own.verdict for own in results if own.claim.statement in one.statements)) for one in listed]


def _messages(results: Sequence[ClaimResult]) -> list[str]:
    """The table of core messages."""
    lines = ["| paper | core message | reproduced | why |", "| --- | --- | --- | --- |"]
    for message, verdict in messages(results):
        answer = {"holds": "**yes**", "contradicted": "**no**"}.get(verdict, f"open ({verdict})")
        lines.append(f"| {PAPERS[message.paper]} | {message.message} | {answer} | {message.why} |")
    return [*lines, ""]


def _counts(results: Sequence[ClaimResult]) -> list[str]:
    """The table of the papers' claims by verdict; claims about released code and own checks are counted apart."""
    lines = [f"| claims | {' | '.join(VERDICTS)} |", f"| --- |{' ---: |' * len(VERDICTS)}"]
    kinds: dict[str, list[ClaimResult]] = {}
    for prefix, paper in PAPERS.items():
        kinds[paper] = [result for result in results if (result.claim.statement or "").startswith(prefix)]
    apart: dict[Tag, str] = {"released code": "about released code", "ours": "own checks"}
    kinds["all of the papers"] = [result for result in results if result.claim.tag == "paper"]
    kinds |= {title: [result for result in results if result.claim.tag == tag] for tag, title in apart.items()}
    for kind, members in kinds.items():
        found = counts(result.verdict for result in members)
        lines.append(f"| {kind} | {' | '.join(str(found.get(verdict, '')) for verdict in VERDICTS)} |")
    return [*lines, ""]


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
            found.setdefault(result.claim.statement or "", []).append((result.verdict, f"   - {link} {text}"))
    return found


def _coverage(found: Found) -> list[str]:
    """The table of statements by paper and by the weakest verdict of their claims."""
    lines = [f"| statements | testable | claimed | decided | {' | '.join(VERDICTS)} |"]
    lines.append(f"| --- |{' ---: |' * (3 + len(VERDICTS))}")
    titles = {prefix: f"[{paper}]({FOLDER}/statements/{prefix}.md)" for prefix, paper in PAPERS.items()}
    for prefix, title in {**titles, "": "all"}.items():
        listed = statements(prefix)
        verdicts = [weakest(verdict for verdict, _ in found[one.id]) for one in listed if one.id in found]
        decided = sum(verdict in DECIDED for verdict in verdicts)
        tally = " | ".join(str(verdicts.count(verdict) or "") for verdict in VERDICTS)
        lines.append(f"| {title} | {len(listed)} | {len(verdicts)} | {decided} | {tally} |")
    return [*lines, ""]


def _statements_page(prefix: str, found: Found) -> str:
    """The page of a paper: each statement with the verdicts of its claims, or the reason why it has none."""
    lines = [f"# {PAPERS[prefix]}: every testable statement", "", ABOUT_STATEMENTS]
    for one in statements(prefix):
        claims = found.get(one.id, [])
        verdict = f"**{weakest(verdict for verdict, _ in claims)}**" if claims else "no claim"
        lines.append(f'- <a id="{one.id}"></a>{one.id} ({one.section}) {one.statement}: {verdict}')
        lines += [line for _, line in claims] or [f"   - {one.done}"]
    return "\n".join([*lines, ""])


def _path(experiment: Experiment) -> str:
    return f"{FOLDER}/{experiment.name}.md"


def _page(one: Judged) -> str:
    """The page of one experiment: its claims, findings, table and figure, and the settings that need an explanation."""
    experiment = one.experiment
    lines = [
        f"# {experiment.name}",
        "",
        f"**{experiment.title}** ({experiment.source}). {_one_line(experiment.about)}",
        "",
        f"To run it: `rollcall run {experiment.name}`. To see its table: `rollcall leaderboard {experiment.name}`.",
        "",
    ]
    if one.claims:
        lines += ["Claims:", "", *map(_anchored, claims_list(one.claims, why=True)), ""]
    if experiment.findings:
        lines += ["Findings:", "", *(f"- {_one_line(finding)}" for finding in experiment.findings), ""]
    measured = [cell for cell in one.cells if cell.runs]
    if measured:
        numbers, up = printed(experiment), "../" * (experiment.name.count("/") + 1)
        lines += [markdown(paper_table(experiment, measured, numbers)), *agreement(experiment, measured, numbers)]
        lines += [f"![{experiment.title}]({up}figures/{experiment.name}.svg)", ""]
    lines += variants(experiment, one.runs, one.cells)
    if measured:
        lines += [origin([run for cell in measured for run in cell.runs.values()]), ""]
    lines += _items("Settings on which the paper is silent, and deviations from it", experiment.choices)
    lines += _items("Settings that depend on the method or the task", overrides(experiment))
    return "\n".join(lines)


def _anchored(line: str) -> str:
    """The line of a claim with an anchor of its number."""
    number, dot, text = line.partition(". ")
    return f'{number}. <a id="{number}"></a>{text}' if dot and number.isdigit() else line


def origin(runs: Sequence[Run]) -> str:
    """Where the results come from."""

    def values(tag: str) -> str:
        return ", ".join(sorted({run.tags.get(tag, "unknown") for run in runs}))

    seconds = sum(float(run.tags.get("rollcall.seconds", 0.0)) for run in runs)
    return (
        f"{counted(len(runs), 'run')}, {seconds / 3600:.2f} hours in total; commit {values('commit')}; "
        f"Rollcall {values('version')}; device {values('device')}; machine {values('machine')}; "
        f"threads {values('threads')}."
    )


def _items(title: str, entries: dict[str, str]) -> list[str]:
    items = [f"- `{name}`: {_one_line(text)}" for name, text in entries.items()]
    return [f"{title}:", "", *items, ""] if items else []


def overrides(experiment: Experiment) -> dict[str, str]:
    """The settings of each override by the labels that it is for."""
    texts = {}
    for override in experiment.overrides:
        where = ", ".join(" or ".join(labels) for labels in override.when.values())
        values = ", ".join(f"{path} {value}" for path, value in override.set.items())
        texts[where] = f"{values} ({override.found})" if override.found else values
    return texts


def _one_line(text: str) -> str:
    return " ".join(text.split())


def changes(name: str, metric: Metric, last_rounds: int, paper: Sequence[Cell], variant: Sequence[Cell]) -> Table:
    """A row for each cell of a variant with runs of its own, over the seeds that both have."""
    by_labels = {tuple(cell.labels.items()): cell for cell in variant}
    rows: list[list[Entry]] = []
    for before in paper:
        after = by_labels.get(tuple(before.labels.items()))
        if after is None:
            continue
        before, after = after_equal_rounds(before, after)
        a, b = before.finals(metric, last_rounds), after.finals(metric, last_rounds)
        seeds = a.index.intersection(b.index)
        trials = [{cell.runs[seed].tags["rollcall.trial"] for seed in seeds} for cell in (before, after)]
        if trials[0] == trials[1]:
            continue
        means = [metric.text(float(values[seeds].mean())) for values in (a, b)]
        difference = change(estimate((b[seeds] - a[seeds]).to_numpy()), metric)
        rows.append([before.where, *means, difference, len(seeds), f"{after.rounds_run:,}"])
    columns = [Column("cell", words=True)]
    columns += [Column(title) for title in ("paper", name, "change", "seeds", "rounds")]
    return Table(columns, rows, f"{metric.name}; change: {name} minus paper, with its 95 % interval")
