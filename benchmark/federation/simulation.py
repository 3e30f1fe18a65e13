"""`simulate`: one trial from settings to result, with Lightning; `load`: the result from a run folder."""

import logging
import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from pickle import UnpicklingError
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.trainer.states import TrainerFn

from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.digest import from_copies, own_code
from rollcall.benchmark.config.errors import SettingError, at
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.engines import FlatTask, float32_products, kernels_of_one_thread
from rollcall.benchmark.federation.build import PRECISIONS, build, copied, device_of, objective
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, replacing
from rollcall.benchmark.process import Interrupted, stop_requests
from rollcall.tasks import Task

CHECKPOINT_EVERY = timedelta(minutes=2)
"""Time between two checkpoints of a run."""


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a trial.

    Attributes:
        trial: its settings; `rounds` are those that were done, if a callback ended the run.
        model: [d], the method's result, which is evaluated: see `rollcall.algorithms.Algorithm.eval_models`.
        server: [d], the server's model; the same for most methods.
        history: a row for each evaluation: `round`, the number of rounds done, and `split/metric`.
        folder: the run folder, if there is one.
        diverged: rounds after which a parameter or a metric was NaN or infinite, which ended the run; None if none was.
            The models are then those of that round, and the history ends before it. Read from a folder in which a
            shorter run had finished, they are NaN: the folder keeps the models of the shorter one.
        buffers: of the model (BatchNorm statistics), by name.
    """

    trial: Trial
    model: np.ndarray
    server: np.ndarray
    history: pd.DataFrame
    folder: Path | None
    diverged: int | None = None
    buffers: dict[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        last = {} if self.history.empty else self.history.iloc[-1].to_dict()
        numbers = ", ".join(
            f"{name} {value:.4g}" for name, value in last.items() if not str(name).startswith(("cost/", "time/"))
        )
        return f"Result({self.trial.name}: {numbers}; in {self.folder or 'no folder'})"

    def module(self) -> Task:
        """The trained torch module: the trial's task with `model` and `buffers`, on the CPU and in evaluation mode.

        Each call builds a new one, for which it loads the data set.

        Raises:
            SettingError: the task cannot be built here.
        """
        with at("task"):
            task, data = self.trial.task.build(self.trial.seed)
            task = copied(task)  # it may be the user's own
        task.weigh(objective(self.trial, data), data)
        flat = FlatTask(task.to(PRECISIONS[self.trial.numerics.dtype].dtype))
        flat.move(torch.from_numpy(self.model))
        for name, buffer in zip(flat.buffer_names, flat.buffers_(), strict=True):
            buffer.copy_(torch.from_numpy(self.buffers[name]))
        return task.eval()


def simulate(
    trial: Trial | dict[str, Any] | str | Path,
    *,
    folder: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    logger: Logger | None = None,
    checkpoint_every: timedelta = CHECKPOINT_EVERY,
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Run a trial. With a folder: resume the run there, or return its result if it is finished.

    A finished run of fewer rounds continues from its last round. The result is bit-identical to one run of all rounds.
    Only with `evaluation.last.splits`, evaluations among the last rounds of the shorter run keep the splits that were
    measured there.
    A run that diverges ends early: see `Result.diverged`. It is not run again.
    A run that a callback ends, such as EarlyStopping, is a finished run of fewer rounds: see `Result.trial`.
    `simulate` restores the process-wide settings that it changes, such as threads, warnings and signal handlers.

    Args:
        trial: a `Trial`, a mapping as in an experiment file, or the path of a YAML file.
        folder: the run folder; without one nothing is written.
        callbacks, logger: Lightning's. A callback finds the last evaluation in `trainer.callback_metrics`.
        checkpoint_every: time between two checkpoints, which is the most work that a crash can lose; needs a folder.
        stop: asked after every round whether to stop; by default whether SIGINT (Ctrl-C) or SIGTERM was received.

    Raises:
        SettingError: a setting that is not allowed; nothing has been written. Or a damaged run folder.
        Interrupted: the run was asked to stop; its folder has a checkpoint of the last round.
    """
    trial = Trial.read(trial)
    run = None if folder is None else RunFolder(Path(folder))
    if run is not None and _has_result(run, trial):
        if run.altered_settings() or run.altered_copies():
            run.restore_settings(trial)
        return _stored(run, trial)
    precision = PRECISIONS[trial.numerics.dtype]
    with (
        quiet(),
        float32_products(precision.products),
        kernels_of_one_thread() as threads,
        stop_requests() if stop is None else nullcontext(stop) as requested,
    ):
        federation = build(trial, threads)
        records = Records(run)
        rounds = Rounds(trial, records, checkpoint_every, requested)
        trainer = Trainer(
            max_epochs=1,
            max_steps=trial.rounds,
            accelerator=device_of(trial),
            devices=1,
            plugins=[LightningEnvironment()],  # in a job of SLURM, too, a run is one process
            precision=precision.lightning,
            callbacks=[records, *callbacks, rounds],  # a row is recorded before another callback can fail
            logger=False if logger is None else logger,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            check_val_every_n_epoch=None,
            val_check_interval=1,  # see `Rounds`
        )
        with ExitStack() as stack:
            stack.callback(_detach, callbacks)
            if run is not None:
                stack.enter_context(run.locked())
                if _has_result(run, trial):  # another process may have run it meanwhile
                    return _stored(run, trial)
                if run.has_other(federation.content):
                    raise OtherData([run])
                records.read()
                device, content = trainer.strategy.root_device.type, federation.content
                stack.enter_context(run.running(trial, device=device, threads=threads, content=content))
            _train(trainer, federation, records, trial)
            if rounds.stopped:
                raise Interrupted(f"stopped after round {federation.t} of {trial.rounds}")
            model, server, buffers = records.end(federation)
    path, diverged = None if run is None else run.path, federation.t if records.diverged else None
    if diverged is None and federation.t < trial.rounds:  # a callback ended it
        trial = trial.model_copy(update={"rounds": federation.t})
    return Result(trial, model, server, own_rows(records.history(), trial), path, diverged, buffers)


