"""Copy run folders to MLflow while a sweep runs (`Mirror`), or afterwards (`sync`).

An experiment is a parent run in MLflow, and below it a run for each trial (`Runs`). The driver writes, one process of a
store at a time, and always from the run folders. So workers need no MLflow, two terminals write nothing twice, and the
same code copies the runs of other machines.
"""

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from yaml import YAMLError

from rollcall.benchmark.config.digest import flatten
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import command, counted, parsed
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, run_folders
from rollcall.benchmark.sweep.mlflow_client import client, experiment_id, locked, probe

MLFLOW_STATES = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED", "diverged": "FAILED"}
"""MLflow's names for the states of a run folder. It has none for divergence; the tag `rollcall.state` says it."""

LONGEST_TAG = 5000
"""Characters that MLflow takes in a tag."""

METRICS_AT_ONCE = 900
"""MLflow takes 1000 metrics, parameters and tags in one call."""

PARENT = "rollcall.parent"
"""The tag of a parent run: its name. Runs of trials have the tag `rollcall.trial` instead."""

INTERVAL = 10.0
"""Seconds between two looks at the run folders of a sweep."""


class Runs:
    """Writes the run folders of an experiment, which is created in MLflow if need be.

    Raises:
        ConnectionError: the server does not answer. MLflow and SQLAlchemy raise further errors.
    """

    def __init__(self, store: Path, experiment: str) -> None:
        self.store = store
        self.client = client(store)
        self.experiment = experiment
        self.id = experiment_id(self.client, store, experiment)

    @cached_property
    def parent(self) -> str:
        """The id of the run that all trials are nested in. It is created if need be; later sweeps continue it."""
        for run in self.client.search_runs([self.id], f"tags.`{PARENT}` = '{self.experiment}'", max_results=1):
            return str(run.info.run_id)
        tags = {PARENT: self.experiment}
        return str(self.client.create_run(self.id, run_name=self.experiment, tags=tags).info.run_id)

    def begin(self) -> None:
        """Mark the parent run as running."""
        self.client.update_run(self.parent, "RUNNING")

    def end(self, state: str, tables: Callable[[Path], None] | None = None) -> None:
        """End the parent run; `tables` writes files into a folder, which become its artifacts."""
        if tables is not None:
            with TemporaryDirectory() as folder:
                tables(Path(folder))
                self.client.log_artifacts(self.parent, folder)
        self.client.set_terminated(self.parent, MLFLOW_STATES[state])

    def push(self, folder: RunFolder, state: str = "") -> None:
        """Copy to MLflow what it does not have yet of a run folder. Two processes may push the same folder.

        A trial that has not started is left out. By default its state is as status.json says.
        """
        status = folder.status
        if status:
            with locked(self.store):
                self._push(folder, status, state or status["state"])

    def _push(self, folder: RunFolder, status: dict[str, Any], state: str) -> None:
        from mlflow.entities import Metric, Param, RunTag

        settings = flatten(parsed((folder.path / "trial.yaml").read_text(encoding="utf-8")))
        run = self._run(settings, status)
        known, run_id = run.data.tags, run.info.run_id
        if known.get("rollcall.rounds") != str(status["rounds"]):
            self.client.log_artifact(run_id, str(folder.path / "trial.yaml"))
            if (folder.path / "source").is_dir():
                self.client.log_artifacts(run_id, str(folder.path / "source"), "source")
        new_files = ["error.txt"] if state == "failed" else []
        if folder.finished and known.get("rollcall.finished") != str(folder.finished):
            new_files += ["model.npz", "buffers.npz"]
        for file in (folder.path / name for name in new_files):
            if file.exists():
                self.client.log_artifact(run_id, str(file))
        history = folder.history()
        new = history[history["round"] > float(known.get("rollcall.round", -1))]
        time = int(status["updated"] * 1000)  # in milliseconds, as MLflow wants it
        metrics = [
            Metric(str(name), value, time, int(row["round"]))
            for row in new.to_dict("records")
            for name, value in row.items()
            if name != "round" and not math.isnan(value)
        ]
        while len(metrics) > METRICS_AT_ONCE:
            self.client.log_batch(run_id, metrics=metrics[:METRICS_AT_ONCE])
            metrics = metrics[METRICS_AT_ONCE:]
        # Without parameters the server stopped in between. They never change, and a run can grow: its rounds are a tag.
        params = [] if run.data.params else [Param(*setting) for setting in settings.items() if setting[0] != "rounds"]
        now = {"rollcall.rounds": str(status["rounds"]), "rollcall.state": state}
        if len(new):
            now |= {"rollcall.round": str(int(new["round"].iloc[-1])), "rollcall.seconds": str(status["seconds"])}
        if folder.finished:
            now["rollcall.finished"] = str(folder.finished)
        if status.get("diverged") is not None:
            now["rollcall.diverged"] = str(status["diverged"])
        if state == "failed":
            now["rollcall.error"] = status.get("error", "")[:LONGEST_TAG]
        for name in ("rollcall.diverged", "rollcall.error"):
            if name in known and name not in now:  # of an earlier start
                self.client.delete_tag(run_id, name)
        # Together with the last metrics, so that a crash in between does not write them twice.
        changed = [RunTag(name, value) for name, value in now.items() if known.get(name) != value]
        self.client.log_batch(run_id, metrics=metrics, params=params, tags=changed)
        if state == "running":
            self.client.update_run(run_id, "RUNNING")
        else:
            self.client.set_terminated(run_id, MLFLOW_STATES[state])

    def _run(self, settings: dict[str, str], status: dict[str, Any]) -> Any:
        """The run of a trial. It is created if need be, also where other code of the suite computed it before."""
        from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

        named = tags(self.experiment, settings, status)
        for run in self.client.search_runs([self.id], f"tags.`rollcall.trial` = '{status['digest']}'"):
            if run.info.run_name == status["name"]:
                if run.data.tags.get("rollcall.code", named["rollcall.code"]) == named["rollcall.code"]:
                    return run
                self.client.delete_run(run.info.run_id)
        named[MLFLOW_PARENT_RUN_ID] = self.parent
        return self.client.create_run(self.id, run_name=status["name"], tags=named)


