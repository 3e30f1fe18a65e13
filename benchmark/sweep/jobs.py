"""Jobs: a trial or an analysis and its run folder, the checks before it runs, how it is run, and how it ended."""

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from lightning.pytorch import Callback

from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.digest import digest, own_code
from rollcall.benchmark.config.errors import SettingError, at, listed
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.source import Source, contributed_line, decoded
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.benchmark.federation.build import build, content_of
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import Damaged, InUse, RunFolder, code_of
from rollcall.benchmark.federation.simulation import CHECKPOINT_EVERY, OtherData, Refused, own_rows, simulate
from rollcall.benchmark.process import Interrupted, free_cycles, stop_requests
from rollcall.tasks import evaluating

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.run import Execution


@dataclass(frozen=True, eq=False)
class Job:
    """A trial or an analysis of an experiment, its run folder, and its labels by axis of the grid."""

    trial: Trial | Analysis
    experiment: str
    store: Path
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.store / self.experiment / self.trial.name)

    @property
    def history(self) -> pd.DataFrame:
        """The evaluations of the trial. The run folder may have those of a shorter or a longer run, too."""
        history = self.folder.history()
        return own_rows(history, self.trial) if isinstance(self.trial, Trial) else history

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
        """The modules of the suite, and the user's files, that are not those of the run, as far as its folder says.

        A user's file that settings name is in the digest; one behind the name of an entry point is not.
        """
        status = self.folder.status
        now, own = code_of(self.trial), {source.digest[:10] for source in self.trial.copies.values()}
        changed = [name for name, code in status.get("code", {}).items() if code != now.get(name)]
        return sorted([*changed, *(name for name, code in status.get("sources", {}).items() if code not in own)])

    @property
    def misses_file(self) -> bool:
        """Whether a file of the user that the settings in the run folder name is not there any more, or is another."""
        named = own_code(load_yaml(self.folder.settings)) if self.trial.sources else ()
        ran = self.folder.status.get("sources", {}).values()
        files = {Path(one.rpartition(":")[0]) for one in named if ".py:" in one}
        is_other = (not one.is_file() or Source(str(one), decoded(one)).digest[:10] not in ran for one in files)
        return bool(ran) and any(is_other)  # earlier versions recorded none

    def restore(self) -> None:
        """Write trial.yaml and source/ of an ended run again, if they are damaged or name files that were moved."""
        folder = self.folder
        if not self.ended or folder.in_use:
            return
        if folder.altered_settings() or folder.altered_copies() or self.misses_file:
            folder.restore_settings(self.trial)


class Sweep:
    """How the jobs of a sweep ended, as their run folders say.

    Attributes:
        jobs: all jobs of the sweep; `todo`: those that had not ended before it.
        grid: Tune's `ResultGrid` of this sweep; None without Ray, or if nothing was left to run.
        failed: the error of each job that failed now, by name.
        diverged: the reason of each job that diverged, by name, now or before.
        asked: whether this process was asked to stop.
        finished, interrupted, elsewhere, waiting: how many finished now, were interrupted, are run by another process,
            and were not started.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        todo: Sequence[Job],
        failed: Mapping[str, str] | None = None,
        grid: Any = None,
        asked: bool = False,
    ) -> None:
        self.jobs, self.todo, self.grid, self.failed, self.asked = jobs, todo, grid, dict(failed or {}), asked
        self.diverged = {job.trial.name: job.folder.status.get("reason", "diverged") for job in jobs if job.diverged}
        left = [job.folder for job in todo if not job.ended and job.trial.name not in self.failed]
        self.finished = sum(job.finished for job in todo)
        self.elsewhere = sum(folder.in_use for folder in left)
        self.interrupted = sum(folder.state_now == "interrupted" for folder in left)
        self.waiting = len(left) - self.elsewhere - self.interrupted

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each job: its labels, seed, name, state and folder, and its last evaluation."""
        rows = []
        for job in self.jobs:
            row: dict[Any, Any] = {**job.labels, "seed": job.trial.seed, "run": job.trial.name}
            row |= {"state": job.folder.state_now, "folder": str(job.folder.path)}
            last = job.history.tail(1).dropna(axis=1).to_dict("records")
            rows.append(row | (last[0] if last else {}))
        return pd.DataFrame(rows)

    @property
    def stopped(self) -> bool:
        """Whether the sweep was interrupted before all its jobs ended."""
        return self.interrupted + self.waiting > 0


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


