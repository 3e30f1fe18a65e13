"""The commands about the run folders in a store: `rollcall status`, `doctor`, `clean`, `sync` and `export`."""

import json
from collections import Counter
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.text import command, counted, strict_json
from rollcall.benchmark.federation.damage import examine, set_aside
from rollcall.benchmark.federation.run_folder import InUse, RunFolder, remove, replacing, run_folders
from rollcall.benchmark.sweep.progress import need_store, read
from rollcall.benchmark.sweep.run import file_of_runs
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, out, say, there
from rollcall.leaderboard.paper.experiment import PaperExperiment

UNLISTED = "not in the experiment file"
"""Why `clean` lists a trial that may be a result."""


def status(
    experiment: Annotated[str, typer.Argument(help="Default: all in the store.", metavar="EXPERIMENT")] = "",
    store: opt.Store = STORE,
    as_json: opt.Json = False,
) -> None:
    """Count the store's trials by state: finished, running, failed, and so on.

    It reads the run folders only, so it can be called from another terminal while trials run.
    """
    import pandas as pd

    name = experiment
    rows = [] if name.endswith((".yaml", ".yml")) else read(store, name)
    if name and not rows:  # a file, an experiment whose runs are another one's, or a misspelt name, which is refused
        name = PaperExperiment.read(experiment).home
        rows = read(store, name)
    if as_json:
        print(strict_json(rows))
    elif not rows:
        print(f"No run folders in {store / name}.")
    else:
        table = pd.DataFrame(rows)
        print(pd.crosstab(table["experiment"], table["state"]).to_string())
        if (table["state"] == "running").any():
            columns = ["name", "round", "rounds", "rate", "seconds_left"]
            print("", table.loc[table["state"] == "running", columns].round(1).to_string(index=False), sep="\n")


def doctor(
    store: Annotated[Path, typer.Argument(envvar="ROLLCALL_STORE", help="The store, or one run folder.")] = STORE,
    fix: Annotated[bool, typer.Option("--fix", help="Rename damaged files and folders to NAME.damaged.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Find damaged run folders; --fix sets them aside.

    The exit code is 1 if damaged files are left. Nothing is deleted. Trials that run now are left alone.
    """
    there(store)
    folders = run_folders(store)
    damaged = {folder: found for folder in folders if (found := examine(folder))}
    findings = [finding for found in damaged.values() for finding in found]
    lines = [f"{finding.path}: {finding.problem}; {finding.advice}" for finding in findings]
    lines += [f"set aside: {path}" for folder in (damaged if fix else ()) for path in set_aside(folder)]
    lines.append(f"{counted(len(folders), 'run folder')}, {len(findings)} damaged")
    if findings and not fix:
        lines.append(f"To set them aside: {command('doctor', store, '--fix')}")
    report = [finding._asdict() | {"path": str(finding.path)} for finding in findings]
    print(json.dumps(report, indent=1) if as_json else "\n".join(lines))
    raise typer.Exit(1 if findings and not fix else 0)


def clean(
    experiment: opt.Name,
    delete: Annotated[bool, typer.Option("--yes", help="Delete the run folders. Default: list them.")] = False,
    unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Also delete trials that are not in the experiment file.")
    ] = False,
    store: opt.Store = STORE,
) -> None:
    """List or delete run folders of failed or unlisted trials.

    Trials that were run with --tuned, --set, --seeds or --algorithm are not in the file; those of its variants are.
    Trials that are running stay.
    """
    named = PaperExperiment.read(experiment)
    there(store)
    home = store / named.home
    sharing = [other for name in names() if (other := PaperExperiment.read(name)).home == named.home]
    versions = [version for one in (named, *sharing) for version in (one, *map(one.as_, one.variants))]
    known = {point.digest for version in versions for point in grid_points(version)}
    runs = [run for run in map(RunFolder, run_folders(home, below=False)) if not run.in_use]
    stale = {run.path: reason for run in runs if (reason := _why_stale(run, known))}
    if not stale:
        print(f"Nothing to delete in {home}.")
        return
    grid = Grid("run folder", "why", box=None, padding=(0, 2, 0, 0))
    for folder, reason in stale.items():
        grid.add_row(folder.name, reason)
    out.print(grid)
    chosen = [folder for folder, reason in stale.items() if unlisted or reason != UNLISTED]
    for folder in chosen if delete else ():
        with suppress(InUse), RunFolder(folder).locked():  # a run may have begun meanwhile
            if _why_stale(RunFolder(folder), known) == stale[folder]:
                remove(folder)
    left = len(stale) - len(chosen)
    affected = [folder for folder in chosen if not (delete and folder.exists())]
    done = f"{counted(len(affected), 'run folder')} {'deleted' if delete else 'to delete with --yes'}"
    more = f"; {left} more with --unlisted" if left else ""
    say(f"In {home}: {done}{more}")


def _why_stale(run: RunFolder, known: set[str]) -> str:
    """Why a run folder can go: its trial has no known digest, or failed without an earlier result; else empty.

    Damaged ones are left for `doctor`.
    """
    try:
        status = run.status
        failed, digest = status["state"] == "failed" and not run.finished, status["digest"]
    except (ValueError, KeyError):
        return ""
    return UNLISTED if digest not in known else "failed" if failed else ""


def sync(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments to copy. Default: all in the store.", metavar="EXPERIMENT")
    ] = None,
    store: opt.Store = STORE,
) -> None:
    """Copy runs into MLflow that are not there yet."""
    if not find_spec("mlflow"):
        raise SettingError("this command needs MLflow: pip install '.[mlflow]'")
    from rollcall.benchmark.sweep.mlflow_copy import Mirror
    from rollcall.leaderboard.leaderboards import own_table

    there(store)
    need_store(store)
    folders = Counter(str(path.parent.relative_to(store)) for path in run_folders(store))
    unknown = [name for name in experiments or () if name not in folders]
    if unknown:
        listed = ", ".join(folders) or "no experiment"
        raise SettingError(f"experiment: {unknown[0]!r} is not allowed; {store} has runs of {listed}")

    def table(name: str) -> str:
        try:
            return own_table(PaperExperiment.read(file_of_runs(store / name) or name), store)
        except SettingError:  # the file of the experiment may be gone or changed
            return ""

    for name in experiments or folders:
        mirror = Mirror(store, name)
        mirror.look(partial(table, name))
        if mirror.down:
            raise typer.Exit(2)


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")],
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write. Default: the run's name with .pt.")
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the code in RUN/source that the trial names.")] = False,
) -> None:
    """Write the trained model of a run as a torch state dict."""
    import torch

    from rollcall import load

    state = load(run, trust=trust).module().state_dict()
    file = Path(f"{run.resolve().name}.pt") if to is None else to
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file.resolve()) as scratch, scratch.open("wb") as stream:
        torch.save(state, stream)
    numbers = sum(tensor.numel() for tensor in state.values())
    print(f"Wrote {file}: {counted(len(state), 'tensor')}, {counted(numbers, 'number')}.")
    print("To load it into a network of the same layers, without Rollcall:")
    stripped = f'{{name.removeprefix("network."): value for name, value in torch.load("{file}").items()}}'
    print(f"  network.load_state_dict({stripped})")
