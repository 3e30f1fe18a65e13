"""The pool that runs the jobs of a command: Ray or this process, with progress and a copy in MLflow.

This module imports neither torch nor Ray before it runs a job.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.util import find_spec
from threading import Event
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from rollcall.benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.jobs import Ends, Job

INSTALL_RAY = "pip install '.[ray]'"

INTERVAL = 10.0
"""Seconds between two looks for runs that MLflow lacks."""

Executor = Literal["ray", "inline"]


@dataclass(frozen=True)
class RayOptions:
    """How trials run with Ray.

    Attributes:
        gpus_per_trial: the share of a GPU for each trial; with 0.25, four trials share a GPU; 0: CPU.
        retries: how often a trial is started again after its process died.
        checkpoint_every: time between two checkpoints of a trial; the only option that matters without Ray, too.
        storage: a path or URL that all machines of a cluster without a shared disk reach, such as s3://bucket/runs;
            run folders travel through it. Empty: all machines see the store.
        address: of a Ray cluster; `auto`: the one of this machine; empty: RAY_ADDRESS, otherwise this machine alone.
    """

    gpus_per_trial: float = 0.0
    retries: int = 1
    checkpoint_every: timedelta = timedelta(minutes=2)
    storage: str = ""
    address: str = ""

    @property
    def needed_by(self) -> str:
        """The option of the command line that only Ray has and that is used; empty if none is."""
        used = {
            "--storage": self.storage,
            "--ray-address": self.address,
            "--gpus-per-trial": self.gpus_per_trial,
            "--retries": self.retries > 1,
        }
        return next((option for option, value in used.items() if value), "")


@dataclass
class Pool:
    """Runs jobs, some at a time. In a `with` block, which checks the storage, Ray stays up between the calls.

    Attributes:
        mlflow: whether the run folders are copied to MLflow.
        uses_ray: whether Ray has run jobs.
    """

    executor: Executor
    options: RayOptions
    console: Console
    mlflow: bool
    uses_ray: bool = False

    @classmethod
    def of(
        cls, asked: Executor | None, options: RayOptions, console: Console | None = None, mlflow: bool = True
    ) -> "Pool":
        """A pool with the executor to use: by default Ray if it is installed, otherwise inline.

        Options that only Ray has choose it. Without a console there is no output.
        """
        console = console or Console(quiet=True)
        if options.needed_by:
            if asked == "inline":
                raise SettingError(f"--executor inline is not allowed with {options.needed_by}; must be ray")
            asked = "ray"
        has_ray = find_spec("ray") is not None
        if asked == "ray" and not has_ray:
            raise SettingError(f"--executor ray needs Ray: {INSTALL_RAY}")
        if asked is None and not has_ray:
            console.print(
                f"Ray is not installed: trials run one after another. For parallel trials: {INSTALL_RAY}",
                highlight=False,
                soft_wrap=True,
            )
        executor: Executor = asked or ("ray" if has_ray else "inline")
        return cls(executor, options, console, mlflow and find_spec("mlflow") is not None)

    def __enter__(self) -> "Pool":
        if self.options.storage:
            from rollcall.benchmark.sweep.ray_executor import checked_storage

            self.options = replace(self.options, storage=checked_storage(self.options.storage))
        return self

    def __exit__(self, *_: object) -> None:
        if self.uses_ray:
            from rollcall.benchmark.sweep import ray_start

            ray_start.end()

    def start(self, trials: int) -> None:
        """Let Ray start, if trials will run with it. It starts beside this process, which goes on meanwhile."""
        if self.executor == "ray" and trials:
            from rollcall.benchmark.sweep import ray_start

            ray_start.begin(self.options.address, trials=0 if self.options.gpus_per_trial else trials)

    def __call__(self, jobs: Sequence["Job"], table: Callable[[], str] = str) -> "Ends":
        """Run those of all jobs of an experiment that have not ended. A job that fails does not stop the others.

        MLflow shows `table`, a text in Markdown, with the experiment.
        """
        from rollcall.benchmark.sweep.jobs import Ends, run_inline
        from rollcall.benchmark.sweep.progress import View

        todo = [job for job in jobs if not job.ended]
        with View(jobs, self.console) as view:
            mirror = None
            if self.mlflow and (todo or (jobs and os.environ.get("MLFLOW_TRACKING_URI"))):
                from rollcall.benchmark.sweep.mlflow_copy import Mirror

                mirror = Mirror(jobs[0].store, jobs[0].experiment)
            if not todo:
                if mirror is not None:  # the server may lack runs that were made before its address was set
                    mirror.look(table)
                return Ends(jobs, {})
            copying: AbstractContextManager[None] = repeating(mirror.look, INTERVAL) if mirror else nullcontext()
            with repeating(view.look, 1.0), copying:
                if self.executor == "ray":
                    from rollcall.benchmark.sweep.ray_executor import run_ray

                    self.uses_ray = True
                    outcomes = run_ray(todo, self.options, view.say)
                else:
                    outcomes = run_inline(todo, self.options.checkpoint_every)
            view.end(outcomes)
            ends = Ends(jobs, outcomes)
            if mirror is not None:
                mirror.look(table)
        return ends


@contextmanager
def repeating(function: Callable[[], None], pause: float) -> Iterator[None]:
    """Call a function in another thread, with pauses of so many seconds, until the `with` block ends.

    The block raises the exception of the function.
    """
    over = Event()

    def repeat() -> None:
        function()
        while not over.wait(pause):
            function()

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=function.__qualname__) as thread:
        calls = thread.submit(repeat)
        try:
            yield
        finally:
            over.set()
    calls.result()
