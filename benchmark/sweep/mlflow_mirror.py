"""Copy run folders to MLflow: parameters, tags, the metrics of every evaluation, and trial.yaml as an artifact.

Only one process writes, and always from the run folders. So workers need no MLflow, no two processes write the SQLite
file, and the same code copies the runs of other machines.
"""

import logging
import os
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import yaml

from benchmark.config.digest import flatten
from benchmark.federation.run_folder import RunFolder

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from benchmark.sweep.jobs import Job, Outcome

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # MLflow reads this when it is imported

MLFLOW_STATES = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
"""MLflow's names for the states of a run folder."""

INTERVAL = 10.0
"""Seconds between two pushes of a trial that is still running."""


def client(store: Path) -> "MlflowClient":
    """A client of the server that MLFLOW_TRACKING_URI names, by default of a SQLite file in the store."""
    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it would log every table of a new database
    store.mkdir(parents=True, exist_ok=True)
    return MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{store.resolve() / 'mlflow.db'}")


class Mirror:
    """Copies the run folders of a sweep to MLflow while it runs. A `SweepCallback`.

    Args:
        store: folder of the run folders.
        experiment: its name in MLflow, where it is created if need be.
    """

    def __init__(self, store: Path, experiment: str) -> None:
        self.client = client(store)
        self.experiment = experiment
        found = self.client.get_experiment_by_name(experiment)
        if found is None:
            # Beside a local database; a server has a place of its own for artifacts.
            artifacts = None if os.environ.get("MLFLOW_TRACKING_URI") else (store / "artifacts").resolve().as_uri()
            self.id = self.client.create_experiment(experiment, artifact_location=artifacts)
        else:
            self.id = found.experiment_id
        self.pushed: dict[Path, float] = {}

    def started(self, job: "Job") -> None:
        self.pushed[job.folder.path] = monotonic()

    def progressed(self, job: "Job", rounds: int) -> None:
        if monotonic() - self.pushed[job.folder.path] > INTERVAL:
            self._try_to_push(job.folder)
            self.pushed[job.folder.path] = monotonic()

    def ended(self, job: "Job", outcome: "Outcome") -> None:
        self._try_to_push(job.folder)

    def _try_to_push(self, folder: RunFolder) -> None:
        # A server that is down must not end a sweep: all is in the folder, for `rollcall sync`.
        try:
            self.push(folder)
        except Exception as error:
            print(
                f"MLflow could not be updated with {folder.path.name} ({error}). Later, run: rollcall sync",
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
            run = self.client.create_run(
                self.id, run_name=status["name"], tags=_tags(self.experiment, settings, status)
            )
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
            tags = {"rollcall.round": str(int(new["round"].iloc[-1])), "rollcall.seconds": str(status["seconds"])}
            self.client.log_batch(run.info.run_id, tags=[RunTag(key, value) for key, value in tags.items()])
        if folder.finished and run.data.tags.get("rollcall.finished") != str(folder.finished):
            self.client.set_tag(run.info.run_id, "rollcall.finished", str(folder.finished))
        if status["state"] == "running":
            self.client.update_run(run.info.run_id, "RUNNING")
        else:
            self.client.set_terminated(run.info.run_id, MLFLOW_STATES[status["state"]])

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
        folders.setdefault(str(status.parent.parent.relative_to(store)), []).append(status.parent)
    counts = {}
    for experiment, paths in folders.items():
        if not experiments or experiment in experiments:
            mirror = Mirror(store, experiment)
            for path in paths:
                mirror.push(RunFolder(path))
            counts[experiment] = len(paths)
    return counts


def _tags(experiment: str, settings: dict[str, str], status: dict[str, Any]) -> dict[str, str]:
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
