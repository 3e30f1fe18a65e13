"""`rollcall show`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from benchmark.cli.card import card
from benchmark.cli.described import described
from benchmark.cli.options import STORE, Json, Methods, Names, Only, Rounds, Seeds, Set, Store, Variant, out
from benchmark.cli.plots import draw
from benchmark.cli.selection import how_long, plans_of
from benchmark.cli.strict_json import strict_json
from benchmark.config.errors import SettingError, at
from benchmark.config.text import counted


def show(
    experiment: Names,
    variant: Variant = "",
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    partition: Annotated[bool, typer.Option("--partition", help="Show what the first trial's clients hold.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw this partition into a file.", metavar="FILE")] = None,
    estimate: Annotated[bool, typer.Option(help="Probe for a few seconds how long all trials take.")] = True,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Show an experiment's settings, grid and claims, and how many of its trials are finished."""
    from leaderboard.paper.cells import kept_runs

    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods)
    if partition or plot is not None:
        _show_partition(plans[0].places[0].trial, plot, as_json)
        return
    if as_json:
        print(strict_json([described(job) for plan in plans for job in plan.jobs(store)]))
        return
    for plan in plans:
        # The card comes first: to count trials, torch and Lightning are imported, which takes seconds.
        out.print(card(plan.experiment), "", highlight=False)
        jobs = plan.jobs(store)
        finished = sum(job.finished for job in jobs)
        total = sum(job.trial.rounds for job in jobs)
        where = store / plan.experiment.home
        complete, shorter = kept_runs(plan.experiment)
        kept = f"; {complete} in the kept results" if complete or shorter else ""
        kept += f", {shorter} with fewer rounds" if shorter else ""
        out.print(
            f"{counted(len(jobs), 'trial')}, {counted(total, 'round')} in all; {finished} finished in {where}{kept}",
            highlight=False,
            soft_wrap=True,
        )
        if estimate:
            out.print(how_long(plan.places), "", highlight=False, soft_wrap=True)


def _show_partition(trial: Any, plot: Path | None, as_json: bool) -> None:
    """Print a summary of what the clients of a trial hold, and draw it if a file is given."""
    from tasks.partitions import summarise

    with at("task"):
        _, data = trial.task.build(trial.seed)
    if data.histogram is None:
        raise SettingError(f"partition: {trial.task.name!r} is not allowed; must be a task with classes")
    summary = summarise(data.histogram)
    if as_json:
        print(strict_json(asdict(summary)))
    else:
        title = f"{trial.task.name}, seed {trial.seed}: {counted(summary.clients, 'client')}, {summary.classes} classes"
        grid = Grid("of each client", "least", "median", "largest", title=title, title_justify="left")
        grid.add_row("samples", *(f"{value:,.0f}" for value in summary.samples))
        grid.add_row("classes", *(f"{value:g}" for value in summary.held))
        grid.add_row("largest share of a class", *(f"{value:.1%}" for value in summary.largest))
        out.print(grid)
    if plot is not None:
        draw("partition", plot, data.histogram)
