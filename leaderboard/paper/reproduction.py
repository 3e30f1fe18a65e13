"""REPRODUCTION.md: what of the papers was run with the suite, and what came of it. Written from kept results alone."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmark.config.experiment import Experiment
from leaderboard.paper.cells import Cell, Estimate, cells, estimate
from leaderboard.paper.claims import Finding, Ruling, rule
from leaderboard.paper.reported import Printed, printed
from leaderboard.paper.table import Sheet, is_share, markdown, paper_table, printed_beside, shown
from leaderboard.results import ARCHIVE, Run, unarchive

FILE = Path(__file__).parents[1] / "REPRODUCTION.md"
FIGURES = Path(__file__).parents[1] / "figures"

INTRODUCTION = """\
# What the papers print, and what we measured

Written by `rollcall report` from the results in `leaderboard/results`; do not edit it by hand.

A claim **holds** where the 95 % interval over seeds of the quantity that decides it lies within its bounds, **fails**
where it lies outside, and is **undecided** where it does neither, as with one seed, which gives no interval. The
interval is Student's, over differences seed by seed; of ratios, and of what is plotted on a logarithmic axis, it is
that of the logarithms. A claim that is about several places holds where it does at all of them that were run. A printed
number **agrees** where it lies within the interval, widened by the paper's own standard deviation. *Reduced* marks
results from fewer rounds or seeds than the paper's: they say little about where the paper's curves end.
"""


def reproduction(experiments: Sequence[Experiment], archive: Path = ARCHIVE) -> str:
    """The text of REPRODUCTION.md.

    Args:
        experiments: the papers', in order.
        archive: folder of the kept results.
    """
    parts, summary = [], []
    for experiment in experiments:
        runs = unarchive(experiment.home, archive)
        sorted_in = cells(experiment, runs)
        rulings = [rule(claim, experiment.report, sorted_in) for claim in experiment.claims]
        summary.append(_summary(experiment, sorted_in, rulings))
        parts.append(_section(experiment, runs, sorted_in, rulings))
    head = ["| experiment | of the paper | run | claims |", "| --- | --- | --- | --- |", *summary]
    return "\n".join([INTRODUCTION, *head, "", *parts])


def ruled(ruling: Ruling, metric: str) -> str:
    """A claim with its verdict and the quantities behind it, as an item of a list."""
    claim = ruling.claim
    mark = f"**{ruling.verdict}**" + (" (reduced)" if ruling.reduced else "")
    run = [finding for finding in ruling.findings if finding.quantity is not None]
    count = Counter(finding.verdict for finding in run)
    tally = ", ".join(f"{verdict} at {number}" for verdict, number in count.items()) if len(run) > 1 else ""
    if len(run) < len(ruling.findings) and run:
        tally += f"{'; ' if tally else ''}{len(ruling.findings) - len(run)} of {len(ruling.findings)} places not run"
    lines = [f"- {mark}{f' ({tally})' if tally else ''}: {claim.says}"]
    plain = "" if claim.over else claim.metric or metric
    bounds = " and ".join(
        f"{word} {shown(plain, value)}"
        for word, value in (("at least", claim.least), ("at most", claim.most))
        if value is not None
    )
    worst = sorted(run, key=lambda finding: ("fails", "undecided", "holds").index(finding.verdict))
    if worst:
        of = f"{claim.metric or metric}{' %' if is_share(plain) else ''}{_kind(claim)}"
        lines.append(
            f"  {of}, {bounds}: "
            + "; ".join(_told(finding, plain) for finding in worst[:6])
            + ("; ..." if len(worst) > 6 else "")
        )
    if claim.printed is not None:
        lines.append(f"  printed: {shown(plain, claim.printed)}")
    if claim.cause:
        lines.append(f"  {claim.cause}")
    return "\n".join(lines)


def _kind(claim: object) -> str:
    for name, word in (("minus", ", difference"), ("over", ", ratio"), ("along", ", step")):
        if getattr(claim, name) is not None:
            return word
    return ""


def _told(finding: Finding, metric: str) -> str:
    assert finding.quantity is not None
    where = ", ".join(finding.labels.values())
    return f"{where + ': ' if where else ''}{interval(finding.quantity, metric)}"


def interval(quantity: Estimate, metric: str = "") -> str:
    """A mean and its interval, as values of a metric are shown."""
    width = (quantity.high - quantity.low) / 2
    mean, low, high = (shown(metric, value, width) for value in (quantity.mean, quantity.low, quantity.high))
    if quantity.seeds == 1 and math.isinf(quantity.high):
        return f"{mean} (one seed)"
    return mean if quantity.low == quantity.high else f"{mean} [{low}, {high}]"


def _summary(experiment: Experiment, found: Sequence[Cell], rulings: Sequence[Ruling]) -> str:
    run = sum(bool(cell.runs) for cell in found)
    state = (
        "not run"
        if not run
        else f"{run} of {len(found)} cells" + (", reduced" if any(cell.reduced for cell in found if cell.runs) else "")
    )
    count = Counter(ruling.verdict for ruling in rulings)
    verdicts = ", ".join(
        f"{number} {'hold' if verdict == 'holds' and number > 1 else verdict}" for verdict, number in count.items()
    )
    anchor = experiment.name.replace("/", "")
    return f"| [{experiment.name}](#{anchor}) | {experiment.source} | {state} | {verdicts} |"


def _section(experiment: Experiment, runs: Sequence[Run], found: Sequence[Cell], rulings: Sequence[Ruling]) -> str:
    metric = next(iter(experiment.report.metrics))
    lines = [
        f"## {experiment.name}",
        "",
        f"**{experiment.title}** ({experiment.source}). {' '.join(experiment.about.split())}",
        "",
    ]
    lines += [f"`rollcall run {experiment.name}`, then `rollcall leaderboard {experiment.name}`.", ""]
    if rulings:
        lines += ["Claims:", "", *(ruled(ruling, metric) for ruling in rulings), ""]
    if experiment.findings:
        lines += ["Findings:", "", *(f"- {' '.join(finding.split())}" for finding in experiment.findings), ""]
    there = [cell for cell in found if cell.runs]
    if there:
        numbers = printed(experiment)
        lines += [markdown(paper_table(experiment, there, numbers))]
        lines += _agreement(experiment, there, numbers)
        lines += [f"![{experiment.title}](figures/{experiment.name}.png)", ""]
        lines += _variants(experiment, runs, found)
        lines += _orders(experiment, there, numbers)
        lines += [_origin(runs), ""]
    for what, things in (
        ("Choices, where the paper is silent", experiment.choices),
        ("Rates and the like, by method", _overrides(experiment)),
    ):
        if things:
            lines += [f"{what}:", "", *(f"- `{name}`: {reason}" for name, reason in things.items()), ""]
    return "\n".join(lines)


def _variants(experiment: Experiment, runs: Sequence[Run], found: Sequence[Cell]) -> list[str]:
    """What each variant changes, over the seeds that both were run with."""
    lines = []
    metric, last_rounds = next(iter(experiment.report.metrics)), experiment.report.last_rounds
    for name, variant in experiment.variants.items():
        rows = []
        others = cells(experiment.as_(name), runs)
        by_labels = {tuple(cell.labels.items()): cell for cell in others}
        for here in found:
            there = by_labels.get(tuple(here.labels.items()))
            if there is None or not there.runs:
                continue
            a, b = here.ends(metric, last_rounds), there.ends(metric, last_rounds)
            both = a.index.intersection(b.index)
            changed = any(here.runs[seed] is not there.runs[seed] for seed in both)
            if changed:
                where = ", ".join(label for label in here.labels.values() if label)
                means = [shown(metric, float(values[both].mean())) for values in (a, b)]
                rows.append(
                    [
                        where,
                        *means,
                        _signed(metric, estimate(b[both] - a[both])),
                        str(len(both)),
                        f"{there.rounds_run:,}",
                    ]
                )
        if rows:
            header = ["cell", "paper", name, "change", "seeds", "rounds"]
            caption = f"{metric}; change: {name} less paper, with its 95 % interval"
            lines += [f"`{name}`: {' '.join(variant.about.split())}", "", markdown(Sheet(header, rows, 1, caption))]
            lines += [ruled(rule(claim, experiment.report, others), metric) for claim in variant.claims]
            lines += [""] if variant.claims else []
    return lines


def _orders(experiment: Experiment, found: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
    """The methods from best to worst at each place, as measured and as printed, where the paper prints numbers."""
    metric, end = next(iter(experiment.report.metrics.items()))
    places: dict[str, list[Cell]] = {}
    for cell in found:
        where = ", ".join(label for axis, label in cell.labels.items() if axis != "algorithm" and label)
        if printed_beside(cell, metric, numbers) is not None and len(cell.ends(metric, 1)):
            places.setdefault(where, []).append(cell)
    lines = []
    for where, mine in places.items():
        measured = {cell.labels["algorithm"]: cell.ends(metric, experiment.report.last_rounds).mean() for cell in mine}
        beside = {cell.labels["algorithm"]: printed_beside(cell, metric, numbers) for cell in mine}
        paper = {method: number.value for method, number in beside.items() if number is not None}
        ranks = [" > ".join(sorted(by, key=by.__getitem__, reverse=end == "max")) for by in (measured, paper)]
        lines += [f"- {where}: {ranks[0]}; printed: {ranks[1]}"]
    return [f"From best to worst by {metric}:", "", *lines, ""] if lines else []


def _signed(metric: str, change: Estimate) -> str:
    def text(value: float) -> str:
        return f"{'+' if value >= 0 else '-'}{shown(metric, abs(value), (change.high - change.low) / 2)}"

    if math.isinf(change.high):
        return text(change.mean)
    return f"{text(change.mean)} [{text(change.low)}, {text(change.high)}]"


def _agreement(experiment: Experiment, found: Sequence[Cell], numbers: Sequence[Printed]) -> list[str]:
    """A verdict on each printed number beside which something was measured."""
    rows = []
    for cell in found:
        for metric in dict.fromkeys(number.metric for number in numbers):
            number = printed_beside(cell, metric, numbers)
            values = cell.ends(metric, experiment.report.last_rounds)
            if number is None or not len(values):
                continue
            quantity = estimate(values)
            slack = number.sd or 0.0
            if cell.reduced:
                verdict = "undecided (reduced)"
            elif math.isinf(quantity.high):
                verdict = "undecided (one seed)"
            else:
                verdict = "agrees" if quantity.low - slack <= number.value <= quantity.high + slack else "differs"
            rows.append(
                (verdict, ", ".join(label for label in cell.labels.values() if label), metric, number, quantity)
            )
    if not rows:
        return []
    count = ", ".join(
        f"{number} {verdict if number == 1 else verdict.replace('agrees', 'agree').replace('differs', 'differ')}"
        for verdict, number in Counter(row[0] for row in rows).items()
    )
    differing = [
        f"- {where}, {metric}: {interval(quantity, metric)}, printed {shown(metric, number.value)}"
        for verdict, where, metric, number, quantity in rows
        if verdict == "differs"
    ]
    return [f"Printed numbers: {count}.", "", *differing, *([""] if differing else [])]


def _origin(runs: Sequence[Run]) -> str:
    """Where results come from."""

    def all_of(tag: str) -> str:
        return ", ".join(sorted({run.tags.get(tag, "unknown") for run in runs}))

    seconds = sum(float(run.tags.get("rollcall.seconds", 0.0)) for run in runs)
    return (
        f"{len(runs)} runs, {seconds / 3600:.2f} hours in all; commit {all_of('commit')}; "
        f"Rollcall {all_of('version')}; device {all_of('device')}; machine {all_of('machine')}; "
        f"threads {all_of('threads')}."
    )


def _overrides(experiment: Experiment) -> dict[str, str]:
    found = {}
    for one in experiment.overrides:
        where = ", ".join(" or ".join(labels) for labels in one.when.values())
        values = ", ".join(f"{path} {value}" for path, value in one.set.items())
        found[where] = f"{values}{f' ({one.found})' if one.found else ''}"
    return found
