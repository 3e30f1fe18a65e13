"""`rollcall run`."""

import json
import sys
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli.options import STORE, Json, Methods, Names, Only, Rounds, Seeds, Set, Store, Variant, err, out
from benchmark.cli.report import report
from benchmark.cli.selection import plans_of, within
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job
    from benchmark.sweep.progress import View

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""


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
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Cut rounds, then seeds, to about 30s, 90m or 2h: an estimate.")
    ] = "",
    executor: Annotated[
        Executor, typer.Option(help="Ray Tune, or one trial at a time in this process.")
    ] = Executor.ray,
    gpus_per_trial: Annotated[float, typer.Option(min=0, help="With ray; 0.25: four trials a GPU, 0: CPU.")] = 0.0,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Run an experiment's trials. Rerunning resumes interrupted trials and skips finished ones."""
    if executor is Executor.ray and not find_spec("ray"):
        raise SettingError("running trials side by side needs Ray: pip install 'ray[tune]'; or add --executor inline")
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods)
    if budget:
        plans = within(plans, budget, store, gpus_per_trial if executor is Executor.ray else None)
    failed = interrupted = False
    for plan in plans:
        try:
            view = _run(plan.experiment, plan.jobs(store), executor, gpus_per_trial, store, as_json)
        except SettingError as error:
            if len(plans) == 1:
                raise
            failed = True
            print(f"failed: {plan.experiment.name}: {error}", file=sys.stderr)
            continue
        failed |= bool(view.failed)
        interrupted = view.stopped
        if interrupted:
            break
    if as_json:
        print(json.dumps([report(job) for plan in plans for job in plan.jobs(store)], indent=1))
    raise typer.Exit(INTERRUPTED if interrupted else 1 if failed else 0)


def _run(
    experiment: Experiment, jobs: list["Job"], executor: Executor, gpus_per_trial: float, store: Path, as_json: bool
) -> "View":
    """Run what is not finished and tell how it went."""
    from benchmark.sweep.jobs import CallbackList, SweepCallback, check, run_inline
    from benchmark.sweep.progress import View

    todo = [job for job in jobs if not job.finished]
    check(todo)
    with View(jobs, err) as view:
        callbacks: list[SweepCallback] = [view]
        if todo and find_spec("mlflow"):
            from benchmark.sweep.mlflow_mirror import Mirror

            callbacks.append(Mirror(store, experiment.home))
        if todo and executor is Executor.ray:
            from benchmark.sweep.ray_executor import run_ray

            run_ray(todo, CallbackList(*callbacks), gpus_per_trial)
        elif todo:
            run_inline(todo, CallbackList(*callbacks))
    if not as_json:
        counts = [f"{view.finished} run now", f"{len(jobs) - len(todo)} before", f"{len(view.failed)} failed"]
        if view.stopped:
            counts += [f"{view.interrupted} interrupted", f"{view.waiting} not begun"]
        spent = [sum(job.folder.status.get(f"{of}seconds", 0) for job in todo) for of in ("evaluation_", "")]
        evaluating = f"; {spent[0] / spent[1]:.0%} of the time in evaluations" if spent[0] else ""
        out.print(
            f"{len(jobs)} trials: {', '.join(counts)}; in {store / experiment.home}{evaluating}",
            highlight=False,
            soft_wrap=True,
        )
        if view.stopped:
            out.print(
                "Interrupted. The trials that were running have saved their last round. Rerun the command to resume.",
                soft_wrap=True,
            )
        if not find_spec("mlflow"):
            out.print("MLflow is not installed here; `rollcall sync` brings the run folders into it where it is.")
    for name, reason in view.failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return view