def load(folder: Path | str, *, trust: bool = False) -> Result:
    """The result of a finished run from its folder, as `simulate` returned it.

    Args:
        folder: the run folder.
        trust: allow to run code that is not the suite's, if the trial names some. Files are those in `source/` of the
            run folder: the code that the run had.

    Raises:
        SettingError: it is not the folder of a finished trial, or its own code is not trusted or not that of the run.
    """
    run = RunFolder(Path(folder))
    if not run.settings.is_file():
        raise SettingError(f"{run.path} is not a run folder; it has no trial.yaml")
    settings = load_yaml(run.settings)
    if fault := run.altered_settings() or ("" if isinstance(settings, dict) else "not a YAML mapping"):
        raise Damaged(run.settings, fault)
    if "analysis" in settings:
        raise SettingError(f"{run.path} is the run folder of an analysis, which trains no model; see its metrics.jsonl")
    if not (run.path / "model.npz").is_file():
        raise SettingError(f"{run.path} has no model; its state is {run.state}. Only a finished trial has a model")
    code = own_code(settings)
    if code and not trust:
        raise SettingError(
            f"{run.path} names code that is not the suite's: {', '.join(code)}. To run it, read {run.path / 'source'} "
            "and then say trust=True, or --trust"
        )
    if fault := run.altered_copies():  # before any of it runs
        raise SettingError(f"{run.path / 'source'}: {fault}; rerun the command of the run, which writes it again")
    trial = Trial.read(from_copies(settings, run.path))
    known = run.status.get("sources", {}).values()
    changed = [source.file for source in trial.sources if known and source.digest[:10] not in known]
    if changed:  # in an installed package, of which no copy runs
        raise SettingError(f"{changed[0]} is not allowed with {run.path}; it is not the code of this run any more")
    # A finished run that is being continued for more rounds keeps the model of the rounds that are done.
    return _stored(run, trial.model_copy(update={"rounds": run.finished or trial.rounds}))


