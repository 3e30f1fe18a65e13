"""`rollcall clean`."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid

from rollcall.benchmark.cli.selection import plans_of
from rollcall.benchmark.cli.shared import STORE, Methods, Name, Only, Rounds, Seeds, Set, Store, Tuned, out
from rollcall.benchmark.config.experiment import Experiment, names, places
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.federation.run_folder import RunFolder, run_folders


def clean(
    experiment: Name,
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    tuned: Tuned = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run/--yes", help="List the run folders, or delete them. Default: list.")
    ] = True,
    store: Store = STORE,
) -> None:
    """Delete the run folders of failed trials, and of trials that are not in the experiment file.

    Trials of the file and of its variants stay, and so do those that `rollcall run` would run with the same --seeds,
    --only, --set, --algorithm and --tuned. Trials that are running stay.
    """
    plan = plans_of(experiment, "", seeds, only, settings, rounds, methods, tuned)[0]
    home = plan.experiment.home
    stale = stale_folders(store / home, digests(home, Experiment.read(experiment)) | digests_of(plan.experiment))
    if not stale:
        out.print(f"Nothing to delete in {store / home}.", highlight=False, soft_wrap=True)
        return
    table = Grid("run folder", "why", box=None, padding=(0, 2, 0, 0))
    for folder, reason in stale.items():
        table.add_row(folder.name, reason)
    out.print(table)
    if dry_run:
        out.print(f"{counted(len(stale), 'run folder')} in {store / home}. To delete: add --yes", soft_wrap=True)
        return
    for folder in stale:
        shutil.rmtree(folder)
    out.print(f"{counted(len(stale), 'run folder')} deleted in {store / home}.", highlight=False, soft_wrap=True)


def digests(home: str, experiment: Experiment) -> set[str]:
    """The trials of all experiments that have their runs in this folder."""
    sharing = [other for name in names() if (other := Experiment.read(name)).home == home]
    return {digest for one in (experiment, *sharing) for digest in digests_of(one)}


def digests_of(experiment: Experiment) -> set[str]:
    """The trials of an experiment and of its variants."""
    versions = (experiment, *map(experiment.as_, experiment.variants))
    return {place.digest for version in versions for place in places(version)}


def stale_folders(home: Path, known: set[str]) -> dict[Path, str]:
    """The run folders to delete, and why. A folder that cannot be read is left for `rollcall doctor`.

    Args:
        home: the folder of the experiment.
        known: digests of the trials that stay.
    """
    stale = {}
    for folder in run_folders(home, below=False):
        run = RunFolder(folder)
        try:
            status = run.status
            state, digest = status["state"], status["digest"]
        except (ValueError, KeyError):
            continue
        if run.in_use:
            continue
        if digest not in known:
            stale[folder] = "not in the experiment file"
        elif state == "failed":
            stale[folder] = "failed"
    return stale
