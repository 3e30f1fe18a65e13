"""Trials through Ray Tune: as many at once as there are cores or shares of GPUs, on one machine or a cluster.

One Tune trial is one whole federated run in one process.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

# Read when Ray is imported: no usage statistics, no second progress table, no result files beside our run folders, and
# no GPU in sight of a trial that asked for none (all would crowd on it).
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_AIR_NEW_OUTPUT="0",
    TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="1",
)

import ray
import torch
from ray import tune

from benchmark.jobs import Job, Watcher, carry_out
from benchmark.plan import read
from tasks.datasets import root


def run_ray(jobs: Sequence[Job], watcher: Watcher, gpus_per_trial: float = 0.0) -> None:
    """All jobs, one core and one torch thread each; one that fails does not stop the others.

    Connects to the cluster that RAY_ADDRESS names; otherwise uses this machine. The store must be visible to all.

    Args:
        jobs: what to run.
        watcher: told here, in the driver.
        gpus_per_trial: the share of a GPU that each trial gets; 0.25 puts four on one.
    """
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
    try:
        # Tune insists on a place for its own bookkeeping; ours is the run folder.
        with TemporaryDirectory(prefix="rollcall-tune-") as bookkeeping:
            tune.Tuner(
                tune.with_resources(_trainable, {"cpu": 1, "gpu": gpus_per_trial}),
                param_space={
                    "job": tune.grid_search(list(range(len(jobs)))),
                    "specs": [job.trial.spec(np.asarray) for job in jobs],
                    "folders": [str(job.folder.path.resolve()) for job in jobs],
                    "data": str(root().resolve()),
                },
                # A fresh process would import torch anew for every trial.
                tune_config=tune.TuneConfig(reuse_actors=True),
                run_config=tune.RunConfig(
                    name="rollcall", storage_path=bookkeeping, verbose=0, callbacks=[_Relay(jobs, watcher)]
                ),
            ).fit()
    finally:
        ray.shutdown()


def _trainable(config: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    os.environ["ROLLCALL_DATA"] = config["data"]  # a worker has a working directory of its own
    trial, folder = read(config["specs"][config["job"]]), config["folders"][config["job"]]
    error = None
    try:
        carry_out(trial, Path(folder), lambda rounds: tune.report({"rounds": rounds, "error": None}))
    except Exception as raised:  # an answer like any other: Tune need not write it up
        error = f"{type(raised).__name__}: {raised}"
    tune.report({"rounds": trial.rounds, "error": error})


class _Relay(tune.Callback):
    """Hands on what Tune hears from its trials."""

    def __init__(self, jobs: Sequence[Job], watcher: Watcher) -> None:
        self.jobs = jobs
        self.watcher = watcher

    def __getstate__(self) -> dict[str, Any]:
        # Tune saves its callbacks for a resumption that we do not use; a live view cannot be saved.
        return {}

    def _job(self, trial: Any) -> Job:
        return self.jobs[trial.config["job"]]

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.watcher.started(self._job(trial))

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any) -> None:
        if result["error"] is None:
            self.watcher.progressed(self._job(trial), result["rounds"])

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.watcher.ended(self._job(trial), trial.last_result["error"])

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.watcher.ended(self._job(trial), "its process died")