def tags(experiment: str, settings: dict[str, str], status: dict[str, Any]) -> dict[str, str]:
    """Tags to search runs by, and their provenance. The tag `algorithm` of an analysis is the name of the analysis."""
    code, sources = (
        " ".join(f"{name}={digest}" for name, digest in status.get(key, {}).items()) for key in ("code", "sources")
    )
    return {
        "experiment": experiment,
        "algorithm": settings.get("algorithm", settings.get("analysis", "")).rpartition(":")[2],
        "participation": settings.get("participation", ""),
        "task": settings.get("task", ""),
        "seed": settings["seed"],
        "commit": str(status["commit"]),
        "version": status["versions"]["rollcall"],
        "device": status["device"],
        "threads": str(status["threads"]),
        "machine": str(status.get("machine", "unknown")),
        "rollcall.trial": status["digest"],
        "rollcall.code": code,
        "rollcall.sources": sources,
    }


class Mirror:
    """Copies the run folders of a sweep to MLflow while it runs.

    A server that does not answer neither ends nor slows the sweep: everything is in the run folders. What was missed is
    copied once the server answers again. Of the folders, those that change from now on are copied.
    """

    def __init__(self, store: Path, experiment: str, folders: Iterable[RunFolder] = ()) -> None:
        self.store = store
        self.experiment = experiment
        self.runs: Runs | None = None
        self.copied = {folder: folder.changed for folder in folders}
        self.down = False

    def look(self, then: Callable[[Runs], None] = Runs.begin) -> None:
        """Copy the folders that have changed, and then mark the parent run."""
        changed = {folder: folder.changed for folder in self.copied}
        folders = [folder for folder, time in changed.items() if time != self.copied[folder]]
        try:
            probe(os.environ.get("MLFLOW_TRACKING_URI", ""))
            self.runs = self.runs or Runs(self.store, self.experiment)
            if self.down:
                print(f"MLflow answers again. Now copied: {counted(len(folders), 'run folder')}", file=sys.stderr)
                self.down = False
            for folder in folders:
                with _told_of(folder):
                    self.runs.push(folder)
                self.copied[folder] = changed[folder]
            then(self.runs)
        except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
            if not self.down:
                print(
                    f"MLflow cannot be updated ({reason(error)}). Results are in the run folders. They are copied "
                    f"when it answers again; after the sweep, run: {command('sync', store=self.store)}",
                    file=sys.stderr,
                )
            self.down = True

    def end(self, state: str, tables: Callable[[Path], None] | None = None) -> None:
        """Copy the folders that are still missing, and end the parent run; see `Runs.end`."""
        self.look(lambda runs: runs.end(state, tables))


def sync(store: Path, experiments: list[str], tables: Callable[[str, Path], None]) -> dict[str, int]:
    """Copy the run folders of these experiments, or else of all in the store, to MLflow; returns their numbers.

    `tables` writes the files of an experiment into a folder; they become artifacts of its parent run.
    """
    folders: dict[str, list[RunFolder]] = {}
    for path in run_folders(store):
        folders.setdefault(str(path.parent.relative_to(store)), []).append(RunFolder(path))
    for name in experiments:
        if name not in folders:
            listed = ", ".join(folders) or "no experiment"
            raise SettingError(f"experiment: {name!r} is not allowed; {store} has runs of {listed}")
    counts: dict[str, int] = {}
    for experiment in experiments or folders:
        runs, states = Runs(store, experiment), []
        for folder in folders[experiment]:
            with _told_of(folder):
                state = folder.state_now
                runs.push(folder, state)
                states.append(state)
        counts[experiment] = len(states)
        if "running" not in states:
            state = next((state for state in ("failed", "interrupted") if state in states), "finished")
            runs.end(state, partial(tables, experiment))
    return counts


@contextmanager
def _told_of(folder: RunFolder) -> Iterator[None]:
    """Tell the user of a folder that cannot be copied, if the folder and not MLflow is the reason."""
    try:
        yield
    except Exception as error:
        refused = getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE"  # such as a tag that is too long
        if not refused and not isinstance(error, Damaged | SettingError | FileNotFoundError | KeyError | YAMLError):
            raise
        print(f"not copied to MLflow: {folder.path}: {reason(error)}", file=sys.stderr)


def reason(error: Exception) -> str:
    """An error in a line; SQLAlchemy's messages have many."""
    text = str(error)
    return "the disk is full" if "disk is full" in text else text.partition("\n")[0]
