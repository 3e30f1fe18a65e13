"""`rollcall run`."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli.executor import Executor, executor_of, gpus_of, storage_of
from benchmark.cli.selection import described, plans_of, within, writable
from benchmark.cli.shared import (
    INTERRUPTED,
    STORE,
    CheckpointEvery,
    GpusPerTrial,
    Json,
    Methods,
    Names,
    Only,
    RayAddress,
    Retries,
    Rounds,
    Seeds,
    Set,
    StorageURL,
    Store,
    Tuned,
    Variant,
    err,
    out,
    strict_json,
)
from benchmark.config.counted import counted
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment
from benchmark.config.next_step import command

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job, SweepCallback
    from benchmark.sweep.progress import View
    from benchmark.sweep.storage import Storage

INSTALL_MLFLOW = "pip install 'rollcall[mlflow]'"


def run(
    experiment: Names,
    variant: Variant = "",
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    tuned: Tuned = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Reduce rounds, then seeds, to fit 30s, 90m or 2h.")] = "",
    executor: Annotated[
        Executor | None, typer.Option(help="Parallel (ray), or one by one (inline). Default: ray if installed.")
    ] = None,
    gpus_per_trial: GpusPerTrial = "0",
    retries: Retries = 1,
    checkpoint_every: CheckpointEvery = "2m",
    ray_address: RayAddress = "",
    storage: StorageURL = "",
    store: Store = STORE,
    redo_changed: Annotated[
        bool, typer.Option("--redo-changed", help="Run again what earlier code of the suite computed.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show a row for each running trial.")] = False,
    as_json: Json = False,
) -> None:
    """Run an experiment's trials. Rerunning resumes interrupted trials and skips finished ones."""
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods, tuned)
    chosen = executor_of(executor, storage, ray_address, gpus_per_trial, retries)
    unfinished = sum(plan.unfinished(store) for plan in plans)
    if chosen is Executor.ray and unfinished:
        from benchmark.sweep import ray_start

        ray_start.begin(ray_address, trials=unfinished if gpus_per_trial == "0" else 0)
    sweeps = [plan.jobs(store) for plan in plans]  # validates all settings before anything runs
    from benchmark.sweep.budget import read_time
    from benchmark.sweep.jobs import check, check_folders, run_inline
    from benchmark.sweep.ray_options import RayOptions

    gpus = gpus_of(gpus_per_trial, sweeps)
    every = timedelta(seconds=read_time(checkpoint_every, "checkpoint-every"))
    if budget:
        plans = within(plans, budget, store, gpus if chosen is Executor.ray else None)
        sweeps = [plan.jobs(store) for plan in plans]
    writable(store)
    options = RayOptions(gpus, retries, every, storage_of(storage, store), ray_address)

    def execute(todo: list["Job"], callback: "SweepCallback") -> None:
        if chosen is Executor.ray:
            from benchmark.sweep.ray_executor import run_ray

            run_ray(todo, callback, options)
        else:
            run_inline(todo, callback, every)

    failed = interrupted = False
    for plan, jobs in zip(plans, sweeps, strict=True):
        try:
            if options.storage is not None:
                options.storage.exchange(jobs)
            _changed(jobs, redo_changed, options.storage)
            check_folders(jobs)
            todo = [job for job in jobs if not job.ended]
            check(todo)
            if todo:
                plan.check_metrics()
                plan.claim(store)
            view = _run(jobs, todo, execute, store, plan.experiment, watch)
        except SettingError as error:
            if len(plans) == 1:
                raise
            failed = True
            print(f"failed: {plan.experiment.name}: {error}", file=sys.stderr)
            continue
        if not as_json:
            _tell(view, jobs, todo, store, plan.experiment.home)
        _tell_ends(view, jobs)
        failed |= bool(view.failed)
        interrupted = view.stopped
        if interrupted:
            break
    if as_json:
        print(strict_json([described(job) for jobs in sweeps for job in jobs]))
    raise typer.Exit(INTERRUPTED if interrupted else 1 if failed else 0)


def _changed(jobs: list["Job"], redo: bool, storage: "Storage | None") -> None:
    """Name the finished trials that earlier code of the suite computed; with `redo`, remove their run folders."""
    changed = [(job, job.changed) for job in jobs if job.finished and job.changed]
    if not changed:
        return
    modules = ", ".join(sorted({module for _, names in changed for module in names}))
    todo = "run again now" if redo else "results are kept. To run again: --redo-changed"
    line = f"Computed by other code of {modules}: {counted(len(changed), 'finished trial')}; {todo}"
    err.print(line, highlight=False, soft_wrap=True)
    for job, _ in changed if redo else ():
        rmtree(job.folder.path)
        if storage is not None:
            storage.remove(job.folder.path)


def _run(
    jobs: list["Job"],
    todo: list["Job"],
    execute: Callable[[list["Job"], "SweepCallback"], None],
    store: Path,
    experiment: Experiment,
    watch: bool,
) -> "View":
    """Run the jobs that are still to do, and mirror their run folders to MLflow if it is installed."""
    from benchmark.sweep.background import Background
    from benchmark.sweep.jobs import CallbackList
    from benchmark.sweep.progress import View

    with View(jobs, err, watch, experiment.metrics[0]) as view, ExitStack() as stack:
        callbacks: list[SweepCallback] = [view]
        mirror = None
        if todo and find_spec("mlflow"):
            from benchmark.sweep.mlflow_mirror import Mirror
            from leaderboard.cli.leaderboard import write_tables

            mirror = stack.enter_context(Background(partial(Mirror, store, experiment.home)))
            mirror.call(Mirror.begin)
            callbacks.append(mirror)
        if todo:
            execute(todo, CallbackList(*callbacks))
        if mirror is not None:
            mirror.call(lambda mirror: mirror.end(view.state, partial(write_tables, experiment, store)))
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


def _tell(view: "View", jobs: list["Job"], todo: list["Job"], store: Path, home: str) -> None:
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
    line = f"{counted(len(jobs), 'trial')}: {', '.join(counts)}; in {store / home}{share}"
    out.print(line, highlight=False, soft_wrap=True)
    if view.stopped:
        out.print(
            "Interrupted. The running trials have saved their last round. Rerun the command to resume.",
            highlight=False,
            soft_wrap=True,
        )
    if not find_spec("mlflow"):
        out.print(
            "MLflow is not installed: results are in the run folders only. To have them in MLflow too: "
            f"{INSTALL_MLFLOW}, then {command('sync', store=store)}",
            highlight=False,
            soft_wrap=True,
        )