def check(jobs: Iterable[Job], execution: "Execution", anew: Collection[Job] = ()) -> None:
    """Refuse a damaged run folder, and a setting that is not allowed, before anything runs.

    One trial of every kind that has not ended, or runs anew, is built.
    """
    kinds = {}
    for job in jobs:
        job.folder.verify()
        job.folder.rows()
        if (not job.ended or job in anew) and isinstance(job.trial, Trial):
            kinds[job.trial.model_copy(update={"seed": 0}).digest] = job.trial
        else:
            job.restore()
    for trial in kinds.values():
        if not execution.knows_device(trial):  # each worker looks at its own
            trial = trial.model_copy(update={"numerics": trial.numerics.model_copy(update={"device": "cpu"})})
        build(trial)


def check_metrics(metrics: Mapping[str, Iterable[Metric]], trials: Iterable[Trial | Analysis]) -> None:
    """Refuse a metric that no trial records, as far as that is known: of an analysis it is not.

    `metrics` are by the setting that names them. `trials` will run, or may not fit this machine.
    """
    unknown = {metric.column: setting for setting, named in metrics.items() for metric in named}
    names: dict[str, None] = {}
    kinds = set()
    for trial in trials:
        if not unknown or isinstance(trial, Analysis):
            return
        if (kind := trial.model_copy(update={"seed": 0, "rounds": 1}).digest) in kinds:
            continue
        kinds.add(kind)
        try:
            names |= dict.fromkeys(recorded(build(trial)))
        except SettingError:  # such as a data set that is not here; `check` has built those that will run
            return
        unknown = {
            column: setting
            for column, setting in unknown.items()
            if not any(column == name or column.startswith(f"{name}/") for name in names)
        }
    for column, setting in unknown.items():
        raise SettingError(
            f"{setting}: {column!r} is not allowed; no trial records it. Recorded: {listed(names, column)}"
        )


def recorded(federation: Federation) -> list[str]:
    """The metrics that a trial records. Columns of groups, classes and further models begin with one and a slash."""
    names, task = [], federation.model.task
    for split in federation.evaluated_splits:
        with torch.no_grad(), evaluating(task):
            metrics = task.metrics(tuple(column[:2] for column in federation.data.splits[split]))
        names += [f"{split}/{name}" for name in (*metrics, *federation.metrics)]
    weights = {} if federation.weights is None else federation.weights.measured()
    return [*names, *weights, *federation.costs.named(memory=0)]


def run_analysis(analysis: Analysis, run: RunFolder) -> None:
    """Compute an analysis and write its run folder. `round` in its history is the variable of the analysis."""
    with run.locked():
        if run.finished:  # another process may have computed it meanwhile
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
) -> str:
    """Run a trial, or compute an analysis, in its run folder, which says how it ended. Returns the error if it failed.

    `stop` is called after every round: whether to stop.
    """
    run = RunFolder(folder)
    with suppress(OSError):
        if not run.in_use:
            run.error_file.unlink(missing_ok=True)  # of an earlier failure
    try:
        if isinstance(trial, Analysis):
            run_analysis(trial, run)
        else:
            simulate(trial, folder=folder, stop=stop, checkpoint_every=checkpoint_every, callbacks=callbacks)
    except (Interrupted, InUse):
        return ""
    except (Damaged, Refused) as error:  # the folder keeps its status
        return "" if run.in_use else str(error)  # another process makes its rounds
    except SettingError as error:
        run.fail(str(error), f"{error}\n", trial)
        return message_of(error)
    except (Exception, SystemExit) as error:
        if not run.error_file.exists():  # the run failed before it started
            run.fail(f"{type(error).__name__}: {error}", traceback.format_exc(), trial)
        return message_of(error)
    return ""


def message_of(error: BaseException) -> str:
    """What ended a run, in a line for the user: a refusal as it is, or the line of the user's code and the error."""
    kind = "" if isinstance(error, SettingError) else f"{contributed_line(error)}{type(error).__name__}: "
    return f"{kind}{error}"


def run_inline(jobs: Iterable[Job], checkpoint_every: timedelta = CHECKPOINT_EVERY) -> tuple[dict[str, str], bool]:
    """Run one job after another in this process, with all its threads. A job that fails does not stop the others.

    After SIGINT or SIGTERM the running trial saves a checkpoint, and no other trial starts. Returns the errors of the
    jobs that failed, by name, and whether it was asked to stop.

    Raises Interrupted: after a second signal, at once.
    """
    errors: dict[str, str] = {}
    with stop_requests() as requested:
        for job in jobs:
            if requested():
                break
            try:
                error = run_job(job.trial, job.folder.path, requested, checkpoint_every)
            except KeyboardInterrupt:  # a second signal
                lost = "Stopped at once. Rounds after the last checkpoint are lost. Rerun the command to resume."
                raise Interrupted(lost) from None
            errors |= {job.trial.name: error} if error else {}
        return errors, requested()