class Records(Callback):
    """The evaluations of a run: in memory, and in the run folder if there is one. NaN or infinity ends the run.

    Attributes:
        rows: an evaluation each, by round.
        diverged: why the run diverged, once it has.
    """

    def __init__(self, run: RunFolder | None) -> None:
        self.run = run
        self.rows: dict[int, dict[str, float]] = {}
        self.diverged = ""
        self.began = monotonic()

    def read(self) -> None:
        """Take in the evaluations of the run folder."""
        if self.run is not None:
            self.rows = {int(row["round"]): row for row in self.run.rows()}

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        self.take(federation.t, federation.measured)
        if self.diverged:
            stop(trainer)

    def take(self, t: int, metrics: dict[str, float]) -> None:
        """Record the evaluation after t rounds, unless a number in it is not finite."""
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong:
            self.diverged = f"diverged: {wrong[0]} is not finite after round {t}"
            return
        row = {"round": t, **metrics}
        # A run that resumes at the round of an evaluation may evaluate again, with the same result.
        if self.run is not None and t not in self.rows:
            self.run.append(row, monotonic() - self.began)
        self.rows[t] = row

    def look_at(self, server: torch.Tensor, t: int) -> None:
        """Notice a server's model after t rounds that is NaN or infinite."""
        # The sum is fast, and NaN or infinite if an entry is. It can also overflow, so look again at the entries.
        if not server.sum().isfinite() and not server.isfinite().all():
            self.diverged = f"diverged: parameters are not finite after round {t}"

    def resume_at(self, t: int) -> None:
        """Forget the evaluations of later rounds than t. The resumed run makes them again."""
        self.rows = {earlier: row for earlier, row in self.rows.items() if earlier <= t}
        if self.run is not None:
            self.run.resume_at(t)

    def end(self, federation: Federation) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """The final models, as evaluated and the server's, and the buffers; the run folder keeps them."""
        model, server, flat = _numpy(federation.eval_models[""]), _numpy(federation.server), federation.model
        buffers = {name: _numpy(value) for name, value in zip(flat.buffer_names, flat.buffers_(), strict=True)}
        if self.run is not None:
            if not self.diverged or not self.run.finished:  # a shorter run that finished here keeps its model
                self.run.save_models(federation.t, model, server, buffers)
            if self.diverged:
                self.run.end_as_diverged(federation.t, self.diverged)
            else:
                self.run.ends_with(finished=federation.t)  # a callback may have ended it before the last round
        return model, server, buffers

    def history(self) -> pd.DataFrame:
        """A row for each evaluation, by round."""
        return pd.DataFrame([self.rows[t] for t in sorted(self.rows)] or {"round": []})


