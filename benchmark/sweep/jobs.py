"""What is to be run where, who watches it, and how it is run without Ray."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol, runtime_checkable

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark.config.analysis import Analysis
from benchmark.config.trial import Trial
from benchmark.federation.build import build
from benchmark.federation.interruption import Interrupted, stop_requests
from benchmark.federation.module import Federation
from benchmark.federation.run_folder import RunFolder
from benchmark.federation.simulation import simulate


@dataclass(frozen=True)
class Job:
    """A trial or an analysis of an experiment, and the folder it is run in."""

    trial: Trial | Analysis
    experiment: str
    store: Path

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.store / self.experiment / self.trial.name)

    @property
    def finished(self) -> bool:
        """Whether its folder has all rounds that are asked for; it may have more."""
        return self.folder.finished >= self.trial.rounds


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        state: in a word.
        error: what went wrong, where it failed.
    """

    state: Literal["finished", "interrupted", "failed"]
    error: str = ""


@runtime_checkable
class SweepCallback(Protocol):
    """Whoever wants to know how a run goes on. It is told from one thread."""

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, rounds: int) -> None: ...

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

    def ended(self, job: Job, outcome: Outcome) -> None:
        for callback in self.callbacks:
            callback.ended(job, outcome)


class Ticker(Callback):
    """Tells the number of rounds done, at most every half second.

    Args:
        tell: is called with it.
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.tell = tell
        self.told = monotonic()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        if monotonic() - self.told > 0.5:
            self.told = monotonic()
            self.tell(federation.t)


def check(jobs: Iterable[Job]) -> None:
    """Build one trial of every kind, so that a setting which cannot be is known before anything runs or is written.

    Raises:
        SettingError: the first such setting.
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
    """Compute an analysis and write its run folder; `round` in its history is what the analysis runs over."""
    if run.finished:
        return
    with run.running(analysis, device="cpu", threads=torch.get_num_threads()):
        (run.path / "metrics.jsonl").unlink(missing_ok=True)  # of one that was stopped
        for row in analysis.analysis.build(analysis.seed).to_dict("records"):
            run.append({str(name): value for name, value in row.items()})


def carry_out(trial: Trial | Analysis, folder: Path, tell: Callable[[int], None], stop: Callable[[], bool]) -> Outcome:
    """Run a trial or conduct an analysis, in its folder.

    Args:
        trial: what is run.
        folder: its run folder.
        tell: is called with the number of rounds done, now and then.
        stop: whether to stop, asked after every round.
    """
    try:
        if isinstance(trial, Analysis):
            conduct(trial, RunFolder(folder))
        else:
            simulate(trial, folder=folder, callbacks=[Ticker(tell)], stop=stop)
    except Interrupted:
        return Outcome("interrupted")
    except Exception as error:
        return Outcome("failed", f"{type(error).__name__}: {error}")
    return Outcome("finished")


def run_inline(jobs: Iterable[Job], callback: SweepCallback) -> None:
    """One trial after another in this process, on all its threads; one that fails does not stop the others.

    After SIGINT or SIGTERM the trial that is running saves a checkpoint, and no other one begins.
    """
    with stop_requests() as requested:
        for job in jobs:
            if requested():
                return
            callback.started(job)
            callback.ended(job, carry_out(job.trial, job.folder.path, partial(callback.progressed, job), requested))
