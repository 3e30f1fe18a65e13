"""`rollcall archive`."""

from pathlib import Path
from typing import Annotated

import typer

from rollcall.benchmark.cli.shared import STORE, Store, out
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard import results
from rollcall.leaderboard.cli.shared import FOLDER, RESULTS, papers
from rollcall.leaderboard.own import own


def archive(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all experiments of papers.", metavar="EXPERIMENT")
    ] = None,
    to: Annotated[Path, typer.Option(metavar="DIR", help="Keep the results in DIR/results.")] = FOLDER,
    store: Store = STORE,
) -> None:
    """Keep finished runs of papers' experiments as small files.

    They are added to ./leaderboard/results, where `rollcall leaderboard` and `rollcall report` find them.
    """
    chosen = papers(experiments)
    kept = 0
    for home in dict.fromkeys(experiment.home for experiment in chosen):
        # Experiments that share their runs may read different metrics of them.
        sharing = [experiment for experiment in (*chosen, *papers()) if experiment.home == home]
        metrics = list(dict.fromkeys(metric for experiment in sharing for metric in experiment.metrics))
        runs = own(store, home, metrics)
        if runs:
            file = results.archive(runs, home, metrics, to / RESULTS)
            out.print(f"{home}: {counted(len(runs), 'run')} in {file}", highlight=False, soft_wrap=True)
            kept += len(runs)
    if not kept:
        out.print(f"No finished runs of these experiments in {store}.", highlight=False, soft_wrap=True)