class Rounds(Callback):
    """What Lightning does between two rounds: evaluate where it is due, save checkpoints, and stop.

    A checkpoint is saved after the last round, at intervals of time before it, and when the run is asked to stop, also
    by a callback such as EarlyStopping. In a round that is evaluated it is saved after the evaluation: callbacks such
    as EarlyStopping count the evaluation, and their state is in the checkpoint.
    Intervals of rounds would not do: a state of m models takes longer to write than most rounds take. Lightning's own
    ModelCheckpoint ignores its time interval under manual optimization (2.6.6). Without a run folder nothing is saved.

    A run that is `requested` to stop, and one whose model is NaN or infinite, ends after the round. No checkpoint holds
    a model that diverged.
    """

    def __init__(self, trial: Trial, records: Records, every: timedelta, requested: Callable[[], bool]) -> None:
        self.trial, self.records, self.run = trial, records, records.run
        self.every, self.requested = every.total_seconds(), requested
        self.stopped = False
        self.saved = monotonic()
        self.handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Lightning's handler for SIGTERM ends an evaluation between two batches, and saves no checkpoint (2.6.6).
        if threading.current_thread() is threading.main_thread():
            for number, handler in self.handlers.items():
                signal.signal(number, handler)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.on_train_start(trainer, pl_module)
        self.records.began = monotonic()

    def on_train_batch_start(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        # Lightning evaluates after each batch whose number is a multiple of this.
        due = self.trial.evaluation.due(federation.t + 1, self.trial.rounds)
        trainer.val_check_batch = 1 if due else float("inf")

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        self.records.look_at(federation.server.detach(), federation.t)
        if self.records.diverged:
            stop(trainer)
            return
        if trainer.val_check_batch != 1:  # else after the evaluation, which callbacks such as EarlyStopping count
            self._between(trainer, federation.t)

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        if trainer.state.fn == TrainerFn.FITTING and not self.records.diverged:
            self._between(trainer, federation.t)

    def _between(self, trainer: Trainer, t: int) -> None:
        """Save a checkpoint if it is time, and stop if asked to. Called after each round, and its evaluation."""
        last = t == self.trial.rounds
        self.stopped = not last and self.requested()
        # Lightning evaluates at the end of a run that a callback ends, and EarlyStopping decides in an evaluation.
        if last or self.stopped or trainer.should_stop or monotonic() - self.saved >= self.every:
            self._save(trainer, t)
        elif self.run is not None:
            self.run.reached(t)
        if self.stopped:
            stop(trainer)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint["trial"] = self.trial.digest

    def _save(self, trainer: Trainer, t: int) -> None:
        if self.run is not None:
            self.run.sign(t)  # first: no checkpoint may outlast its evaluations
            with replacing(self.run.checkpoint, lasting=True) as scratch:
                trainer.save_checkpoint(scratch)
            self.saved = monotonic()


def stop(trainer: Trainer) -> None:
    """End after this round, without the evaluation that Lightning makes when it is asked to stop."""
    trainer.should_stop, trainer.limit_val_batches = True, 0


@contextmanager
def quiet() -> Iterator[None]:
    """Without Lightning's advice on loaders, devices and steps, which does not apply to rounds."""
    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            yield
    finally:
        log.setLevel(level)


class Refused(SettingError):
    """The run folder cannot take the trial. It stays as it is."""


class OtherData(Refused):
    """The user's own task makes other data now than for these runs."""

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        super().__init__(
            f"task: makes other data now than for the run in {runs[0].path}{more}. To run again: delete such "
            "folders, as `rollcall run` does with --redo-changed. To keep both: another store. A task must make the "
            "same data in each call"
        )


def _has_result(run: RunFolder, trial: Trial) -> bool:
    """Whether the folder holds the result of the trial, because the run finished or diverged.

    Raises Refused: it holds another trial, or more rounds of this one.
    """
    status, finished = run.status, run.finished
    if "digest" in status and status["digest"] != trial.digest:
        raise Refused(
            f"folder: {run.path} is not allowed; it holds another trial, {status['name']}. Choose another folder"
        )
    if finished > trial.rounds:
        raise Refused(
            f"rounds: {trial.rounds} is not allowed with {run.path}, which holds {finished} rounds of this trial; "
            "must be at least as many"
        )
    if finished == trial.rounds or run.diverged_within(trial.rounds):
        return True
    with suppress(OSError, RuntimeError, UnpicklingError, AttributeError, KeyError):  # `resumable` says what is wrong
        checkpoint = torch.load(run.checkpoint, map_location="cpu", weights_only=True, mmap=True)
        if checkpoint.get("trial", trial.digest) != trial.digest:
            return False
        if (done := int(checkpoint["global_step"])) > trial.rounds:
            raise Refused(f"rounds: {trial.rounds} is not allowed; must be at least {done}, already done")
        had = {row["round"] for row in run.rows()}
        missing = [t for t in range(done) if trial.evaluation.due(t, trial.rounds) and t not in had]
        if missing:  # the run was begun with more rounds
            raise Refused(
                f"rounds: {trial.rounds} is not allowed with {run.path}, which was not evaluated after round "
                f"{missing[0]}; use the number of rounds with which it was begun, or another store"
            )
    return False


def _stored(run: RunFolder, trial: Trial) -> Result:
    """The result of a run that finished or diverged."""
    diverged = run.status["diverged"] if run.diverged_within(trial.rounds) else None
    arrays = run.models()
    model, server = arrays["model"], arrays["server"]
    if diverged is not None and run.finished:  # these are of the shorter run
        model, server = np.full_like(model, np.nan), np.full_like(server, np.nan)
    buffers = {name.removeprefix("buffer/"): value for name, value in arrays.items() if name.startswith("buffer/")}
    return Result(trial, model, server, own_rows(run.history(), trial), run.path, diverged, buffers)


def own_rows(history: pd.DataFrame, trial: Trial) -> pd.DataFrame:
    """The rows that one run of the trial has.

    A run folder also keeps the last evaluations of a shorter run that was continued, and those of a longer run that was
    interrupted later.
    """
    own = [t <= trial.rounds and trial.evaluation.due(int(t), trial.rounds) for t in history["round"]]
    return history[np.array(own, dtype=bool)].reset_index(drop=True)


def _train(trainer: Trainer, federation: Federation, records: Records, trial: Trial) -> None:
    """All rounds, with an evaluation before the first and after the last, and of a round whose evaluation was lost."""
    resume = None if records.run is None else records.run.resumable()
    if resume is not None:
        federation.load_state_dict(torch.load(resume, map_location="cpu", weights_only=True)["state_dict"])
    records.resume_at(federation.t)
    try:
        if trial.evaluation.due(federation.t, trial.rounds) and federation.t not in records.rows:
            trainer.validate(federation, verbose=False)
        if not records.diverged:
            trainer.fit(federation, ckpt_path=resume)
        if trainer.limit_val_batches and federation.t not in records.rows:
            trainer.validate(federation, verbose=False)
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):  # Lightning turns it into an exit with code 1
            raise end.__context__ from None
        raise


def _detach(callbacks: Sequence[Callback]) -> None:
    """Remove the methods of the federation that Lightning sets on callbacks, which would keep its models alive."""
    for callback in callbacks:
        for name in ("log", "log_dict"):
            vars(callback).pop(name, None)


def _numpy(vector: torch.Tensor) -> np.ndarray:
    return vector.detach().cpu().numpy().copy()
