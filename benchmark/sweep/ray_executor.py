"""Run trials with Ray Tune, as many at once as there are cores or shares of GPUs, on one machine or a cluster.

One Tune trial is one whole federated run in one process.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from itertools import count
from pathlib import Path
from shutil import copyfile
from tempfile import NamedTemporaryFile, TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow
import torch
from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

from rollcall.benchmark.sweep import ray_start  # before Ray is imported: it sets what Ray reads then

# isort: split
from ray import tune
from ray.tune import Checkpoint
from ray.tune.execution.class_cache import DEFAULT_ENV_VARS

from rollcall.benchmark.allocator import collect_garbage_seldom, keep_freed_memory
from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.digest import unpack
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import read_trial
from rollcall.benchmark.config.source import supply
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.interruption import stop_requests
from rollcall.benchmark.federation.run_folder import RunFolder, replacing
from rollcall.benchmark.sweep.jobs import Job, Outcome, run_job
from rollcall.tasks.datasets import root

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.pool import RayOptions


def run_ray(jobs: Sequence[Job], options: "RayOptions", say: Callable[[str], None]) -> dict[str, Outcome]:
    """Run all jobs. A job that fails does not stop the others. Ray stays up; `ray_start.end` ends it.

    Each process of a job has one core and one torch thread.

    If the process of a trial dies, for example because memory ran out, another one resumes it from its checkpoint. An
    exception in the trial's code would occur again, so it is not retried. If Ray itself dies on this machine, it starts
    again, at most `retries` times.

    After SIGINT or SIGTERM every running trial saves a checkpoint of its last round, and no other trial starts.
    Send SIGTERM to this process only: if the whole process group gets it, Ray ends too, and runs resume from their last
    regular checkpoints.

    `say` is called with a line for the user when a trial is started again. Returns the outcomes of the jobs that were
    started, by name.
    """
    ray_start.ready(options.address)
    # With an environment variable of its own, a trial could not run in the workers that Ray has started already. This
    # one is about a way of training that the suite does not use.
    DEFAULT_ENV_VARS.pop("PL_DISABLE_FORK", None)
    outcomes: dict[str, Outcome] = {}
    stopped = Outcome("interrupted")
    with stop_requests() as requested:
        left = list(jobs)
        for deaths in count(1):
            follower = _run(left, options, say, requested)
            outcomes |= follower.outcomes
            left = [job for job in left if outcomes.get(job.trial.name, stopped) == stopped]
            if not follower.dead or not left:
                break
            ray_start.end()
            if deaths > options.retries or requested():
                say("Ray died on this machine; memory may have run out. Rerun the command to resume")
                outcomes |= {job.trial.name: stopped for job in left if job.folder.state_now == "interrupted"}
                break
            retry = f"retry {deaths} of {options.retries}"
            say(f"Ray died on this machine; memory may have run out. It starts again; trials resume ({retry})")
            ray_start.ready(options.address)
    return outcomes


def _run(
    jobs: Sequence[Job], options: "RayOptions", say: Callable[[str], None], requested: Callable[[], bool]
) -> "_Follower":
    """Run jobs until all have ended, a stop is requested, or Ray dies. Returns the follower of the trials."""
    with _records(options.storage, jobs[0].store) as (records, name, stop):
        follower = _Follower(jobs, options, say, requested, stop)
        begun = [""] * len(jobs)
        for index, job in enumerate(jobs):  # run folders that a worker will resume on its own disk
            if options.storage and job.folder.resumable():
                begun[index] = f"{records}/{name}/begun/{job.folder.path.name}"
                system, there = FileSystem.from_uri(begun[index])
                system.create_dir(there)
                copy_files(str(job.folder.path), there, LocalFileSystem(), system, use_threads=False)
        sweep = {
            "specs": [job.trial.portable for job in jobs],
            "sources": {source.file: source.text for job in jobs for source in job.trial.sources},
            "folders": [str(job.folder.path.resolve()) for job in jobs],
            "data": str(root().resolve()),
            "stop": stop,
            "checkpoint_every": options.checkpoint_every,
            "shared_disk": not options.storage,
            "begun": begun,
        }
        # Tune searches the whole parameter space for each trial, so what the trials share is no part of it.
        with_sweep = tune.with_parameters(_trainable, sweep=sweep)
        tune.Tuner(
            tune.with_resources(with_sweep, {"cpu": 1, "gpu": options.gpus_per_trial}),
            param_space={"job": tune.grid_search(list(range(len(jobs))))},
            # A fresh process would import torch anew for every trial.
            tune_config=tune.TuneConfig(reuse_actors=True),
            run_config=tune.RunConfig(
                name=name,
                storage_path=records,
                verbose=0,
                callbacks=[follower],
                failure_config=tune.FailureConfig(max_failures=options.retries),
                checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
                stop=follower,
            ),
        ).fit()
    return follower


def checked_storage(text: str) -> str:
    """The path or URL of a storage, as Ray wants it. A relative path counts from the working directory."""
    url = text if "://" in text else str(Path(text).resolve())
    try:
        system, path = FileSystem.from_uri(url)
        system.create_dir(path)
        with system.open_output_stream(f"{path}/.writable") as file:
            file.write(b"")
        system.delete_file(f"{path}/.writable")
    except (OSError, pyarrow.ArrowInvalid, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SettingError(
            f"storage: {text!r} is not allowed ({reason}); must be a folder or URL that can be written, such as "
            "/nfs/runs, s3://bucket/runs or gs://bucket/runs"
        ) from None
    return url


@contextmanager
def _records(storage: str, store: Path) -> Iterator[tuple[str, str, str]]:
    """The place of Tune's records of a sweep, its name there, and the file of the request to stop, all temporary."""
    name = f"rollcall-{uuid4()}"
    if storage:
        system, path = FileSystem.from_uri(f"{storage}/{name}")
        system.create_dir(path)
        _write(f"{storage}/{name}/stop", b"")
        yield storage, name, f"{storage}/{name}/stop"
        system.delete_dir(path)
    else:
        store.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="rollcall-") as folder, NamedTemporaryFile(prefix=".stop-", dir=store) as file:
            yield folder, name, str(Path(file.name).resolve())


