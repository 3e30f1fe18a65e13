"""What is to be run where, who watches it, and how it is run without Ray."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol, runtime_checkable

from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark.federation import Federation
from benchmark.folder import RunFolder
from benchmark.simulation import build, simulate
from benchmark.study import Study
from benchmark.trial import Trial


@dataclass(frozen=True)
class Job:
    """A trial or a study of an experiment, and the folder it is run in."""

    trial: Trial | Study
    experiment: str
    store: Path

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.store / self.experiment / self.trial.name)


@runtime_checkable
class Watcher(Protocol):
    """Whoever wants to know how a run goes on. It is told from one thread."""

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, rounds: int) -> None: ...

    def ended(self, job: Job, error: str | None) -> None: ...


class Everyone:
    """Several watchers as one."""

    def __init__(self, *watchers: Watcher) -> None:
        self.watchers = watchers

    def started(self, job: Job) -> None:
        for watcher in self.watchers:
            watcher.started(job)

    def progressed(self, job: Job, rounds: int) -> None:
        for watcher in self.watchers:
            watcher.progressed(job, rounds)

    def ended(self, job: Job, error: str | None) -> None:
        for watcher in self.watchers:
            watcher.ended(job, error)


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
        if isinstance(job.trial, Study):
            continue
        kind = job.trial.model_copy(update={"seed": 0}).digest
        if kind not in seen:
            seen.add(kind)
            build(job.trial)


def carry_out(trial: Trial | Study, folder: Path, tell: Callable[[int], None]) -> None:
    """Run a trial or conduct a study, in its folder.

    Args:
        trial: what is run.
        folder: its run folder.
        tell: is called with the number of rounds done, now and then.
    """
    if isinstance(trial, Study):
        trial.conduct(folder)
    else:
        simulate(trial, folder=folder, callbacks=[Ticker(tell)])


def run_inline(jobs: Iterable[Job], watcher: Watcher) -> None:
    """One trial after another in this process, on all its threads; one that fails does not stop the others."""
    for job in jobs:
        watcher.started(job)
        error = None
        try:
            carry_out(job.trial, job.folder.path, partial(watcher.progressed, job))
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        watcher.ended(job, error)
