"""`rollcall compare`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.experiment import LIBRARY, names
from rollcall.benchmark.config.text import strict_json
from rollcall.cli.options import METRIC, STORE, Json, Mine, Store, out
from rollcall.cli.plan import RECORD, file_of_runs
from rollcall.leaderboard.paper.experiment import PaperExperiment

if TYPE_CHECKING:
    from rollcall.benchmark.config.metric import Metric
    from rollcall.leaderboard.cells import Cell
    from rollcall.leaderboard.runs import Run

PAPER = "paper"
"""The name of an experiment as its file states it, beside those of its variants."""


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A method, or a variant; `paper`: the file without one.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is compared with: the difference is A minus B.")],
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="A name or a YAML file. Default: all that have both.")
    ] = "",
    metric: Annotated[str, typer.Option(metavar=METRIC, help="Default: the first metric of each experiment.")] = "",
    mine: Mine = False,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Compare two methods, or two variants, cell by cell.

    A row has both means, their difference with its 95 % interval, and the number of seeds in which A is better. Two
    cells are compared if their other settings are equal, after equal rounds.
    """
    from rollcall.leaderboard import render
    from rollcall.leaderboard.ranking import metric_of
    from rollcall.leaderboard.runs import finished
    from rollcall.leaderboard.tables import Comparison, comparison_tables, how, pairs

    a, b = a.rpartition(":")[2], b.rpartition(":")[2]
    found: dict[str, list[Comparison]] = {}
    seen: list[tuple[set[str], set[str]]] = []
    labels: set[str] = set()
    for one in [PaperExperiment.read(experiment)] if experiment else _candidates(store, a, b):
        last_rounds, shown = one.report.last_rounds, one.report.metrics
        chosen = metric_of("metric", metric, shown) if metric else shown[0]
        by_name = _cells(one, a, b, finished(one.home, store, mine), chosen)
        ran = [cell for own in by_name.values() for cell in own if cell.runs]
        labels |= {PAPER, *one.variants, *(label for cell in ran for label in cell.labels.values())}
        for name, own in by_name.items():
            every = [Comparison(*pair, chosen, last_rounds) for pair in pairs(own, a, b)]
            new = [pair for pair in every if sum(pair.wins) and (pair.cell.trials, pair.other.trials) not in seen]
            seen += [(pair.cell.trials, pair.other.trials) for pair in new]
            found |= {name: new} if new else {}
    if not found:
        missing = next((name for name in (a, b) if name not in labels), "")
        where = experiment or f"the kept results or in {store}"
        allowed = (
            f"must be one of {listed(sorted(labels - {''}), missing)}" if labels and missing else "see rollcall list"
        )
        raise SettingError(
            f"compare: there are no equal settings with runs of both {a!r} and {b!r} in {where}; {allowed}"
        )
    among = sum(map(len, found.values()))
    found = {name: [replace(one, among=among) for one in every] for name, every in found.items()}
    tables, data = comparison_tables(found, a, b)
    if as_json:
        print(strict_json({"a": a, "b": b, **data}))
        return
    for title, table in tables.items():
        out.print(render.terminal(table, title, out.width))
    wins = f"wins: seeds in which {a} is better; a diverged run is worse than all others"
    out.print(f"{data['overall']['says']}\n")
    out.print(f"{how(b, [one for every in found.values() for one in every])}; {wins}", style="dim italic")


def _cells(experiment: PaperExperiment, a: str, b: str, runs: "list[Run]", metric: "Metric") -> "dict[str, list[Cell]]":
    """The cells to pair, by the name of the experiment; of two variants those of both, with a label on this axis."""
    from rollcall.leaderboard.cells import cells
    from rollcall.leaderboard.ranking import axes, rank
    from rollcall.leaderboard.tables import by_condition, versions

    variants = {PAPER: experiment} | {name: experiment.as_(name) for name in experiment.variants}
    if not experiment.source and not {a, b} & {*variants}:
        complete = [run for run in runs if run.diverged or run.has(metric)]
        ranking = rank(complete, [metric], experiment.report.last_rounds, axes(experiment)) if complete else None
        return {experiment.name: by_condition(ranking) if ranking else []}
    if a in variants and b in variants:
        return {experiment.name: versions({name: cells(variants[name], runs) for name in (a, b)})}
    suffix = {name: "" if name == PAPER else f" ({name})" for name in variants}
    return {f"{experiment.name}{suffix[name]}": cells(variants[name], runs) for name in variants}


def _candidates(store: Path, a: str, b: str) -> Iterator[PaperExperiment]:
    """The experiments whose grid has both, and those with own runs."""
    records = [*store.glob(f"*/{RECORD}"), *store.glob(f"*/*/{RECORD}")]
    files = [file for record in records if Path(file := file_of_runs(record.parent)).is_file()]
    for name in dict.fromkeys([*names(), *(file for file in files if LIBRARY not in Path(file).parents)]):
        experiment = PaperExperiment.read(name)
        grids = [experiment.axes, *(variant.grid for variant in experiment.variants.values())]
        known = {PAPER, *experiment.variants, *(label for grid in grids for axis in grid.values() for label in axis)}
        if {a, b} <= known or (store / experiment.home).is_dir():
            yield experiment
