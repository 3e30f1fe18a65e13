"""Jobs: a trial or an analysis and its run folder, the checks before it runs, how it is run, and how it ended."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from lightning.pytorch import Callback

from rollcall.benchmark.allocator import free_cycles
from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.digest import digest
from rollcall.benchmark.config.errors import SettingError, at, listed
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.source import contributed_line
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build, content_of
from rollcall.benchmark.federation.evaluation import named
from rollcall.benchmark.federation.interruption import Interrupted, stop_requests
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import Damaged, InUse, RunFolder, code_of
from rollcall.benchmark.federation.simulation import CHECKPOINT_EVERY, OtherData, Refused, simulate


@dataclass(frozen=True)
class Job:
    """A trial or an analysis of an experiment, its run folder, and its labels by axis of the grid."""

    trial: Trial | Analysis
    experiment: str
    store: Path
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.store / self.experiment / self.trial.name)

    @property
    def finished(self) -> bool:
        """Whether the run folder has at least the rounds of the trial."""
        return self.folder.finished >= self.trial.rounds

    @property
    def diverged(self) -> bool:
        """Whether the trial diverged within its rounds. It would again, so it is not run again."""
        return not self.finished and self.folder.diverged_within(self.trial.rounds)

    @property
    def ended(self) -> bool:
        """Whether nothing is left to run."""
        return self.finished or self.diverged

    @property
    def changed(self) -> list[str]:
        """The modules of the suite whose code is not that of the run in the folder, as far as the folder says."""
        now = code_of(self.trial)
        return sorted(module for module, code in self.folder.status.get("code", {}).items() if code != now.get(module))


@dataclass(frozen=True)
class Outcome:
    """How a run ended (`elsewhere`: another process runs it), and the error of a failed or diverged one."""

    state: Literal["finished", "interrupted", "waiting", "failed", "diverged", "elsewhere"]
    error: str = ""


class Sweep:
    """How the jobs of a sweep ended.

    Attributes:
        jobs: all jobs of the sweep, those that ended before it included.
        grid: Tune's `ResultGrid` of this sweep; None without Ray, or if nothing was left to run.
        failed: the error of each job that failed now, by name.
        diverged: the reason of each job that diverged, by name, now or before.
        finished, interrupted, elsewhere, waiting: how many finished now, were interrupted, are run by another process,
            and were not started.
    """

    def __init__(self, jobs: Sequence[Job], outcomes: Mapping[str, Outcome], grid: Any = None) -> None:
        self.jobs = jobs
        self.grid = grid
        self.failed = {name: outcome.error for name, outcome in outcomes.items() if outcome.state == "failed"}
        self.diverged = {job.trial.name: job.folder.status.get("reason", "diverged") for job in jobs if job.diverged}
        states = Counter(outcome.state for outcome in outcomes.values())
        self.finished, self.interrupted = states["finished"], states["interrupted"]
        self.elsewhere = states["elsewhere"]
        started = {name for name, outcome in outcomes.items() if outcome.state != "waiting"}
        self.waiting = sum(job.trial.name not in started and not job.ended for job in jobs)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each job: its labels, seed, name, state and folder, and its last evaluation."""
        rows = []
        for job in self.jobs:
            history = job.folder.history()
            row: dict[Any, Any] = {
                **job.labels,
                "seed": job.trial.seed,
                "run": job.trial.name,
                "state": job.folder.state_now,
            }
            row |= {"folder": str(job.folder.path)} | ({} if history.empty else history.iloc[-1].to_dict())
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def stopped(self) -> bool:
        """Whether the sweep was interrupted before all its jobs ended."""
        return self.interrupted + self.waiting > 0

    @property
    def state(self) -> str:
        """How the sweep ended, in the words of run folders."""
        return "failed" if self.failed else "interrupted" if self.stopped or self.elsewhere else "finished"


def check_folders(jobs: Iterable[Job]) -> None:
    """Read the run folder of every job, so that a damaged file is refused before anything runs."""
    for job in jobs:
        altered = job.folder.altered()
        if job.folder.metrics in altered:
            raise Damaged(job.folder.metrics, altered[job.folder.metrics])
        job.folder.history()
        if job.ended and not job.folder.settings.exists():  # `doctor` set it aside
            job.folder.save_settings(job.trial)


def refuse_other_data(jobs: Iterable[Job], redo: bool = False) -> list[RunFolder]:
    """Raise `OtherData` if the user's own task makes other data now than for a run; with `redo` return such runs."""
    now: dict[str, str] = {}
    changed = []
    for job in jobs:
        trial, folder = job.trial, job.folder
        if isinstance(trial, Trial) and folder.status.get("data") and not folder.in_use:
            key = digest({"task": trial.task, "seed": trial.seed})
            if key not in now:
                with at("task"):
                    now[key] = content_of(trial, trial.task.build(trial.seed)[1])
            if folder.has_other(now[key]):
                changed.append(folder)
    if changed and not redo:
        raise OtherData(changed)
    return changed


def check(jobs: Iterable[Job]) -> None:
    """Build one trial of every kind, so that a setting that is not allowed is refused before anything runs."""
    kinds = {one.model_copy(update={"seed": 0}).digest: one for job in jobs if isinstance(one := job.trial, Trial)}
    for trial in kinds.values():
        build(trial)