def _write(url: str, content: bytes) -> None:
    system, path = FileSystem.from_uri(url)
    with system.open_output_stream(path) as file:
        file.write(content)


def _trainable(config: dict[str, int], sweep: dict[str, Any]) -> None:
    job = config["job"]
    keep_freed_memory()
    collect_garbage_seldom()
    torch.set_num_threads(1)
    if not Path(os.environ.get("ROLLCALL_DATA", "")).is_absolute():  # else this machine has a place of its own
        os.environ["ROLLCALL_DATA"] = sweep["data"]
    requested = _polled(sweep["stop"])
    if requested():
        tune.report({"state": "waiting"})
        return
    try:
        supply(sweep["sources"])  # another machine may not have the user's files
        with TemporaryDirectory(prefix="rollcall-data-") as scratch:  # nor their data files
            trial = read_trial(unpack(sweep["specs"][job], Path(scratch)))
    except Exception as error:  # not the death of a process, so it is not retried
        outcome = Outcome("failed", f"{type(error).__name__}: {error}")
    else:
        folder, every = Path(sweep["folders"][job]), sweep["checkpoint_every"]
        if sweep["shared_disk"]:
            outcome = run_job(trial, folder, requested, every)
        else:
            _carry_out_on_own_disk(trial, folder.name, sweep["begun"][job], requested, every)
            return
    tune.report(asdict(outcome))  # a failure is a result, too, so that Tune writes no error files


def _carry_out_on_own_disk(
    trial: Trial | Analysis, name: str, begun: str, requested: Callable[[], bool], every: timedelta
) -> None:
    """Run a trial on this machine's disk, from an earlier sweep's run folder (`begun`). Tune carries it home."""
    with TemporaryDirectory(prefix="rollcall-") as disk:
        run = RunFolder(Path(disk) / name)
        run.path.mkdir()
        start = tune.get_checkpoint() or (Checkpoint(begun) if begun else None)
        if start is not None:
            start.to_directory(run.path)
        sent, looked = -1, monotonic()  # the first report brings the settings home

        def tell_and_ask() -> bool:
            nonlocal sent, looked
            if monotonic() - looked > 1:
                looked = monotonic()
                saved = run.checkpoint.stat().st_mtime_ns if run.checkpoint.exists() else 0
                checkpoint = None if sent == saved else Checkpoint.from_directory(run.path)
                sent = saved
                tune.report({"status": run.status}, checkpoint=checkpoint)
            return requested()

        outcome = run_job(trial, run.path, tell_and_ask, every)
        tune.report(asdict(outcome), checkpoint=Checkpoint.from_directory(run.path))


