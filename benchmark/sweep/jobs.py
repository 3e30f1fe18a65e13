"""Jobs: what is run in which folder, the callbacks of a sweep, and running without Ray."""

import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from rollcall.benchmark.allocator import free_cycles
from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.source import contributed_line
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.interruption import Interrupted, stop_requests
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import Damaged, InUse, RunFolder
from rollcall.benchmark.federation.simulation import CHECKPOINT_EVERY, Refused, simulate


@dataclass(frozen=True)
class Job:
    """A trial or an analysis of an experiment, and its run folder."""

    trial: Trial | Analysis
    experiment: str
    store: Path

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
        """The modules of the suite whose code is not that of the run in the folder; none if the folder does not say."""
        before, now = self.folder.status.get("code", {}), self.trial.code
        return sorted(module for module in before.keys() | now if before and before.get(module) != now.get(module))


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        state: how it ended, in a word; `elsewhere`: another process runs it.
        error: of a failed run, the error; of a diverged one, what was not finite.
    """

    state: Literal["finished", "interrupted", "failed", "diverged", "elsewhere"]
    error: str = ""


@runtime_checkable
class SweepCallback(Protocol):
    """Follows the jobs of a sweep. All calls come from one thread."""

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, rounds: int) -> None: ...

    def retried(self, job: Job, reason: str) -> None: ...

    def ended(self, job: Job, outcome: Outcome) -> None: ...


class CallbackList:
    """Several callbacks as one."""

    def __init__(self, *callbacks: SweepCallback) -> None:
        self.callbacks = callbacks

    def started(self, job: Job) -> None:
        for callback in self.callbacks:
            callback.started(job)

    def progressed(self, job: Job, rounds: int) -> None:
        for callback in self.callbacks:
            callback.progressed(job, rounds)

    def retried(self, job: Job, reason: str) -> None:
        for callback in self.callbacks:
            callback.retried(job, reason)

    def ended(self, job: Job, outcome: Outcome) -> None:
        for callback in self.callbacks:
            callback.ended(job, outcome)


C = TypeVar("C", bound=SweepCallback)


class Background(Generic[C]):
    """Passes all calls to another callback, one after another, in one thread. A `SweepCallback`.

    At the end of its `with` block it waits for the last call, and raises the first exception of the calls.

    Args:
        make: makes the other callback, in that thread.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sweep-callback")
        self.made = self.thread.submit(make)
        self.calls: list[Future[None]] = []

    def __enter__(self) -> "Background[C]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.shutdown()
        if error is None:
            for call in self.calls:
                call.result()

    def started(self, job: Job) -> None:
        self.call(lambda callback: callback.started(job))

    def progressed(self, job: Job, rounds: int) -> None:
        self.call(lambda callback: callback.progressed(job, rounds))

    def retried(self, job: Job, reason: str) -> None:
        self.call(lambda callback: callback.retried(job, reason))

    def ended(self, job: Job, outcome: Outcome) -> None:
        self.call(lambda callback: callback.ended(job, outcome))

    def call(self, function: Callable[[C], None]) -> None:
        """Call a function with the other callback, in its thread, after all calls before."""
        # Only calls that are still to come or raised something are kept.
        self.calls = [call for call in self.calls if not call.done() or call.exception()]
        self.calls.append(self.thread.submit(lambda: function(self.made.result())))


class Ticker(Callback):
    """Reports the number of finished rounds, at most twice a second.

    Args:
        tell: called with the number.
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.tell = tell
        self.told = monotonic()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        if monotonic() - self.told > 0.5:
            self.told = monotonic()
            self.tell(federation.t)


def check_folders(jobs: Iterable[Job]) -> None:
    """Read the run folder of every job, so that a damaged file appears before anything runs.

    Raises:
        Damaged: the first damaged file.
    """
    for job in jobs:
        job.folder.status  # noqa: B018
        job.folder.history()


def check(jobs: Iterable[Job]) -> None:
    """Build one trial of every kind, so that an error in the settings appears before anything runs.

    Raises:
        SettingError: a setting is not allowed; the first such setting counts.
    """
    seen = set()
    for job in jobs:
        if isinstance(job.trial, Analysis):
            continue
        kind = job.trial.model_copy(update={"seed": 0}).digest
        if kind not in seen:
            seen.add(kind)
            build(job.trial)


def conduct(analysis: Analysis, run: RunFolder) -> None:
    """Compute an analysis and write its run folder. `round` in its history is what the analysis runs over.

    Raises:
        SettingError: the analysis returns something else than numbers by round. Nothing but the failure is written.
    """
    if run.finished:
        return
    with run.running(analysis, device="cpu", threads=torch.get_num_threads()):
        run.metrics.unlink(missing_ok=True)  # of an interrupted computation
        for row in analysis.table().to_dict("records"):
            run.append({str(name): value for name, value in row.items()})


@free_cycles()  # Lightning's trainer is part of cycles that hold the models of all clients
def carry_out(
    trial: Trial | Analysis,
    folder: Path,
    tell: Callable[[int], None],
    stop: Callable[[], bool],
    checkpoint_every: timedelta = CHECKPOINT_EVERY,
) -> Outcome:
    """Run a trial, or compute an analysis, in its run folder.

    Args:
        trial: what is run.
        folder: its run folder.
        tell: called with the number of finished rounds, at most twice a second.
        stop: called after every round; whether to stop.
        checkpoint_every: time between two checkpoints.
    """
    run = RunFolder(folder)
    try:
        if isinstance(trial, Analysis):
            conduct(trial, run)
        else:
            result = simulate(
                trial, folder=folder, callbacks=[Ticker(tell)], stop=stop, checkpoint_every=checkpoint_every
            )
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
    except Exception as error:
        if not run.error_file.exists():  # the run failed before it started
            run.fail(run.error(error), traceback.format_exc(), trial)
        return Outcome("failed", f"{contributed_line(error)}{run.error(error)}")
    return Outcome("finished")


def run_inline(jobs: Iterable[Job], callback: SweepCallback, checkpoint_every: timedelta = CHECKPOINT_EVERY) -> None:
    """Run one job after another in this process, with all its threads. A job that fails does not stop the others.

    After SIGINT or SIGTERM the running trial saves a checkpoint, and no other trial starts.
    """
    with stop_requests() as requested:
        for job in jobs:
            if requested():
                return
            callback.started(job)
            tell = partial(callback.progressed, job)
            callback.ended(job, carry_out(job.trial, job.folder.path, tell, requested, checkpoint_every))
