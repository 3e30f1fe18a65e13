"""Copy run folders to MLflow while a sweep runs, or afterwards.

Only one process writes, and always from the run folders. So workers need no MLflow, no two processes write the SQLite
file, and the same code copies the runs of other machines.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from yaml import YAMLError

from benchmark.config.errors import SettingError
from benchmark.config.text import command, counted
from benchmark.federation.run_folder import Damaged, RunFolder, run_folders
from benchmark.sweep.mlflow_client import probe
from benchmark.sweep.mlflow_runs import Runs

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job, Outcome

INTERVAL = 10.0
"""Seconds between two pushes of a trial that is still running."""

PAUSE = 10.0
"""After a push that failed, no other is tried for so many times the seconds that it took."""


class Mirror:
    """Copies the run folders of a sweep to MLflow while it runs. A `SweepCallback`.

    A server that does not answer neither ends nor slows the sweep: everything is in the run folders. What was missed is
    copied once the server answers again.

    Args:
        store: folder of the run folders.
        experiment: its name in MLflow, where it is created if need be.
    """

    def __init__(self, store: Path, experiment: str) -> None:
        self.store = store
        self.experiment = experiment
        self.runs: Runs | None = None
        self.pushed: dict[Path, float] = {}
        self.missed: dict[Path, RunFolder] = {}
        self.down = False
        self.pause_ends = 0.0

    def begin(self) -> None:
        """Connect, and mark the parent run as running."""
        self._attempt(Runs.begin)

    def started(self, job: "Job") -> None:
        self.pushed[job.folder.path] = monotonic()

    def progressed(self, job: "Job", rounds: int) -> None:
        if monotonic() - self.pushed[job.folder.path] > INTERVAL:
            self._push(job.folder)
            self.pushed[job.folder.path] = monotonic()

    def retried(self, job: "Job", reason: str) -> None:
        """The retry is a part of the same run."""

    def ended(self, job: "Job", outcome: "Outcome") -> None:
        if outcome.state != "elsewhere":  # the other process pushes it
            self._push(job.folder)

    def end(self, state: str, tables: Callable[[Path], None] | None = None) -> None:
        """Copy what is still missing, and end the parent run.

        Args:
            state: of the sweep, as of a run folder.
            tables: writes files into a folder, which become artifacts of the parent run.
        """
        self._attempt(lambda runs: runs.end(state, tables))

    def _push(self, folder: RunFolder) -> None:
        self.missed[folder.path] = folder
        self._attempt(lambda _: None)

    def _attempt(self, action: Callable[[Runs], None]) -> None:
        """Do something in MLflow, after what was missed, unless the last attempt was a moment ago and failed."""
        start = monotonic()
        if start < self.pause_ends:
            return
        try:
            probe(os.environ.get("MLFLOW_TRACKING_URI", ""))
            if self.runs is None:
                self.runs = Runs(self.store, self.experiment)
            if self.down:
                self.runs.begin()
                print(f"MLflow answers again. Now copied: {counted(len(self.missed), 'run folder')}", file=sys.stderr)
                self.down = False
            self._push_missed(self.runs)
            action(self.runs)
        except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
            self._warn(error)
            self.pause_ends = monotonic() + PAUSE * (monotonic() - start)

    def _push_missed(self, runs: Runs) -> None:
        for path in list(self.missed):
            try:
                runs.push(self.missed[path])
            except Exception as error:
                if not _is_of_folder(error):
                    raise
                print(f"not copied to MLflow: {path}: {_reason(error)}", file=sys.stderr)
            del self.missed[path]

    def _warn(self, error: Exception) -> None:
        """Say once for each outage that MLflow cannot be updated."""
        if not self.down:
            print(
                f"MLflow cannot be updated ({_reason(error)}). Results are in the run folders. They are copied when it "
                f"answers again; after the sweep, run: {command('sync', store=self.store)}",
                file=sys.stderr,
            )
        self.down = True


def sync(store: Path, experiments: list[str], tables: Callable[[str, Path], None]) -> dict[str, int]:
    """Copy the run folders of these experiments, or of all experiments in the store, to MLflow.

    Args:
        store: folder of the run folders.
        experiments: their names; all if there is none.
        tables: writes the files of an experiment into a folder; they become artifacts of its parent run.

    Returns:
        the number of run folders by experiment.

    Raises:
        SettingError: an experiment has no run folder in the store.
    """
    counts, folders = {}, _folders(store)
    for name in experiments:
        if name not in folders:
            listed = ", ".join(folders) or "no experiment"
            raise SettingError(f"experiment: {name!r} is not allowed; {store} has runs of {listed}")
    for experiment, paths in folders.items():
        if experiments and experiment not in experiments:
            continue
        runs, states = Runs(store, experiment), []
        for folder in map(RunFolder, paths):
            try:
                state = folder.state_now
                runs.push(folder, state)
                states.append(state)
            except Exception as error:
                if not _is_of_folder(error):
                    raise
                print(f"not copied to MLflow: {folder.path}: {_reason(error)}", file=sys.stderr)
        counts[experiment] = len(states)
        if "running" not in states:
            state = next((state for state in ("failed", "interrupted") if state in states), "finished")
            runs.end(state, partial(tables, experiment))
    return counts


def _folders(store: Path) -> dict[str, list[Path]]:
    """The run folders of a store by experiment."""
    folders: dict[str, list[Path]] = {}
    for folder in run_folders(store):
        folders.setdefault(str(folder.parent.relative_to(store)), []).append(folder)
    return folders


def _is_of_folder(error: Exception) -> bool:
    """Whether a run folder, not MLflow, is the reason that the folder cannot be copied."""
    refused = getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE"  # such as a tag that is too long
    return refused or isinstance(error, Damaged | SettingError | FileNotFoundError | KeyError | YAMLError)


def _reason(error: Exception) -> str:
    """An error in a line; SQLAlchemy's messages have many."""
    text = str(error)
    return "the disk is full" if "disk is full" in text else text.partition("\n")[0]
