"""Comparisons of a paper's cells: with the printed numbers, and between variants."""

from collections import Counter
from collections.abc import Sequence

from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.paper.cells import Cell, after_equal_rounds, cells
from rollcall.leaderboard.paper.claims import check_claim
from rollcall.leaderboard.paper.quantities import FEWEST, estimate
from rollcall.leaderboard.paper.reported import Printed, printed_for
from rollcall.leaderboard.paper.sentences import change, claims_list, interval
from rollcall.leaderboard.render import Column, Entry, Table, markdown
from rollcall.leaderboard.runs import Run


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
        table = _changes(name, metric, experiment.report.last_rounds, paper, changed)
        if table.rows:
            lines += [f"`{name}`: {' '.join(variant.about.split())}", "", markdown(table)]
            lines += claims_list([check_claim(claim, experiment, changed) for claim in variant.claims], why=True)
            lines += [""] if variant.claims else []
    return lines


def _changes(name: str, metric: Metric, last_rounds: int, paper: Sequence[Cell], variant: Sequence[Cell]) -> Table:
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
    columns = [Column("cell", "cell", words=True)]
    columns += [Column(title, title) for title in ("paper", name, "change", "seeds", "rounds")]
    return Table(columns, rows, f"{metric.name}; change: {name} minus paper, with its 95 % interval")
