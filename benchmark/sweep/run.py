"""`run`: an experiment, or a list of trials, into a store; with Ray, or one trial after another in this process.

This module imports neither torch nor Ray before it runs a trial.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from math import inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, get_args

from rich.console import Console

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, file_of
from rollcall.benchmark.config.grid import grid_points, unique_runs

if TYPE_CHECKING:
    from ray import tune

    from rollcall.benchmark.config.trial import Trial
    from rollcall.benchmark.sweep.jobs import Job, Sweep

INSTALL_RAY = "pip install '.[ray]'"

INTERVAL = 10.0
"""Seconds between two looks for runs that MLflow lacks."""

RECORD = "experiment.json"
"""In a folder of run folders: which experiment file they belong to."""

Executor = Literal["ray", "inline"]


@dataclass
class Execution:
    """Where and how trials run.

    Attributes:
        store: folder of the run folders.
        executor: `ray` or `inline`; by default Ray if it is installed. Options that only Ray has choose it.
        gpus_per_trial: the share of a GPU for each trial with Ray; with 0.25, four trials share a GPU; 0: CPU.
        retries: how often a trial is started again after its process died.
        checkpoint_every: time between two checkpoints of a trial.
        storage: a path or URL that all machines of a cluster without a shared disk reach, such as s3://bucket/runs:
            Tune's `storage_path`, through which run folders travel. Empty: all machines see the store.
        address: of a Ray cluster; `auto`: the one of this machine; empty: the Ray that this process has started,
            otherwise RAY_ADDRESS, otherwise this machine alone.
        callbacks: of Tune, such as loggers. Every evaluation is reported then, and Tune keeps its files in
            STORE/ray_results.
        stop: a stopper of Tune, or a function of a trial's id and its result: whether the trial ends.
        verbose: of Tune; from 1 on, it prints its table.
        console: for the progress; by default there is no output.
        mlflow: whether the run folders are copied to MLflow, if it is installed.
    """

    store: Path = Path("runs")
    executor: Executor | None = None
    gpus_per_trial: float = 0.0
    retries: int = 1
    checkpoint_every: timedelta = timedelta(minutes=2)
    storage: str = ""
    address: str = ""
    callbacks: "Sequence[tune.Callback]" = ()
    stop: Callable[[str, dict[str, Any]], bool] | None = None
    verbose: int = 0
    console: Console = field(default_factory=lambda: Console(quiet=True))
    mlflow: bool = True

    def __post_init__(self) -> None:
        if self.executor not in (None, *get_args(Executor)):
            raise SettingError(f"executor: {self.executor!r} is not allowed; must be ray or inline")
        share = self.gpus_per_trial
        if not (isinstance(share, int | float) and 0 <= share < inf):
            raise SettingError(f"gpus-per-trial: {share!r} is not allowed; must be a number from 0, such as 0.25")
        self.store, self.chosen = Path(self.store), self.executor
        used = {
            "--executor ray": self.executor == "ray",
            "--storage": self.storage,
            "--ray-address": self.address,
            "--gpus-per-trial": self.gpus_per_trial,
            "--retries": self.retries > 1,
            "callbacks, stop and verbose": self.callbacks or self.stop or self.verbose,
        }
        for option, value in used.items():
            if value:
                self.need_ray(option)
        if self.executor is None:
            self.executor = "ray" if find_spec("ray") else "inline"
            if self.executor == "inline":
                self.say(f"Ray is not installed: trials run one after another. For parallel trials: {INSTALL_RAY}")
        self.mlflow = self.mlflow and find_spec("mlflow") is not None
        if self.storage and "://" not in self.storage:
            self.storage = str(Path(self.storage).resolve())
        elif self.storage:
            from pyarrow import ArrowInvalid
            from pyarrow.fs import FileSystem

            try:
                FileSystem.from_uri(self.storage)
            except (ArrowInvalid, OSError) as error:
                allowed = "must be a folder, or a URL such as s3://bucket/runs or gs://bucket/runs"
                raise SettingError(f"storage: {self.storage!r} is not allowed ({error}); {allowed}") from None

    def need_ray(self, option: str) -> None:
        """Use Ray, which this option needs."""
        if self.chosen == "inline":
            raise SettingError(f"--executor inline is not allowed with {option}; must be ray")
        if find_spec("ray") is None:
            raise SettingError(f"{option} needs Ray: {INSTALL_RAY}")
        self.executor = "ray"

    @property
    def interrupted(self) -> str:
        """What is said where the sweep was asked to stop."""
        how = "go on from their last checkpoint" if self.storage else "have saved their last round"
        return f"Interrupted. The running trials {how}. Rerun the command to resume."

    def knows_device(self, trial: "Trial") -> bool:
        """Whether the device of a trial is that of this process. With Ray it may be on another machine, or a CPU."""
        return self.executor != "ray" or not (self.gpus_per_trial or trial.numerics.device == "auto")

    def say(self, line: str) -> None:
        """Print a line, however long."""
        self.console.print(line, highlight=False, soft_wrap=True)


def run_jobs(jobs: Sequence["Job"], execution: Execution, table: Callable[[], str] = str) -> "Sweep":
    """Run those of all jobs of an experiment that have not ended. A job that fails does not stop the others.

    MLflow shows `table`, a text in Markdown, with the experiment.
    """
    from rollcall.benchmark.sweep.jobs import Sweep, run_inline
    from rollcall.benchmark.sweep.progress import View

    todo, grid = [job for job in jobs if not job.ended], None
    # With a server of MLflow, which may lack runs made before it was set, there is something to do.
    if not jobs or not (todo or os.environ.get("MLFLOW_TRACKING_URI")):
        return Sweep(jobs, ())
    view = View(jobs, execution.console)
    with mirrored(jobs[0].experiment, execution, table), view.progress:
        with repeating(view.look, 1.0):
            if todo and execution.executor == "ray":
                from rollcall.benchmark.sweep.ray_executor import Plan, run_plan

                grid, failed, asked = run_plan(Plan(todo), todo[0].folder.path.parent, execution)
            else:
                failed, asked = run_inline(todo, execution.checkpoint_every)
        view.end(failed)  # two threads must not end the same job
    return Sweep(jobs, todo, failed, grid, asked)


def run(
    experiment: Experiment | str | Path,
    *,
    settings: Mapping[str, Sequence[Any]] | None = None,
    only: Mapping[str, list[Any]] | None = None,
    **how: Any,
) -> "Sweep":
    """Run an experiment, as `rollcall run` does; finished runs are skipped, interrupted ones resumed.

    With Ray it is an experiment of Tune, whose trials are its runs. The results are those of `executor="inline"`, bit
    for bit.

    Args:
        experiment: a name, the path of a YAML file, or an `Experiment`, such as `Experiment.read(NAME).as_(VARIANT)`.
        settings: values by dotted setting, such as `{"seed": [0, 1], "rounds": [100]}`; several make an axis.
        only: labels to keep, by axis.
        how: the arguments of `Execution`.

    Returns:
        `frame` has a row for each run, those that ended before included; `grid` is Tune's `ResultGrid` of this call.

    Raises:
        SettingError: a setting is not allowed; nothing has run.
    """
    from rollcall.benchmark.sweep.jobs import Job, check, refuse_other_data

    execution, file = Execution(**how), None
    if not isinstance(experiment, Experiment):
        file = file_of(str(experiment))
        experiment = Experiment.read(str(experiment))
    chosen = experiment.varied(settings or {}).only(only or {})
    jobs = [Job(point.trial, chosen.home, execution.store, point.labels) for point in unique_runs(grid_points(chosen))]
    refuse_other_data(jobs)
    check(jobs, execution)
    if file is not None and not all(job.ended for job in jobs):
        record(chosen, execution.store, file)
    return run_jobs(jobs, execution)


def record(experiment: Experiment, store: Path, file: Path) -> None:
    """Record the experiment's file in the folder of its runs, for readers of the folder."""
    from rollcall.benchmark.federation.run_folder import replacing

    if not experiment.base:  # else it shares the runs of its base on purpose
        folder = store / experiment.home
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / RECORD) as scratch:
            scratch.write_text(json.dumps({"file": str(file.resolve())}))


def file_of_runs(folder: Path) -> str:
    """The experiment file that the runs in a folder belong to; empty if it is not known, or not on this machine."""
    try:
        file = str(json.loads((folder / RECORD).read_text())["file"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return file if Path(file).is_file() else ""


@contextmanager
def mirrored(experiment: str, execution: Execution, table: Callable[[], str] = str) -> Iterator[None]:
    """Copy the runs of an experiment to MLflow as they end, and at the end a table."""
    if not execution.mlflow:
        yield
        return
    from rollcall.benchmark.sweep.mlflow_copy import Mirror

    mirror = Mirror(execution.store, experiment)
    with repeating(mirror.look, INTERVAL):
        yield
    mirror.look(table)


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
