"""Copy run folders to MLflow: parameters, tags, the metrics of every evaluation, and trial.yaml as an artifact.

Only one process writes, and always from the run folders. So workers need no MLflow, no two processes write the SQLite
file, and the same code copies the runs of other machines.
"""

import os
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import yaml

from benchmark.config.digest import flatten
from benchmark.federation.run_files import Damaged
from benchmark.federation.run_folder import RunFolder
from benchmark.sweep.mlflow_client import client, experiment_id, probe

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job, Outcome

MLFLOW_STATES = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED", "diverged": "FAILED"}
"""MLflow's names for the states of a run folder. It has none for divergence; the tag `rollcall.state` says it."""

LONGEST_TAG = 5000
"""Characters that MLflow takes in a tag."""

INTERVAL = 10.0
"""Seconds between two pushes of a trial that is still running."""

PAUSE = 30.0
"""Seconds without a push after one that failed."""


def connected(store: Path, experiment: str) -> "Mirror | None":
    """A mirror; None, with a warning, if MLflow does not answer."""
    try:
        return Mirror(store, experiment)
    except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
        print(
            f"MLflow: {' '.join(str(error).split())}. Results are in the run folders only. Later, run: rollcall sync",
            file=sys.stderr,
        )
        return None


class Mirror:
    """Copies the run folders of a sweep to MLflow while it runs. A `SweepCallback`.

    Args:
        store: folder of the run folders.
        experiment: its name in MLflow, where it is created if need be.
    """

    def __init__(self, store: Path, experiment: str) -> None:
        self.client = client(store)
        self.experiment = experiment
        self.id = experiment_id(self.client, store, experiment)
        self.pushed: dict[Path, float] = {}
        self.missed: dict[Path, RunFolder] = {}
        self.pause_ends = 0.0

    def started(self, job: "Job") -> None:
        self.pushed[job.folder.path] = monotonic()

    def progressed(self, job: "Job", rounds: int) -> None:
        if monotonic() - self.pushed[job.folder.path] > INTERVAL:
            self._try_to_push(job.folder)
            self.pushed[job.folder.path] = monotonic()

    def retried(self, job: "Job", reason: str) -> None:
        """The retry is a part of the same run."""

    def ended(self, job: "Job", outcome: "Outcome") -> None:
        if outcome.state != "elsewhere":  # the other process pushes it
            self._try_to_push(job.folder)

    def _try_to_push(self, folder: RunFolder) -> None:
        # A server that is down must not end or slow a sweep: all is in the folder, for a later push or `rollcall sync`.
        self.missed[folder.path] = folder
        if monotonic() < self.pause_ends:
            return
        try:
            probe(os.environ.get("MLFLOW_TRACKING_URI", ""))
            for path, waiting in list(self.missed.items()):
                self.push(waiting)
                del self.missed[path]
        except Exception as error:
            self.pause_ends = monotonic() + PAUSE
            print(
                f"MLflow could not be updated with {folder.path.name} ({_reason(error)}). Later, run: rollcall sync",
                file=sys.stderr,
            )

    def push(self, folder: RunFolder) -> None:
        """Copy to MLflow what it does not have yet of a run folder."""
        from mlflow.entities import Metric, Param, RunTag

        status = folder.status
        if not status:
            return
        run = self._run(status["digest"], status["name"])
        if run is not None and run.data.tags.get("rollcall.code", code := _code(status)) != code:
            self.client.delete_run(run.info.run_id)  # it was run again with other code of the suite
            run = None
        if run is None:
            settings = flatten(yaml.safe_load((folder.path / "trial.yaml").read_text()))
            run = self.client.create_run(self.id, run_name=status["name"], tags=tags(self.experiment, settings, status))
            # Parameters never change in MLflow, and a run can grow: its rounds are a tag.
            params = [Param(key, value) for key, value in settings.items() if key != "rounds"]
            self.client.log_batch(run.info.run_id, params=params)
        if run.data.tags.get("rollcall.rounds") != str(status["rounds"]):
            self.client.set_tag(run.info.run_id, "rollcall.rounds", str(status["rounds"]))
            self.client.log_artifact(run.info.run_id, str(folder.path / "trial.yaml"))
            if (folder.path / "source").is_dir():
                self.client.log_artifacts(run.info.run_id, str(folder.path / "source"), "source")
        history = folder.history()
        new = history[history["round"] > float(run.data.tags.get("rollcall.round", -1))]
        now = int(status["updated"] * 1000)
        metrics = [
            Metric(str(name), float(value), now, int(row["round"]))
            for _, row in new.iterrows()
            for name, value in row.drop("round").dropna().items()
        ]
        for start in range(0, len(metrics), 1000):  # as many as MLflow takes in one call
            self.client.log_batch(run.info.run_id, metrics=metrics[start : start + 1000])
        if len(new):
            last = {"rollcall.round": str(int(new["round"].iloc[-1])), "rollcall.seconds": str(status["seconds"])}
            self.client.log_batch(run.info.run_id, tags=[RunTag(key, value) for key, value in last.items()])
        if folder.finished and run.data.tags.get("rollcall.finished") != str(folder.finished):
            self.client.set_tag(run.info.run_id, "rollcall.finished", str(folder.finished))
        self._push_state(run, folder)
        if status["state"] == "running":
            self.client.update_run(run.info.run_id, "RUNNING")
        else:
            self.client.set_terminated(run.info.run_id, MLFLOW_STATES[status["state"]])

    def _push_state(self, run: Any, folder: RunFolder) -> None:
        """Tags of the state, and of a failed run the error and its traceback."""
        status, tags = folder.status, {}
        tags["rollcall.state"] = status["state"]
        if status.get("diverged") is not None:
            tags["rollcall.diverged"] = str(status["diverged"])
        if status["state"] == "failed":
            tags["rollcall.error"] = status.get("error", "")[:LONGEST_TAG]
            if folder.error_file.exists():
                self.client.log_artifact(run.info.run_id, str(folder.error_file))
        for name in ("rollcall.diverged", "rollcall.error"):
            if name in run.data.tags and name not in tags:  # of an earlier start
                self.client.delete_tag(run.info.run_id, name)
        for name, value in tags.items():
            if run.data.tags.get(name) != value:
                self.client.set_tag(run.info.run_id, name, value)

    def _run(self, digest: str, name: str) -> Any:
        runs = self.client.search_runs([self.id], f"tags.`rollcall.trial` = '{digest}'")
        return next((run for run in runs if run.info.run_name == name), None)