def check_metrics(metrics: Mapping[str, Iterable[Metric]], trials: Iterable[Trial | Analysis]) -> None:
    """Refuse a metric that no trial records, as far as that is known: of an analysis it is not.

    Args:
        metrics: by the setting that names them, such as `report.metrics`.
        trials: those that will run, and further ones of the experiment, which may not fit this machine.
    """
    unknown = {metric.column: setting for setting, named in metrics.items() for metric in named}
    recorded: dict[str, None] = {}
    kinds: dict[str, Trial | Analysis] = {}
    for trial in trials:
        if not unknown or isinstance(trial, Analysis):
            return
        if kinds.setdefault(trial.model_copy(update={"seed": 0, "rounds": 1}).digest, trial) is not trial:
            continue
        try:
            names, whole = columns(build(trial))
        except SettingError:  # such as a data set that is not here; `check` has built those that will run
            return
        recorded |= dict.fromkeys([*names, *whole])
        groups = tuple(f"{name}/" for name in whole)
        unknown = {name: one for name, one in unknown.items() if name not in recorded and not name.startswith(groups)}
    for column, setting in unknown.items():
        raise SettingError(
            f"{setting}: {column!r} is not allowed; no trial records it. Recorded: {listed(recorded, column)}"
        )


def columns(federation: Federation) -> tuple[list[str], list[str]]:
    """The columns of the history of a trial without `round`, and the metrics over whole splits, `split/metric`.

    The columns of classes of the latter, and those of a metric with several values, begin with such a name and a slash.
    Which they are is known after the first evaluation.
    """
    names, whole = [], []
    by_client = {groups.split for groups in federation.groups if groups.by == "client"}
    federation.model.task.eval()
    for split in federation.evaluated_splits:
        with torch.no_grad():
            metrics = federation.model.task.metrics(tuple(column[:2] for column in federation.data.splits[split]))
        names += [f"{split}/{name}" for name in metrics]
        for groups in federation.groups:
            if groups.split == split:
                ends = [*groups.names, *([groups.mean] if groups.mean else [])]
                names += [f"{split}/{name}/{end}" for name, values in metrics.items() if values.ndim for end in ends]
        over_clients = federation.metrics.over_clients if split in by_client else ()
        whole += [f"{split}/{name}" for name in (*federation.metrics.accumulated, *over_clients)]
    names, whole = (
        [name for model in federation.eval_models for name in named(dict.fromkeys(own, 0.0), model)]
        for own in (names, whole)
    )
    weights = {} if federation.weights is None else federation.weights.measured()
    return [*names, *weights, *federation.costs.named(memory=0)], whole


def run_analysis(analysis: Analysis, run: RunFolder) -> None:
    """Compute an analysis and write its run folder. `round` in its history is the variable of the analysis."""
    if run.finished:
        return
    with run.running(analysis, device="cpu", threads=torch.get_num_threads()):
        run.metrics.unlink(missing_ok=True)  # of an interrupted computation
        for row in analysis.table().to_dict("records"):
            run.append({str(name): value for name, value in row.items()})


@free_cycles()  # Lightning's trainer is part of cycles that hold the models of all clients
def run_job(
    trial: Trial | Analysis,
    folder: Path,
    stop: Callable[[], bool],
    checkpoint_every: timedelta = CHECKPOINT_EVERY,
    callbacks: Sequence[Callback] = (),
) -> Outcome:
    """Run a trial, or compute an analysis, in its run folder. `stop` is called after every round: whether to stop."""
    run = RunFolder(folder)
    try:
        if isinstance(trial, Analysis):
            run_analysis(trial, run)
        else:
            result = simulate(trial, folder=folder, stop=stop, checkpoint_every=checkpoint_every, callbacks=callbacks)
            if result.diverged is not None:
                return Outcome("diverged", run.status.get("reason", "diverged"))
    except Interrupted:
        return Outcome("interrupted")
    except InUse:
        return Outcome("elsewhere")
    except (Damaged, Refused) as error:  # the folder keeps its status
        return Outcome("failed", str(error))
    except SettingError as error:  # a line for the user
        run.fail(str(error), f"{error}\n", trial)
        return Outcome("failed", str(error))
    except (Exception, SystemExit) as error:
        if not run.error_file.exists():  # the run failed before it started
            run.fail(run.error(error), traceback.format_exc(), trial)
        return Outcome("failed", f"{contributed_line(error)}{run.error(error)}")
    return Outcome("finished")


def run_inline(jobs: Iterable[Job], checkpoint_every: timedelta = CHECKPOINT_EVERY) -> dict[str, Outcome]:
    """Run one job after another in this process, with all its threads. A job that fails does not stop the others.

    After SIGINT or SIGTERM the running trial saves a checkpoint, and no other trial starts. Returns the outcomes of the
    jobs that were started, by name.

    Raises:
        Interrupted: after a second signal, at once.
    """
    outcomes: dict[str, Outcome] = {}
    with stop_requests() as requested:
        for job in jobs:
            if requested():
                break
            try:
                outcomes[job.trial.name] = run_job(job.trial, job.folder.path, requested, checkpoint_every)
            except KeyboardInterrupt:  # a second signal
                lost = "Stopped at once. Rounds after the last checkpoint are lost. Rerun the command to resume."
                raise Interrupted(lost) from None
    return outcomes
