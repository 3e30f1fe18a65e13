"""`rollcall run` and `rollcall tune`."""

import sys
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Scheduler, file_of
from rollcall.benchmark.config.text import command, counted, duration, parse_values, repeated, strict_json
from rollcall.benchmark.sweep.run import Execution, record, run_jobs
from rollcall.cli import options as opt
from rollcall.cli.options import INTERRUPTED, STORE, Request, described, err, requests_of, say

if TYPE_CHECKING:
    from rollcall.benchmark.search.tune import Tuning
    from rollcall.benchmark.sweep.jobs import Job, Sweep

INSTALL_MLFLOW = "pip install '.[mlflow]'"


def run(
    experiment: opt.Names,
    variant: opt.Variant = "",
    seeds: opt.Seeds = "",
    only: opt.Only = None,
    settings: opt.Set = None,
    rounds: opt.Rounds = None,
    methods: opt.Methods = None,
    tuned: opt.Tuned = None,
    executor: opt.ExecutorChoice = None,
    gpus: opt.Gpus = "0",
    retries: opt.Retries = 1,
    every: opt.Every = "2m",
    address: opt.Address = "",
    storage: opt.Storage = "",
    store: opt.Store = STORE,
    redo_changed: Annotated[
        bool, typer.Option("--redo-changed", help="Run again what other code or other data gave.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Run an experiment's trials; rerun to resume, finished ones are skipped."""
    requests = requests_of(experiment, variant, seeds, only, settings, rounds, methods, tuned)
    execution = opt.execution(store, executor, gpus, retries, every, storage, address)
    sweeps = [request.jobs(store) for request in requests]  # validates all settings before anything runs
    failed = interrupted = False
    for request, jobs in zip(requests, sweeps, strict=True):
        try:
            ends = _run(request, jobs, execution, redo_changed)
        except SettingError as error:
            if len(requests) == 1:
                raise
            failed = True
            print(f"failed: {request.experiment.name}: {error}", file=sys.stderr)
            continue
        if not as_json:
            _tell(ends, store / request.experiment.home)
        _tell_ends(ends)
        failed |= bool(ends.failed)
        interrupted = ends.asked
        if interrupted:
            break
    if as_json:
        print(strict_json([described(job) for jobs in sweeps for job in jobs]))
    elif interrupted:
        say(execution.interrupted)
    elif not find_spec("mlflow"):
        sync = command("sync", store=store)
        say(
            f"MLflow is not installed: results are in the run folders only. To copy them: {INSTALL_MLFLOW}, then {sync}"
        )
    raise typer.Exit(INTERRUPTED if interrupted else 1 if failed else 0)


def _run(request: Request, jobs: list["Job"], execution: Execution, redo: bool) -> "Sweep":
    """Run the jobs of an experiment that have not ended.

    Raises SettingError: a setting is not allowed, or a run folder is damaged.
    """
    from rollcall.benchmark.federation.run_folder import InUse, remove
    from rollcall.benchmark.sweep.jobs import check, refuse_other_data
    from rollcall.leaderboard.leaderboards import own_table

    before = {job: job.folder.status for job in jobs} if redo else {}
    begun = [job for job in jobs if job.ended or job.folder.checkpoint.exists()]
    changed = [job for job in begun if job.changed and not job.folder.in_use]
    if changed:
        modules = ", ".join(sorted({module for job in changed for module in job.changed}))
        todo = "run again now" if redo else "results are kept. To run again: --redo-changed"
        say(f"Computed by other code of {modules}: {counted(len(changed), 'trial')}; {todo}", err)
    if longer := [job for job in changed if redo and job.folder.finished > job.trial.rounds]:
        have = counted(longer[0].folder.finished, "round")
        raise SettingError(
            f"redo-changed: {longer[0].trial.name} has {have}; must be run again with as many (--rounds)"
        )
    others = refuse_other_data(jobs, redo)
    anew = [*(changed if redo else ()), *(job for job in jobs if job.folder.path in {one.path for one in others})]
    check(jobs, execution, anew)  # before anything is removed
    for folder in others:
        say(f"Its data have changed: {folder.path.name}; run again now", err)
    for job in anew:
        with suppress(InUse), job.folder.locked():  # another terminal may do the same
            if job.folder.status == before[job]:
                remove(job.folder.path)
    if not all(job.ended for job in jobs):
        request.check_metrics()
        record(request.experiment, execution.store, request.file or file_of(request.experiment.name))
    return run_jobs(jobs, execution, partial(own_table, request.experiment, execution.store))


def _tell_ends(ends: "Sweep") -> None:
    """Print a line on stderr for each trial that failed or diverged."""
    for job in ends.jobs:
        name = job.trial.name
        if name in ends.failed:
            file = job.folder.error_file
            print(f"failed: {name}: {ends.failed[name]}", file=sys.stderr)
            if file.exists():
                print(f"  traceback in {file}", file=sys.stderr)
        elif name in ends.diverged:
            print(f"diverged: {name}: {ends.diverged[name].removeprefix('diverged: ')}", file=sys.stderr)


def _tell(ends: "Sweep", home: Path) -> None:
    """Print how many trials ran, how they ended, and which share of their time went into evaluations."""
    before = len(ends.jobs) - len(ends.todo)
    counts = [f"{ends.finished} run now", f"{before} before", f"{len(ends.failed)} failed"]
    if ends.diverged:
        counts.append(f"{len(ends.diverged)} diverged")
    if ends.elsewhere:
        counts.append(f"{ends.elsewhere} running elsewhere (rerun the command later)")
    if ends.stopped:
        counts += [f"{ends.interrupted} interrupted", f"{ends.waiting} not started"]
    statuses = [job.folder.status for job in ends.todo]
    evaluating, seconds = (sum(one.get(key, 0) for one in statuses) for key in ("evaluation_seconds", "seconds"))
    share = f"; {evaluating / seconds:.0%} of the time in evaluations" if evaluating else ""
    say(f"{counted(len(ends.jobs), 'trial')}: {', '.join(counts)}; in {home}{share}")


def tune(
    experiment: opt.Name,
    space: Annotated[
        str | None, typer.Option(metavar="SPACE", help="A YAML file, or SETTING=DOMAIN,... Default: the file's.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples of each cell, at most. Default: the file's, or 30.")
    ] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Try all combinations instead of samples.")] = False,
    search: Annotated[Literal["random", "optuna"], typer.Option(help="Random samples, or Optuna's TPE.")] = "random",
    scheduler: Annotated[
        Scheduler | None, typer.Option(help="Tune's scheduler that stops bad samples. Default: the file's.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What judges samples. Default: the file's, or validation/accuracy.")
    ] = None,
    mode: Annotated[
        Literal["max", "min"] | None, typer.Option(help="The better end. Default: known for accuracies and losses.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="SEED,...", help="Seeds of the search. Default: the file's, or 1000.")
    ] = None,
    rounds: opt.Rounds = None,
    per: Annotated[str | None, typer.Option(metavar="AXIS,...", help="Axes with own searches. Default: all.")] = None,
    variant: opt.Variant = "",
    only: opt.Only = None,
    settings: opt.Set = None,
    methods: opt.Methods = None,
    executor: opt.ExecutorChoice = None,
    gpus: opt.Gpus = "0",
    retries: opt.Retries = 1,
    every: opt.Every = "2m",
    address: opt.Address = "",
    storage: opt.Storage = "",
    store: opt.Store = STORE,
    as_json: opt.Json = False,
) -> None:
    """Search hyper-parameters, for every cell alike; rerun to resume."""
    from rollcall.benchmark.search.tune import tune as search_for
    from rollcall.leaderboard.figures import save, searched

    if grid and samples is not None:
        raise SettingError("--samples is not allowed with --grid, which tries all combinations; must be left out")
    chosen = requests_of([experiment], variant, "", only, settings, None, methods)
    if len(chosen) != 1:
        raise SettingError(f"experiment: {experiment!r} is not allowed; must be one experiment")
    tuning = search_for(
        chosen[0].experiment,
        space,
        samples="grid" if grid else samples,
        search_alg=None if search == "random" else search,
        scheduler=scheduler,
        metric=metric,
        mode=mode,
        seeds=None if seeds is None else parse_values("seeds", seeds),
        rounds=rounds,
        per=None if per is None else [axis for axis in per.split(",") if axis],
        execution=opt.execution(store, executor, gpus, retries, every, storage, address),
    )
    for note in tuning.notes:
        say(note, err)
    if not tuning.best:
        if as_json:
            print(strict_json({"best": {}}))
        say(f"No answer: all {len(tuning.samples)} samples failed. Their errors: {tuning.beside('samples.json')}", err)
        raise typer.Exit(1)
    save(searched(tuning), tuning.beside("samples.svg"))
    if as_json:
        print(strict_json({"best": tuning.best}))
    else:
        words = ["run", experiment, *(["--variant", variant] if variant else []), "--tuned", tuning.file]
        words += [*repeated("--algorithm", methods), *repeated("--set", settings), *repeated("--only", only)]
        _tell_best(tuning, command(*words, store=store))


def _tell_best(tuning: "Tuning", next_step: str) -> None:
    """Print the best settings of each cell, and the command for the final table."""
    import pandas as pd

    from rollcall.benchmark.search.answer import found

    seconds, answers = tuning.samples.groupby("cell")["seconds"].sum(), tuning.tuned.best
    rows = [
        {
            "cell": name,
            "best settings": " ".join(f"{path}={value}" for path, value in one.settings.items()),
            "score": f"{one.score:.4g}" + ("" if one.spread is None else f" ± {one.spread:.2g}"),
            "samples": one.samples,
            "client gradients": f"{one.gradients:,.0f}",
            "time": duration(seconds[name]),
        }
        for name, one in answers.items()
    ]
    say(found(list(answers.values())))
    if any(one.spread is not None for one in answers.values()):
        say("score: mean ± standard deviation over the seeds of the search")
    print(pd.DataFrame(rows).to_string(index=False))  # not cut to the terminal: settings are copied
    say(f"In {tuning.file}. Final table: {next_step}")
