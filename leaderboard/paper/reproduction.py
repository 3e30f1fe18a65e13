"""REPRODUCTION.md: claim by claim, what reproduced. It is written from the kept results alone."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.config.counted import counted
from benchmark.config.experiment import Experiment
from leaderboard.paper.cells import Cell, cells
from leaderboard.paper.claims import ClaimResult, check_claim
from leaderboard.paper.comparison import agreement, orders, variants
from leaderboard.paper.reported import printed
from leaderboard.paper.sentences import claims_list, tally_of
from leaderboard.paper.table import paper_table
from leaderboard.render import markdown
from leaderboard.results import PACKAGE, unarchive
from leaderboard.run import Run

NAME = "REPRODUCTION.md"

INTRODUCTION = """\
# What reproduced

This file lists, claim by claim, what reproduced. `rollcall report` writes it from the results in `results`; do not
edit it by hand.

Each claim of a paper is written as a quantity with bounds, for example "the difference in accuracy is at least 0". We
measure the quantity with several seeds and compute a 95 % interval:

- **holds**: the whole interval is within the bounds.
- **fails**: the whole interval is outside the bounds.
- **undecided**: a part of the interval is within the bounds, or there is only one seed and so no interval.
- **not run**: there are no results yet.
- **reduced**: there are fewer rounds or fewer seeds than in the paper. Such results say little about how the paper's
  curves end.

A claim about several places (datasets, methods, settings) holds if it holds at all places that were run. It fails if it
fails at one of them. The more places there are, the more likely one fails by chance. So with k places, a place counts
against the claim if its interval of the level 1 - 0.05 / k is outside the bounds (Bonferroni). The intervals below are
of 95 %. Runs are compared after equal numbers of rounds. A printed number **agrees** if it is within the interval,
widened by the standard deviation that the paper prints.

Intervals are Student's t intervals over seeds. Differences and ratios are taken seed by seed. For ratios and for
quantities on a logarithmic axis, the interval is computed from the logarithms. **Seeds that would decide it** is the
number of seeds whose interval leaves out the claim's bounds with a probability of 80 %, if mean and standard deviation
are as measured so far. In some experiments seeds were added until a claim was decided, as their `seed` entry says: this
makes an error more likely than 5 %.
"""


def reproduction(experiments: Sequence[Experiment], *folders: Path) -> str:
    """The text of REPRODUCTION.md.

    Args:
        experiments: of papers, in order.
        folders: archives of results; by default the one that comes with Rollcall.
    """
    sections, summary = [], []
    for experiment in experiments:
        runs = unarchive(experiment.home, *(folders or (PACKAGE,)))
        all_cells = cells(experiment, runs)
        claims = [check_claim(claim, experiment.report, all_cells) for claim in experiment.claims]
        summary.append(_summary(experiment, all_cells, claims))
        sections.append(_section(experiment, runs, all_cells, claims))
    head = ["| experiment | table or figure | results | claims |", "| --- | --- | --- | --- |"]
    return "\n".join([INTRODUCTION, *head, *summary, "", *sections])


def _summary(experiment: Experiment, all_cells: Sequence[Cell], claims: Sequence[ClaimResult]) -> str:
    """A row of the first table."""
    run = [cell for cell in all_cells if cell.runs]
    state = f"{len(run)} of {len(all_cells)} cells" if run else "not run"
    if any(cell.reduced for cell in run):
        state += ", reduced"
    anchor = experiment.name.replace("/", "")
    verdicts = tally_of(claim.verdict for claim in claims)
    return f"| [{experiment.name}](#{anchor}) | {experiment.source} | {state} | {verdicts} |"


def _section(
    experiment: Experiment, runs: Sequence[Run], all_cells: Sequence[Cell], claims: Sequence[ClaimResult]
) -> str:
    """What is known of one experiment."""
    lines = [
        f"## {experiment.name}",
        "",
        f"**{experiment.title}** ({experiment.source}). {_one_line(experiment.about)}",
        "",
        f"To run it: `rollcall run {experiment.name}`. To see its table: `rollcall leaderboard {experiment.name}`.",
        "",
    ]
    if claims:
        lines += ["Claims:", "", *claims_list(claims), ""]
    if experiment.findings:
        lines += ["Findings:", "", *(f"- {_one_line(finding)}" for finding in experiment.findings), ""]
    if any(cell.runs for cell in all_cells):
        lines += _results(experiment, runs, all_cells)
    lines += _items("Settings on which the paper is silent", experiment.choices)
    lines += _items("Settings that depend on the method or the task", _overrides(experiment))
    return "\n".join(lines)


def _results(experiment: Experiment, runs: Sequence[Run], all_cells: Sequence[Cell]) -> list[str]:
    """The table, the figure, and what they are compared with."""
    measured = [cell for cell in all_cells if cell.runs]
    numbers = printed(experiment)
    return [
        markdown(paper_table(experiment, measured, numbers)),
        *agreement(experiment, measured, numbers),
        f"![{experiment.title}](figures/{experiment.name}.png)",
        "",
        *variants(experiment, runs, all_cells),
        *orders(experiment, measured, numbers),
        _origin(runs),
        "",
    ]


def _origin(runs: Sequence[Run]) -> str:
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
    items = [f"- `{name}`: {text}" for name, text in entries.items()]
    return [f"{title}:", "", *items, ""] if items else []


def _overrides(experiment: Experiment) -> dict[str, str]:
    """The settings of each override by the labels that it is for."""
    texts = {}
    for override in experiment.overrides:
        where = ", ".join(" or ".join(labels) for labels in override.when.values())
        values = ", ".join(f"{path} {value}" for path, value in override.set.items())
        texts[where] = f"{values} ({override.found})" if override.found else values
    return texts


def _one_line(text: str) -> str:
    return " ".join(text.split())