def sync(store: Path, experiments: list[str]) -> dict[str, int]:
    """Copy the run folders of these experiments, or of all experiments in the store, to MLflow.

    Returns:
        the number of run folders by experiment.
    """
    folders: dict[str, list[Path]] = {}
    for status in sorted(store.rglob("status.json")):
        if ".damaged" in status.parent.name:  # set aside by `rollcall doctor`
            continue
        folders.setdefault(str(status.parent.parent.relative_to(store)), []).append(status.parent)
    counts = {}
    for experiment, paths in folders.items():
        if not experiments or experiment in experiments:
            mirror = Mirror(store, experiment)
            counts[experiment] = len(paths)
            for path in paths:
                try:
                    mirror.push(RunFolder(path))
                except Damaged as error:
                    print(error, file=sys.stderr)
                    counts[experiment] -= 1
    return counts


def _reason(error: Exception) -> str:
    """An error in a line; SQLAlchemy's messages have many."""
    text = str(error)
    return "the disk is full" if "disk is full" in text else text.partition("\n")[0]


def tags(experiment: str, settings: dict[str, str], status: dict[str, Any]) -> dict[str, str]:
    """Tags to search runs by, and their provenance. The tag `algorithm` of an analysis is the name of the analysis."""
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
        "rollcall.code": _code(status),
    }


def _code(status: dict[str, Any]) -> str:
    """The digests of the suite's modules that a run was computed by, as one text."""
    return " ".join(f"{module}={digest}" for module, digest in status.get("code", {}).items())