def _polled(stop: str) -> Callable[[], bool]:
    """A function that reads, now and then, whether the driver has asked all trials to stop."""
    system, path = FileSystem.from_uri(stop)
    pause = 0.5 if isinstance(system, LocalFileSystem) else 5.0  # seconds; a storage may take long to answer
    stopped, asked = False, -pause

    def requested() -> bool:
        nonlocal stopped, asked
        if not stopped and monotonic() - asked > pause:
            asked = monotonic()
            with suppress(OSError), system.open_input_stream(path) as file:
                stopped = file.read() != b""
        return stopped

    return requested


class _Follower(tune.Callback, tune.Stopper):
    """Follows Tune's trials: brings run folders home from a storage, and passes a request to stop to the trials.

    Attributes:
        outcomes: of the jobs that were started and have ended, by name.
        saving: after the request, the trials that were running then. The sweep ends once they have saved; until then,
            Tune starts the waiting ones, which do nothing. None before it.
        dead: whether Ray has died on this machine. Workers outlive it, so the running trials are asked to save, too.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        options: "RayOptions",
        say: Callable[[str], None],
        requested: Callable[[], bool],
        stop: str,
    ) -> None:
        self.jobs = jobs
        self.retries = options.retries
        self.say = say
        self.requested = requested
        self.stop = stop
        self.deaths: Counter[str] = Counter()
        self.outcomes: dict[str, Outcome] = {}
        self.saving: list[Any] | None = None
        self.dead = False
        self.looked = monotonic()

    def __getstate__(self) -> dict[str, Any]:
        # Tune saves its callbacks, to resume in a way we do not use; a live view cannot be saved.
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False  # each trial ends by itself

    def stop_all(self) -> bool:
        return self.saving is not None and all(
            not self._job(trial).folder.in_use if self.dead else trial.is_finished() for trial in self.saving
        )

    def on_step_begin(self, iteration: int, trials: list[Any], **_: Any) -> None:
        if monotonic() - self.looked > 3:
            self.dead, self.looked = ray_start.dead(), monotonic()
        if self.saving is None and (self.dead or self.requested()):
            _write(self.stop, b"stop")
            self.saving = [trial for trial in trials if trial.status == "RUNNING"]

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any) -> None:
        folder = self._job(trial).folder.path
        if "status" in result and (folder / "trial.yaml").exists():  # else the first checkpoint brings it
            with replacing(folder / "status.json") as scratch:
                scratch.write_text(json.dumps(result["status"], indent=1))

    def on_checkpoint(self, iteration: int, trials: list[Any], trial: Any, checkpoint: Checkpoint, **_: Any) -> None:
        folder = self._job(trial).folder.path
        with TemporaryDirectory(prefix="rollcall-") as scratch:
            checkpoint.to_directory(scratch)
            files = {file.relative_to(scratch): file for file in Path(scratch).rglob("*") if file.is_file()}
            for name, file in sorted(files.items(), key=lambda item: (item[0].name == "status.json", item[0])):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with replacing(folder / name) as target:
                    copyfile(file, target)
        if Path("error.txt") not in files:
            (folder / "error.txt").unlink(missing_ok=True)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        result = trial.last_result or {}
        if result.get("state", "waiting") != "waiting":
            self.outcomes[self._job(trial).trial.name] = Outcome(result["state"], result["error"])

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        if ray_start.dead():
            return
        name = self._job(trial).trial.name
        self.deaths[name] += 1
        retry = f"retry {self.deaths[name]} of {self.retries}"
        self.say(f"{name}  its process died; it resumes from its checkpoint ({retry})")

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        if ray_start.dead():
            return
        job = self._job(trial)
        deaths = self.deaths[job.trial.name] + 1
        times = "once" if deaths == 1 else f"{deaths} times"
        error = f"its process died {times}; memory may have run out. Rerun the command to resume from its checkpoint"
        job.folder.fail(error, f"{error}\n\nRay's report:\n{trial.get_pickled_error() or 'none'}\n")
        self.outcomes[job.trial.name] = Outcome("failed", error)

    def _job(self, trial: Any) -> Job:
        return self.jobs[trial.config["job"]]
