"""`rollcall sync`."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from rollcall.benchmark.cli.selection import claimed
from rollcall.benchmark.cli.shared import STORE, Store, need_mlflow, out
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.sweep.mlflow_runs import sync as copy
from rollcall.leaderboard.cli.leaderboard import write_tables


def sync(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments to copy. Default: all in the store.", metavar="EXPERIMENT")
    ] = None,
    store: Store = STORE,
) -> None:
    """Copy run folders into MLflow that are not there yet, such as those of other machines."""
    need_mlflow()

    def tables(home: str, folder: Path) -> None:
        with suppress(SettingError):  # the file of the experiment may be gone or changed
            write_tables(Experiment.read(claimed(store / home) or home), store, folder)

    for name, count in copy(store, experiments or [], tables).items():
        out.print(f"{name}: {counted(count, 'run folder')}", highlight=False)
