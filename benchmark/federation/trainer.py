"""The Lightning trainer of a trial, in which one training step is one round: its callbacks, precision and messages."""

import logging
import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Literal, NamedTuple

import pandas as pd
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger

from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import RunFolder, replacing


class Precision(NamedTuple):
    """One value of `numerics.dtype`; for `products` see `torch.set_float32_matmul_precision`."""

    dtype: torch.dtype
    lightning: Literal["32-true", "64-true", "bf16-mixed"]
    products: str = "highest"


PRECISIONS = {
    "float32": Precision(torch.float32, "32-true"),
    "float64": Precision(torch.float64, "64-true"),
    "tf32": Precision(torch.float32, "32-true", products="high"),
    "bf16_mixed": Precision(torch.float32, "bf16-mixed"),
}


def trainer_of(
    trial: Trial, callbacks: Sequence[Callback], loggers: Sequence[Logger] = (), evaluation_batches: int | None = None
) -> Trainer:
    """A Lightning trainer whose steps are the trial's rounds; it evaluates so many batches of each split, or all."""
    return Trainer(
        max_epochs=1,
        max_steps=trial.rounds,
        accelerator=trial.numerics.device,
        devices=1,
        precision=PRECISIONS[trial.numerics.dtype].lightning,
        callbacks=[OwnSignals(), Evaluations(lambda t: trial.evaluation.due(t, trial.rounds)), *callbacks],
        logger=list(loggers),
        limit_val_batches=evaluation_batches,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        check_val_every_n_epoch=None,
        val_check_interval=1,  # see `Evaluations`
    )


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


@contextmanager
def matrix_products(precision: str) -> Iterator[None]:
    """See `torch.set_float32_matmul_precision`. It applies to the whole process and is restored at the end."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Evaluations(Callback):
    """Tells Lightning to evaluate the model after the rounds that are due, which are not all at one interval."""

    def __init__(self, due: Callable[[int], bool]) -> None:
        self.due = due

    def on_train_batch_start(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        # Lightning evaluates after each batch whose number is a multiple of this.
        trainer.val_check_batch = 1 if self.due(federation.t + 1) else float("inf")


class OwnSignals(Callback):
    """Puts back the handlers of signals that were set when it was made.

    Lightning's own for SIGTERM ends an evaluation between two batches, with a `SystemExit`, and no checkpoint (2.6.6).
    """

    def __init__(self) -> None:
        self.handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self.handlers.items():
                signal.signal(number, handler)

    on_validation_start = on_train_start


class Records(Logger):
    """Records every evaluation: in memory, and in the run folder if there is one. NaN or infinity ends the run.

    Attributes:
        rows: an evaluation each, by round.
        diverged: why the run diverged, once it has.
    """

    def __init__(self, run: RunFolder | None) -> None:
        super().__init__()
        self.run = run
        self.rows = {} if run is None else {int(row["round"]): row for row in run.rows()}
        self.diverged = ""
        self.began = monotonic()

    @property
    def name(self) -> str:
        return "rollcall"

    version = name

    def log_hyperparams(self, *_: object, **__: object) -> None:
        """The settings are in trial.yaml."""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Record the evaluation after round `step`, unless a number in it is not finite."""
        assert step is not None
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong:
            self.diverged = f"diverged: {wrong[0]} is not finite after round {step}"
            return
        row = {"round": step, **metrics}
        # A run that resumes at the round of an evaluation may evaluate again, with the same result.
        if self.run is not None and not self.has(step):
            self.run.append(row, monotonic() - self.began)
        self.rows[step] = row

    def resume_at(self, t: int) -> None:
        """Forget the evaluations of later rounds than t. The resumed run makes them again."""
        self.rows = {earlier: row for earlier, row in self.rows.items() if earlier <= t}
        if self.run is not None:
            self.run.resume_at(t)

    def history(self) -> pd.DataFrame:
        """A row for each evaluation, by round."""
        return pd.DataFrame([self.rows[t] for t in sorted(self.rows)] or {"round": []})

    def has(self, t: int) -> bool:
        """Whether the model after t rounds was evaluated."""
        return t in self.rows


def stop(trainer: Trainer) -> None:
    """End after this round, without the evaluation that Lightning makes when it is asked to stop."""
    trainer.should_stop, trainer.limit_val_batches = True, 0


class Checkpoints(Callback):
    """Saves a checkpoint after the last round, at intervals of time before it, and when the run is asked to stop.

    Intervals of rounds would not do: a state of m models takes longer to write than most rounds take. Lightning's own
    ModelCheckpoint ignores its time interval under manual optimization (2.6.6). Without a run folder nothing is saved.
    A run that is `requested` to stop, and one whose model is NaN or infinite, ends after the round. No checkpoint holds
    a model that diverged.
    """

    def __init__(self, records: Records, rounds: int, every: timedelta, requested: Callable[[], bool]) -> None:
        self.records, self.run = records, records.run
        self.rounds = rounds
        self.every = every.total_seconds()
        self.requested = requested
        self.stopped = False
        self.saved = monotonic()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        server = federation.server.detach()
        # The sum is fast, and NaN or infinite if an entry is. It can also overflow, so look again at the entries.
        if not server.sum().isfinite() and not server.isfinite().all():
            self.records.diverged = f"diverged: parameters are not finite after round {federation.t}"
            stop(trainer)
            return
        last = federation.t == self.rounds
        self.stopped = not last and self.requested()
        if self.run is not None and (last or self.stopped or monotonic() - self.saved >= self.every):
            self.run.sign(federation.t)  # first: no checkpoint may outlast its evaluations
            with replacing(self.run.checkpoint, lasting=True) as scratch:
                trainer.save_checkpoint(scratch)
            self.saved = monotonic()
        elif self.run is not None:
            self.run.reached(federation.t)
        if self.stopped:
            stop(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.records.began = monotonic()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.records.diverged:
            stop(trainer)
