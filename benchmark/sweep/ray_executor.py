"""Run trials with Ray Tune, as many at once as there are cores or shares of GPUs, on one machine or a cluster.

A trial of Tune is one run of an experiment, or a sample of a search with all its runs, in one process.
"""

import logging
import math
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from shutil import copyfile
from socket import AF_UNIX, create_connection, socket
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

# Ray reads these when it is imported: no usage statistics, no visible GPU for a trial that asked for none (all trials
# would use it), Tune's table only where it is asked for, and no handling of Ctrl-C but ours, which lets trials save.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="1",
    RAY_AIR_NEW_OUTPUT="0",
    TUNE_DISABLE_SIGINT_HANDLER="1",
)

# isort: split
import ray
from ray import tune
from ray._private import ray_constants
from ray.exceptions import RayError, RayTaskError
from ray.tune import Checkpoint, ResultGrid
from ray.tune.search import BasicVariantGenerator

from rollcall.benchmark.config.digest import unpack
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.grid import read_trial
from rollcall.benchmark.config.source import supply, told
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import InUse, RunFolder, replacing
from rollcall.benchmark.process import collect_garbage_seldom, keep_freed_memory, return_freed_memory, stop_requests
from rollcall.benchmark.sweep.jobs import Job, run_job
from rollcall.tasks.datasets import root

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.run import Execution

Config = Mapping[str, Any]

RAY_DIED = "Ray died on this machine; memory may have run out"
OUT_OF_MEMORY = "Ray killed a process, for memory had run out"


class _Started(NamedTuple):
    """The Ray that `start_ray` started: the address that was asked for, the socket of the process that starts the
    workers of this machine, and the address that tells this Ray from another one of the same process.
    """

    asked: str
    raylet: str
    gcs: str


_started: _Started | None = None


def start_ray(address: str = "") -> None:
    """Start Ray, or join a cluster; nothing happens if it is up.

    Args:
        address: of a Ray cluster; `auto`: the one of this machine; empty: the Ray that the user has started in this
            process, otherwise RAY_ADDRESS, otherwise this machine alone.

    Raises SettingError: no Ray cluster answers at the address, or Ray does not start on this machine.
    """
    global _started
    if _started is not None and not (ray.is_initialized() and ray.get_runtime_context().gcs_address == _started.gcs):
        _started = None  # the user has ended it
    if _started is not None and _started.asked != address:
        end_ray()
    if _started is None and not ray.is_initialized():
        _started = _Started(address, _connect(address), ray.get_runtime_context().gcs_address)


def ray_died() -> bool:
    """Whether Ray's process of this machine has died, while it should be up."""
    if _started is None:
        return False
    try:
        with socket(AF_UNIX) as raylet:
            raylet.connect(_started.raylet)
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    return False


def end_ray() -> None:
    """Stop the Ray that `start_ray` started."""
    global _started
    if _started is not None:
        ray.shutdown()
    _started = None


def _connect(address: str) -> str:
    """Start Ray, or join a cluster. Returns the socket file of Ray's process of this machine."""
    # Ray alone would also join a cluster that somebody else started on this machine.
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    host, _, port = address.rpartition(":")
    before, of_sigterm = ray_constants.ENABLE_RAY_CLUSTER, signal.getsignal(signal.SIGTERM)
    try:
        if port.isdigit():
            create_connection((host, int(port)), timeout=10).close()  # Ray tries for minutes before it gives up
        # Without a cluster, Ray listens on 127.0.0.1 only. By itself it does so on Windows and macOS.
        ray_constants.ENABLE_RAY_CLUSTER = address != "local"
        context = ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # the run folders have the errors of trials
        return str(context.address_info["raylet_socket_name"])  # type: ignore[attr-defined]
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        if address == "local":
            step = "Rerun the command, or use --executor inline"
            raise SettingError(f"Ray did not start on this machine ({reason}). {step}") from error
        raise SettingError(
            f"ray-address: no Ray cluster answers at {address!r} ({reason}); must be auto or HOST:PORT, which "
            "`ray start --head` prints on the first machine"
        ) from error
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        if of_sigterm is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, of_sigterm)  # Ray's handler ends the process, and no trial would save


