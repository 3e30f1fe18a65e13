"""Runs the trials of a search, with Ray or one after another, and mirrors them to MLflow if it is installed."""

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from rich.console import Console

from benchmark.federation.interruption import Interrupted
from benchmark.sweep.estimate import by_ray
from benchmark.sweep.jobs import CallbackList, Job, SweepCallback, run_inline
from benchmark.sweep.progress import View
from benchmark.sweep.ray_options import RayOptions


class Execution:
    """Runs jobs, some at a time. An `Execute`. In a `with` block Ray stays up between the calls.

    Args:
        executor: `ray` or `inline`.
        options: of Ray.
        console: for the progress; None for no output.
        mlflow: whether to mirror the run folders to MLflow.
    """

    def __init__(
        self, executor: Literal["ray", "inline"], options: RayOptions, console: Console | None, mlflow: bool
    ) -> None:
        self.executor = executor
        self.options = options
        self.console = console or Console(quiet=True)
        self.mlflow = mlflow and find_spec("mlflow") is not None
        self.uses_ray = False

    def __enter__(self) -> "Execution":
        return self

    def __exit__(self, *_: object) -> None:
        if self.uses_ray:
            from benchmark.sweep import ray_start

            ray_start.end()

    @property
    def at_once(self) -> int:
        """Trials at the same time, on this machine."""
        return by_ray(self.options.gpus_per_trial).at_once if self.executor == "ray" else 1

    def __call__(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        with View(jobs, self.console) as view:
            callbacks: list[SweepCallback] = [view]
            mirror = None
            if self.mlflow:
                from benchmark.sweep.mlflow_mirror import Mirror

                mirror = Mirror(jobs[0].store, jobs[0].experiment)
                mirror.begin()
                callbacks.append(mirror)
            if self.executor == "ray":
                from benchmark.sweep.ray_executor import run_ray

                self.uses_ray = True
                run_ray(jobs, CallbackList(*callbacks), self.options, keep=True)
            else:
                run_inline(jobs, CallbackList(*callbacks), self.options.checkpoint_every)
            if mirror is not None:
                mirror.end("interrupted" if view.elsewhere else view.state)
        if view.stopped:
            raise Interrupted(
                "Interrupted. The running trials have saved their last round. Rerun the command to resume."
            )
        if view.elsewhere:
            raise Interrupted(
                f"Interrupted. Another process runs {view.elsewhere} of the trials. "
                "Rerun the command when it has ended."
            )

    def publish(self, store: Path, name: str, files: Sequence[Path]) -> None:
        """Copy files to the parent run of the search in MLflow.

        Args:
            store: of the run folders.
            name: of the search's experiment in MLflow.
            files: that exist.
        """
        if not self.mlflow:
            return
        from benchmark.sweep.mlflow_mirror import Mirror

        def copy_into(folder: Path) -> None:
            for file in files:
                shutil.copy(file, folder)

        Mirror(store, name).end("finished", copy_into)
