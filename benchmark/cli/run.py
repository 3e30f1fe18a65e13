"""`rollcall run`."""

import json
import sys
from contextlib import ExitStack
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli.described import described
from benchmark.cli.options import STORE, Json, Methods, Names, Only, Rounds, Seeds, Set, Store, Variant, err, out
from benchmark.cli.selection import plans_of, within, writable
from benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job
    from benchmark.sweep.progress import View

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as in shells."""

INSTALL_RAY = "pip install 'rollcall[ray]'"
INSTALL_MLFLOW = "pip install 'rollcall[mlflow]'"


class Executor(StrEnum):
    ray = "ray"
    inline = "inline"


def run(
    experiment: Names,
    variant: Variant = "",
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    tuned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use the settings that `rollcall tune` chose.")
    ] = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Reduce rounds, then seeds, to fit 30s, 90m or 2h.")] = "",
    executor: Annotated[
        Executor | None, typer.Option(help="Parallel (ray), or one by one (inline). Default: ray if installed.")
    ] = None,
    gpus_per_trial: Annotated[float, typer.Option(min=0, help="GPU share of a trial with ray; 0: CPU.")] = 0.0,
    retries: Annotated[int, typer.Option(min=0, help="Restarts of a trial whose process died, with ray.")] = 1,
    store: Store = STORE,
    redo_changed: Annotated[
        bool, typer.Option("--redo-changed", help="Run again what earlier code of the suite computed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run an experiment's trials. Rerunning resumes interrupted trials and skips finished ones."""
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods, tuned)
    chosen = executor_of(executor)
    unfinished = sum(plan.unfinished(store) for plan in plans)
    if chosen is Executor.ray and unfinished:
        from benchmark.sweep import ray_start

        ray_start.begin(0 if gpus_per_trial else unfinished)
    sweeps = [plan.jobs(store) for plan in plans]  # validates all settings before anything runs
    if budget:
        plans = within(plans, budget, store, gpus_per_trial if chosen is Executor.ray else None)
        sweeps = [plan.jobs(store) for plan in plans]
    from benchmark.sweep.jobs import check, check_folders

    writable(store)
    failed = interrupted = False
    for plan, jobs in zip(plans, sweeps, strict=True):
        _changed(jobs, redo_changed)
        try:
            check_folders(jobs)
            todo = [job for job in jobs if not job.ended]
            check(todo)
            if todo:
                plan.check_metrics()
                plan.claim(store)
            view = _run(jobs, todo, chosen, gpus_per_trial, retries, store, plan.experiment.home)
        except SettingError as error:
            if len(plans) == 1:
                raise
            failed = True
            print(f"failed: {plan.experiment.name}: {error}", file=sys.stderr)
            continue
        if not as_json:
            _tell(view, jobs, todo, store / plan.experiment.home)
        _tell_ends(view, jobs)
        failed |= bool(view.failed)
        interrupted = view.stopped
        if interrupted:
            break
    if as_json:
        print(json.dumps([described(job) for jobs in sweeps for job in jobs], indent=1))
    raise typer.Exit(INTERRUPTED if interrupted else 1 if failed else 0)


def executor_of(executor: Executor | None) -> Executor:
    """The executor to use: by default Ray if it is installed, otherwise inline, with a line that says so.

    Raises:
        SettingError: Ray was asked for and is not installed.
    """
    if executor is Executor.inline or find_spec("ray"):
        return executor or Executor.ray
    if executor is Executor.ray:
        raise SettingError(f"--executor ray needs Ray: {INSTALL_RAY}")
    err.print(
        f"Ray is not installed: trials run one after another. For parallel trials: {INSTALL_RAY}",
        highlight=False,
        soft_wrap=True,
    )
    return Executor.inline


def _changed(jobs: list["Job"], redo: bool) -> None:
    """Name the finished trials that earlier code of the suite computed; with `redo`, remove their run folders."""
    changed = [(job, job.changed) for job in jobs if job.finished and job.changed]
    if not changed:
        return
    modules = ", ".join(sorted({module for _, names in changed for module in names}))
    todo = "they run again" if redo else "their results are kept. To run them again: --redo-changed"
    line = f"{len(changed)} finished trials were computed by other code of {modules}; {todo}"
    err.print(line, highlight=False, soft_wrap=True)
    for job, _ in changed if redo else ():
        rmtree(job.folder.path)


def _run(
    jobs: list["Job"],
    todo: list["Job"],
    executor: Executor,
    gpus_per_trial: float,
    retries: int,
    store: Path,
    home: str,
) -> "View":
    """Run the jobs that are still to do, and mirror their run folders to MLflow if it is installed."""
    from benchmark.sweep.background import Background
    from benchmark.sweep.jobs import CallbackList, SweepCallback, run_inline
    from benchmark.sweep.progress import View

    with View(jobs, err) as view, ExitStack() as stack:
        callbacks: list[SweepCallback] = [view]
        if todo and find_spec("mlflow"):
            from benchmark.sweep.mlflow_mirror import connected

            callbacks.append(stack.enter_context(Background(lambda: connected(store, home))))
        if todo and executor is Executor.ray:
            from benchmark.sweep.ray_executor import run_ray

            run_ray(todo, CallbackList(*callbacks), gpus_per_trial, retries)
        elif todo:
            run_inline(todo, CallbackList(*callbacks))
    return view


def _tell_ends(view: "View", jobs: list["Job"]) -> None:
    """Print a line on stderr for each trial that failed or diverged."""
    for job in jobs:
        name = job.trial.name
        if name in view.failed:
            file = job.folder.error_file
            print(f"failed: {name}: {view.failed[name]}", file=sys.stderr)
            if file.exists():
                print(f"  traceback in {file}", file=sys.stderr)
        elif name in view.diverged:
            print(f"diverged: {name}: {view.diverged[name].removeprefix('diverged: ')}", file=sys.stderr)


def _tell(view: "View", jobs: list["Job"], todo: list["Job"], folder: Path) -> None:
    """Print how many trials ran, how they ended, and which share of their time went into evaluations."""
    counts = [f"{view.finished} run now", f"{len(jobs) - len(todo)} before", f"{len(view.failed)} failed"]
    if view.diverged:
        counts.append(f"{len(view.diverged)} diverged")
    if view.elsewhere:
        counts.append(f"{view.elsewhere} running elsewhere (rerun the command later)")
    if view.stopped:
        counts += [f"{view.interrupted} interrupted", f"{view.waiting} not started"]
    evaluating, seconds = (
        sum(job.folder.status.get(key, 0) for job in todo) for key in ("evaluation_seconds", "seconds")
    )
    share = f"; {evaluating / seconds:.0%} of the time in evaluations" if evaluating else ""
    out.print(f"{len(jobs)} trials: {', '.join(counts)}; in {folder}{share}", highlight=False, soft_wrap=True)
    if view.stopped:
        out.print(
            "Interrupted. The running trials have saved their last round. Rerun the command to resume.",
            highlight=False,
            soft_wrap=True,
        )
    if not find_spec("mlflow"):
        out.print(
            "MLflow is not installed: results are in the run folders only. To have them in MLflow too: "
            f"{INSTALL_MLFLOW}, then rollcall sync",
            highlight=False,
            soft_wrap=True,
        )