class TuneTrial(NamedTuple):
    """What a trial of Tune runs: the names of its run folders, and the settings of its runs (`Spec.portable`).

    The first name stands for the trial: no other one runs it at the same time. `milestones` are numbers of rounds,
    ascending. After each, all runs wait for each other, and the score is reported.
    """

    folders: list[str]
    specs: Sequence[Mapping[str, Any]]
    milestones: Sequence[int]


class Plan:
    """The trials of Tune: one run each. The configuration (`points`) is the labels of the run, and its seed.

    `sources` are the user's files that the trials need, by path.
    """

    evaluations = True
    """Whether the evaluations of a run are reported."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        axes = dict.fromkeys(axis for job in jobs for axis in job.labels)
        self.points = [{axis: job.labels.get(axis, "") for axis in axes} | {"seed": job.trial.seed} for job in jobs]
        if len({tuple(point.values()) for point in self.points}) < len(jobs):  # trials without labels
            self.points = [{"run": job.trial.name} for job in jobs]
        trials = [job.trial for job in jobs]
        works = [TuneTrial([one.name], [one.portable], [one.rounds]) for one in trials]
        self.works = {tuple(point.values()): work for point, work in zip(self.points, works, strict=True)}
        self.sources = {source.file: source.text for one in trials for source in one.sources}

    def work(self, config: Config) -> TuneTrial:
        """What a trial runs."""
        return self.works[tuple(config.values())]

    def score(self, config: Config, folders: Sequence[RunFolder], rounds: int) -> Mapping[str, Any]:
        """The metrics of its runs after so many rounds; of no folders if no run could start."""
        return next(reversed(folders[0].rows()), {}) if folders else {}


def run_plan(
    plan: Plan, home: Path, execution: "Execution", space: Mapping[str, Any] | None = None, **tuning: Any
) -> tuple[ResultGrid | None, dict[str, str], bool]:
    """Run the trials of a plan, each with one core. One that fails does not stop the others.

    If the process of a trial dies, another one resumes it from its checkpoint. If Ray itself dies on this machine, or
    its memory monitor kills a process, which Tune does not survive, the rest starts again. Both happen at most
    `retries` times. An exception in the trial's code would occur again, so it is not retried.

    After SIGINT or SIGTERM every running trial saves a checkpoint of its last round, and no other trial starts. Send
    SIGTERM to this process only: if the whole process group gets it, Ray ends too, and runs resume from their last
    regular checkpoints. So they do on machines with their own disks.

    The run folders are in `home`. A searcher needs `space`, and the plan's points are not used; `tuning` has arguments
    of `tune.TuneConfig`. Returns Tune's results, the errors of the trials that failed, by name, and whether trials are
    left to run.
    """
    errors: dict[str, str] = {}
    with stop_requests() as requested:
        for deaths in count(1):
            start_ray(execution.address)
            _check_share(execution)
            attempt = _Attempt(plan, home.resolve(), execution, requested, errors)
            grid = attempt.fit(space, tuning)
            if not attempt.lost:
                return grid, errors, requested()
            end_ray()
            plan.points = [point for point in plan.points if plan.work(point).folders[0] not in errors]
            if deaths > execution.retries or requested() or space or not plan.points:  # a searcher remembers the lost
                break
            execution.say(f"{attempt.lost}. It starts again; trials resume (retry {deaths} of {execution.retries})")
        execution.say(f"{attempt.lost}. Rerun the command to resume")
    return None, errors, True


def _check_share(execution: "Execution") -> None:
    """Refuse a share of GPUs that no machine has: trials would wait for ever. A cluster may still grow: it is told."""
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    most = max((node["Resources"].get("GPU", 0) for node in nodes if node["Alive"]), default=0)
    if execution.gpus_per_trial > most:
        share, has = f"gpus-per-trial: {execution.gpus_per_trial:g}", f"no machine has more than {most:g} GPUs"
        if _started is not None and (execution.address or os.environ.get("RAY_ADDRESS", "local")) == "local":
            raise SettingError(f"{share} is not allowed; {has}")
        execution.say(f"{share}: {has}; trials wait for one that has")


Place = tuple[str, str]
"""A working directory, and the folder of data sets."""


def here() -> Place:
    return os.getcwd(), str(root().resolve())


def go_to(place: Place) -> None:
    """Find relative paths where the command was given: Tune works in a folder of its own."""
    with suppress(OSError):  # another machine may not have it
        os.chdir(place[0])
    if not Path(os.environ.get("ROLLCALL_DATA", "")).is_absolute():  # else this machine has a place of its own
        os.environ["ROLLCALL_DATA"] = place[1]


def rollcall_trial(config: dict[str, Any], shared: dict[str, Any]) -> None:
    """The trainable of Tune: all runs of one trial, resumed from their run folders; `shared` is of `_Attempt.fit`."""
    if not shared["gpus"]:  # the nodes of a cluster were started without our variables
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    keep_freed_memory()
    return_freed_memory()  # of the last trial of this process
    collect_garbage_seldom()
    torch.set_num_threads(1)
    # After two seconds, Tune would fail the next trial of this process if this one still saves its checkpoint.
    os.environ["TUNE_FUNCTION_THREAD_TIMEOUT_S"] = "600"
    go_to(shared["place"])
    plan: Plan = shared["plan"]
    stop, nothing = Path(shared["stop"]), {**plan.score(config, [], 0), "state": "running", "error": ""}
    if stop.exists():
        tune.report(nothing)
        return
    with TemporaryDirectory(prefix="rollcall-") as scratch:
        # What travels with a trial: how far it has reported, and its run folders between machines with own disks.
        (carried := Path(scratch, "carried")).mkdir()
        if (start := tune.get_checkpoint()) is not None:
            start.to_directory(carried)
        reported = int((carried / "reported").read_text()) if (carried / "reported").exists() else 0
        try:
            supply(plan.sources)  # another machine may not have the user's files
            work = plan.work(config)
            read = (read_trial(unpack(spec, Path(scratch))) for spec in work.specs)  # nor their data files
            trials = list({trial.name: trial for trial in read}.values())
        except Exception as wrong:  # not the death of a process, so it is not retried
            tune.report(nothing | {"state": "failed", "error": f"{type(wrong).__name__}: {wrong}"})
            return
        for name in shared["begun"].keys() & work.folders if start is None else ():
            (carried / name).mkdir(exist_ok=True)
            for file, content in ray.get(shared["begun"][name]).items():
                (carried / name / file).write_bytes(content)
        folders = [RunFolder(Path(shared["home"] or carried, name)) for name in work.folders]
        reports = Reports(folders[0], nothing, stop, shared["pause"], None if shared["home"] else carried)
        for rounds in work.milestones:
            error = ""
            for trial, folder in zip(trials, folders, strict=True):
                while folder.finished < rounds:
                    part = trial if trial.rounds == rounds else trial.model_copy(update={"rounds": rounds})
                    own = [reports] if plan.evaluations else []
                    error = run_job(part, folder.path, reports, shared["every"], own)
                    if plan.evaluations or not folder.in_use or reports():
                        break
                    sleep(1.0)  # a searcher has proposed the settings of a sample that still runs
                if folder.finished < rounds:
                    break
            if reports.ended:
                raise SystemExit(0)  # to return would be a report, which nobody takes any more
            if rounds > reported:
                (carried / "reported").write_text(str(rounds))
                keep = len(work.milestones) > 1 or not shared["home"]
                # A failure is a result, too, so that Tune writes no error files.
                row = {**plan.score(config, folders, rounds), "state": folder.state, "error": error}
                reports.rest()
                reports.last = row
                tune.report(row, checkpoint=Checkpoint.from_directory(carried) if keep else None)
            if folder.finished < rounds:
                return


@dataclass(eq=False)
class Reports(Callback):
    """Reports the evaluations of a run to Tune between two rounds, and its checkpoints on a machine's own disk.

    Attributes:
        run: its folder.
        last: the last row that was reported, with which a checkpoint is. Tune's objects need the metric in each row.
        stop: a file that the driver makes to stop all trials.
        pause: the least seconds between two reports.
        disk: what is a checkpoint of Tune, if the run folder is on the machine's own disk; else None.
        asked: whether the run shall stop; `ended` if Tune wants so: a scheduler or a stopper of the user.
    """

    run: RunFolder
    last: dict[str, Any] = field(default_factory=dict)
    stop: Path | None = None
    pause: float = 0.0
    disk: Path | None = None
    asked: bool = False
    ended: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    saved: int = 0
    looked: float = -math.inf

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        self.last = {"round": federation.t, **federation.measured, "state": "running", "error": ""}
        self.rows.append(self.last)

    def __call__(self) -> bool:
        """Whether the run shall stop; called after every round."""
        if self.asked or monotonic() - self.looked < self.pause:
            return self.asked
        self.looked = monotonic()
        if self.stop is not None and self.stop.exists():  # the driver may take no reports any more
            self.asked = True
            return True
        checkpoint = None
        if self.disk is not None and (file := self.run.checkpoint).exists():
            before, self.saved = self.saved, file.stat().st_mtime_ns
            if self.saved != before:
                checkpoint = Checkpoint.from_directory(self.disk)
                self.rows = self.rows or [self.last]
        for row in self.rows[-1:] if self.pause else self.rows:
            try:
                tune.report(row, checkpoint=checkpoint)
            except SystemExit:  # Tune's way to end a trial; the run saves a checkpoint first
                self.asked = self.ended = True
                break
        self.rows = []
        return self.asked

    def rest(self) -> None:
        """Report the evaluations that are left, except the last one, which is reported with the end of the run."""
        for row in [] if self.pause else self.rows[:-1]:
            tune.report(row)


@dataclass(eq=False)
class _Attempt(tune.Callback, tune.Stopper):
    """One experiment of Tune. It brings run folders home from a storage, and passes a request to stop to the trials.

    Attributes:
        errors: of the trials that failed, by name.
        stop: the file that asks all trials to save and end. The waiting ones then start, and do nothing.
        stopper: a copy of the user's.
        saved: whether all trials that were running then have ended.
        lost: why Ray was lost, if it was.
        held: the locks of the run folders that it brings home, by name.
    """

    plan: Plan
    home: Path
    execution: "Execution"
    requested: Callable[[], bool]
    errors: dict[str, str]
    stop: Path = Path()
    stopper: Callable[[str, dict[str, Any]], bool] | None = None
    saved: bool = False
    lost: str = ""
    looked: float = 0.0
    held: dict[str, ExitStack] = field(default_factory=dict)

    def fit(self, space: Mapping[str, Any] | None, tuning: Mapping[str, Any]) -> ResultGrid | None:
        """Run Tune until all trials have ended, a stop is requested, or Ray is lost."""
        execution, home, kept = self.execution, self.home, self.execution.callbacks
        self.stopper = deepcopy(execution.stop)  # Tune's objects serve one experiment of Tune
        tuning = {**tuning, "scheduler": deepcopy(tuning.get("scheduler"))}
        loggers = os.environ.get("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "0")
        home.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".tune-", dir=home.parent) as folder:
            self.stop = Path(folder, "stop")
            begun = {  # run folders of earlier sweeps, one object each: a trial fetches its own
                run.name: ray.put({file.name: file.read_bytes() for file in run.iterdir() if file.is_file()})
                for run in (home.glob("*/") if execution.storage else ())
            }
            shared = {
                "plan": self.plan,
                "home": "" if execution.storage else str(home),
                "begun": begun,
                "gpus": execution.gpus_per_trial,
                "place": here(),
                "stop": str(self.stop),
                "every": execution.checkpoint_every,
                # A report takes milliseconds of the driver, which has hundreds of trials; one a second is enough.
                "pause": 0.0 if kept or execution.stop else 1.0,
            }
            if space is None:
                points = BasicVariantGenerator(points_to_evaluate=self.plan.points)
                tuning = {**tuning, "search_alg": points, "num_samples": len(self.plan.points)}
                space = dict.fromkeys(self.plan.points[0])
            tuner = tune.Tuner(
                tune.with_resources(
                    tune.with_parameters(rollcall_trial, shared=shared), {"cpu": 1, "gpu": execution.gpus_per_trial}
                ),
                param_space=dict(space),
                # A fresh process would import torch anew for every trial.
                tune_config=tune.TuneConfig(reuse_actors=True, **tuning),
                run_config=tune.RunConfig(
                    # The user's loggers write beside Tune's own files, so these are kept.
                    storage_path=execution.storage
                    or (str(execution.store.resolve() / "ray_results") if kept else folder),
                    verbose=execution.verbose,
                    progress_reporter=tune.CLIReporter(parameter_columns=list(space), print_intermediate_tables=True),
                    callbacks=[self, *execution.callbacks],
                    failure_config=tune.FailureConfig(max_failures=execution.retries),
                    checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
                    stop=self,
                ),
            )
            os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = loggers if kept else "1"  # no files but run folders
            try:
                grid = tuner.fit()
                if execution.stop is not None:  # Tune does not wait for trials that it ends; they save first
                    self._wait()
                return grid
            except Exception as error:
                if not ray_died() and not isinstance(error.__cause__, RayError):
                    raise
                self.lost = self.lost or (RAY_DIED if ray_died() else OUT_OF_MEMORY)
                self.stop.touch()
                self._wait()
                return None
            finally:
                os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = loggers
                for held in self.held.values():
                    held.close()

    def _wait(self) -> None:
        """Give workers that are left a minute to save."""
        until = monotonic() + 60
        while monotonic() < until and any(map(self._in_use, self.plan.points)):
            sleep(0.5)

    def _in_use(self, config: Config) -> bool:
        names = () if self.execution.storage else self.plan.work(config).folders  # there this process holds the locks
        return any(RunFolder(self.home / name).in_use for name in names)

    def __getstate__(self) -> dict[str, Any]:
        # Tune saves its callbacks, to resume in a way we do not use; a live view cannot be saved.
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return self.stopper is not None and self.stopper(trial_id, result)

    def stop_all(self) -> bool:
        return self.saved or bool(getattr(self.stopper, "stop_all", bool)())

    def on_step_begin(self, iteration: int, trials: list[Any], **_: Any) -> None:
        if monotonic() - self.looked < 0.5:
            return
        self.looked = monotonic()
        if not self.lost and ray_died():  # workers outlive it
            self.lost = RAY_DIED
        if self.lost or self.requested():
            self.stop.touch()
            running = [trial.config for trial in trials if trial.status == "RUNNING"]
            self.saved = not any(map(self._in_use, running))  # other machines' own disks do not see the request

    def on_checkpoint(self, iteration: int, trials: list[Any], trial: Any, checkpoint: Checkpoint, **_: Any) -> None:
        if not self.execution.storage:
            return
        with TemporaryDirectory(prefix="rollcall-") as scratch:
            checkpoint.to_directory(scratch)
            for folder in sorted(path for path in Path(scratch).iterdir() if path.is_dir()):
                with suppress(InUse):  # another process runs it
                    self._bring_home(folder)

    def _bring_home(self, folder: Path) -> None:
        """Copy a run folder of a worker into the store, and hold its lock there until the trial ends."""
        home = RunFolder(self.home / folder.name)
        if folder.name not in self.held:
            held = ExitStack()
            held.enter_context(home.locked())
            self.held[folder.name] = held
        home.reopen()  # the driver may be killed between two files, so they come in the order of a run
        files = [file.relative_to(folder) for file in folder.glob("**/*") if file.is_file() and file.name != "lock"]
        late = {"last.ckpt": 1, "model.npz": 2, "status.json": 3}
        for file in sorted(files, key=lambda file: late.get(file.name, 0)):
            (home.path / file).parent.mkdir(parents=True, exist_ok=True)
            with replacing(home.path / file) as target:
                copyfile(folder / file, target)
        if Path("error.txt") not in files:
            home.error_file.unlink(missing_ok=True)

    def _release(self, trial: Any) -> None:
        for name in self.plan.work(trial.config).folders:
            self.held.pop(name, ExitStack()).close()

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self._release(trial)
        if error := (trial.last_result or {}).get("error"):
            self.errors[self.plan.work(trial.config).folders[0]] = error

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        if not ray_died():
            retry = f"retry {trial.num_failures} of {self.execution.retries}"
            name = self.plan.work(trial.config).folders[0]
            self.execution.say(f"{name}  its process died; it resumes from its checkpoint ({retry})")

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self._release(trial)
        if ray_died():
            return
        work, times = self.plan.work(trial.config), "once" if trial.num_failures == 1 else f"{trial.num_failures} times"
        reason = f"its process died {times}; memory may have run out"
        if isinstance(raised := trial.get_pickled_error(), RayTaskError):  # outside the run, such as a full disk of Ray
            reason = told(raised.cause)
        error = f"{reason}. Rerun the command to resume from its checkpoint"
        for folder in (RunFolder(self.home / name) for name in work.folders):
            if folder.state_now == "interrupted":
                folder.fail(error, f"{error}\n\nRay's report:\n{raised or 'none'}\n")
        self.errors[work.folders[0]] = error
