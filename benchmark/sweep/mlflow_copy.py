"""Copies run folders to MLflow: when runs of a sweep end, and by `rollcall sync`.

An experiment has the same name in MLflow, and a run for each trial. A run is written whole, once its trial has ended.
"""

import json
import logging
import os
import posixpath
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from filelock import FileLock
from yaml import YAMLError

from rollcall.benchmark.config.digest import digest, flatten
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.text import command, counted
from rollcall.benchmark.federation.run_folder import RunFolder, run_folders
from rollcall.benchmark.sweep.run import file_of_runs

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

# MLflow reads these: the first when it is imported. Its own limits are minutes, and it prints two lines for each run.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

STORE, COMPLETE = "rollcall.store", "rollcall.complete"
"""Tags: the store of a copy; and, written last, when its folder was last written. A copy that was cut off lacks it."""

STATUS, FILES = "status", ("trial.yaml", "metrics.jsonl")
"""The artifacts that the leaderboard reads, as it reads a run folder. The first is status.json by another name: the
artifacts of a database are in the store, and are no run folders."""

OF_CLIENT = re.compile(r"/client\d+(/|$)")
"""How the names of metrics of single clients end. They are in the file only, since there may be thousands."""


def address(store: Path) -> str:
    """The address in MLFLOW_TRACKING_URI; by default that of a SQLite file in the store."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{store.resolve() / 'mlflow.db'}".replace("%", "%25")


def shown(uri: str) -> str:
    """An address without its password."""
    return re.sub(r"//[^@/]*@", "//", uri)


def connect(uri: str) -> "MlflowClient":
    """A client of the server or database. MLflow, SQLAlchemy and the network raise errors of many kinds."""
    from mlflow import MlflowClient
    from sqlalchemy import create_engine, inspect

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)  # it would log every table of a new database
    if "sql" in uri.partition(":")[0]:
        inspect(create_engine(uri)).get_table_names()  # of a database that is away MLflow asks for two minutes
    return MlflowClient(uri)


def runs_of(client: "MlflowClient", experiment_id: str, condition: str = "") -> "list[Run]":
    """The runs of an experiment, oldest first; 50,000 at most, which MLflow gives at once."""
    return list(client.search_runs([experiment_id], condition, max_results=50_000, order_by=["start_time"]))


def allowed(name: str) -> str:
    """The name of a metric or setting in MLflow: the same, but `_` for each sign that MLflow does not take."""
    return posixpath.normpath(re.sub(r"[^\w\-. /]", "_", name)).lstrip("./") or "_"


def _is_gone(location: str) -> bool:
    """Whether a place of artifacts is a folder that is not there. One of a server is no file."""
    return location.startswith("file:") and not Path(url2pathname(urlsplit(location).path)).is_dir()


class Mirror:
    """The copy of an experiment, whose run folders are in a folder of this name in the store."""

    def __init__(self, store: Path, experiment: str) -> None:
        self.store, self.experiment, self.written, self.down = store, experiment, 0, False
        self.lock = FileLock(store / "mlflow.lock")  # two processes must neither create a database nor write a run
        self.client: MlflowClient | None = None
        self.lines: set[str] = set()

    def look(self, table: Callable[[], str] | None = None) -> None:
        """Copy the runs that have ended and are not there as they are now, and at the end a table in Markdown.

        A server that does not answer costs a line, and is left alone afterwards.
        """
        if self.down:
            return
        try:
            client = self.client = self.client or self._open()
            for path in run_folders(self.store / self.experiment, below=False):
                self._copy(RunFolder(path), client)
            if table is not None:
                if text := table():  # else the file of the experiment is on another machine
                    client.set_experiment_tag(self.id, "mlflow.note.content", text[:20_000])
                self._tell(f"{self.experiment}: {counted(self.written, 'run')} copied to {shown(address(self.store))}")
        except Exception as error:  # see `connect`
            self.down = True
            told = reason(error)
            is_broken = any(text in told for text in ("not a database", "no such table", "malformed"))
            own = not os.environ.get("MLFLOW_TRACKING_URI")
            first = f"delete {self.store / 'mlflow.db'}, then " if is_broken and own else ""
            self._tell(
                f"MLflow cannot be updated ({told}). Results are in the run folders. To copy them: "
                f"{first}{command('sync', store=self.store)}"
            )

    def _tell(self, line: str) -> None:
        if line not in self.lines:
            print(line, file=sys.stderr)
        self.lines.add(line)

    def _open(self) -> "MlflowClient":
        """Connect; read what is there, and the labels of trials, as far as the experiment's file says them."""
        with self.lock:
            client = connect(address(self.store))
            known = client.get_experiment_by_name(self.experiment)
            if known and known.lifecycle_stage == "deleted":
                client.restore_experiment(known.experiment_id)
            # A server has a place of its own for artifacts; those of a database are in the store.
            of_database = "sql" in address(self.store).partition(":")[0]
            artifacts = (self.store / "artifacts").resolve().as_uri() if of_database else None
            if known and known.artifact_location != artifacts and _is_gone(known.artifact_location):  # a moved store
                client.rename_experiment(known.experiment_id, f"{self.experiment} {known.experiment_id}")
                known = None
            self.id = known.experiment_id if known else client.create_experiment(self.experiment, artifacts)
        tags = [run.data.tags for run in runs_of(client, self.id)]
        copies = [own for own in tags if COMPLETE in own]
        self.there = {own["rollcall.trial"]: own[COMPLETE] for own in copies}
        others = [own for own in copies if own.get(STORE) != str(self.store.resolve())]
        self.finished = {own["rollcall.trial"]: int(own.get("rollcall.finished", 0)) for own in others}
        self.labels: dict[str, dict[str, str]] = {}
        with suppress(OSError, ValueError, KeyError, SettingError):  # the file may be gone or changed
            experiment = Experiment.read(file_of_runs(self.store / self.experiment) or self.experiment)
            self.labels = {point.digest: dict(point.labels) for point in grid_points(experiment)}
        return client

    def _copy(self, folder: RunFolder, client: "MlflowClient") -> None:
        """Copy a run folder if need be; tell the user of one that cannot be copied."""
        from mlflow.exceptions import MlflowException

        try:
            status = folder.status
            run = status["digest"]
            longer = self.finished.get(run, 0) > folder.finished  # from another store of the same server
            if folder.state_now != "running" and self.there.get(run) != str(status["updated"]) and not longer:
                if fault := folder.altered() or folder.altered_settings():
                    raise SettingError(fault)
                self._write(folder, status, client)
                self.there[run] = str(status["updated"])
                self.finished.pop(run, None)  # the copy is of this store now
                self.written += 1
        except (SettingError, FileNotFoundError, ValueError, KeyError, YAMLError, MlflowException) as error:
            if getattr(error, "error_code", "INVALID_PARAMETER_VALUE") != "INVALID_PARAMETER_VALUE":
                raise
            self._tell(f"not copied to MLflow: {folder.path}: {reason(error)}")

    def _write(self, folder: RunFolder, status: dict[str, Any], client: "MlflowClient") -> None:
        from mlflow.entities import Metric, Param

        tags, spec = folder.origin(self.experiment)
        labels = self.labels.get(status["digest"], {})
        cell = ", ".join(label for label in labels.values() if label)  # its runs differ in the seed alone
        tags["cell"] = cell or f"{tags['algorithm']} {digest(spec | {'seed': 0})[:6]}"
        tags |= {"panel": labels.get("panel", ""), STORE: str(self.store.resolve())}
        start, end = (int(1000 * (status["updated"] - seconds)) for seconds in (status["seconds"], 0))  # milliseconds
        params = [Param(allowed(key), text) for key, text in flatten(spec).items()]
        history = folder.history().set_index("round").astype(float)
        for name in (name for name in map(str, history) if allowed(name) != name):
            self._tell(f"MLflow does not take the name {name}; there it is {allowed(name)}")
        points = [
            Metric(allowed(str(name)), value, end, int(t))
            for name, curve in history.items()
            if not OF_CLIENT.search(str(name))
            for t, value in zip(history.index[curve.notna()], curve.dropna(), strict=True)
        ]
        with self.lock:
            for old in runs_of(client, self.id, f"tags.`rollcall.trial` = '{status['digest']}'"):
                client.delete_run(old.info.run_id)
            run = client.create_run(self.id, start, tags, f"{tags['cell']}, seed {tags['seed']}").info.run_id
            client.log_batch(run, points, params)
            client.log_text(run, json.dumps(status), STATUS)
            for file in (*FILES, "source", "model.npz", "error.txt"):
                if (folder.path / file).exists():
                    client.log_artifact(run, str(folder.path / file))
            # MLflow has no state for divergence; the tag `rollcall.state` says it.
            states = {"finished": "FINISHED", "interrupted": "KILLED"}
            client.set_terminated(run, states.get(folder.state_now, "FAILED"), end)
            client.set_tag(run, COMPLETE, str(status["updated"]))


def reason(error: Exception) -> str:
    """An error in a line; SQLAlchemy's messages have many."""
    return str(error).partition("\n")[0]
