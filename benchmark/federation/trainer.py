"""The Lightning trainer of a trial, in which one training step is one round: its callbacks, precision and messages."""

import logging
import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from time import monotonic
from typing import Any, Literal, NamedTuple

import pandas as pd
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.profilers import PassThroughProfiler

from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.interruption import Interrupted
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, replacing

EVALUATIONS = "rollcall_evaluations"
"""The entry of a checkpoint with the number of evaluations up to its round."""


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
    trial: Trial, callbacks: Sequence[Callback], logger: Logger | bool = False, evaluation_batches: int | None = None
) -> Trainer:
    """A Lightning trainer whose steps are the trial's rounds; it evaluates so many batches of each split, or all."""
    return Trainer(
        max_epochs=1,
        max_steps=trial.rounds,
        accelerator=trial.numerics.device,
        devices=1,
        precision=PRECISIONS[trial.numerics.dtype].lightning,
        callbacks=[OwnSignals(), Evaluations(lambda t: trial.evaluation.due(t, trial.rounds)), *callbacks],
        logger=logger,
        profiler=NoProfiler(),
        limit_val_batches=evaluation_batches,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        check_val_every_n_epoch=None,
        val_check_interval=1,  # see `Evaluations`
    )


class NoProfiler(PassThroughProfiler):
    """Measures nothing. Lightning's own default enters and leaves 27 generator contexts in a round, for nothing."""

    NOTHING: AbstractContextManager[None] = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:  # type: ignore[override, unused-ignore]
        return self.NOTHING


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
    """Tells Lightning to evaluate the model after the rounds that are due."""

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


class Diverged(Exception):
    """A parameter or a metric is NaN or infinite after t rounds."""

    def __init__(self, t: int, quantity: str) -> None:
        super().__init__(f"diverged: {quantity} not finite after round {t}")
        self.t = t


class Recorder(Callback):
    """Records every evaluation: in memory, and in the run folder if there is one.

    It raises `Diverged` after the first round, or the first evaluation, that gives NaN or infinity. So it comes before
    the callbacks of the user and before `Checkpoints`, which then see finite numbers only.
    """

    def __init__(self, run: RunFolder | None) -> None:
        self.run = run
        self.rows = {} if run is None else {int(row["round"]): row for row in run.rows()}

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        server = federation.server.detach()
        # The sum is fast, and NaN or infinite if an entry is. It can also overflow, so look again at the entries.
        if not server.sum().isfinite() and not server.isfinite().all():
            raise Diverged(federation.t, "parameters are")

    def on_validation_start(self, trainer: Trainer, federation: LightningModule) -> None:
        self.began = monotonic()

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        wrong = [name for name, value in federation.measured.items() if not math.isfinite(value)]
        if wrong:
            raise Diverged(federation.t, f"{wrong[0]} is")
        row = {"round": federation.t, **federation.measured}
        # A run that resumes at the round of an evaluation may evaluate again, with the same result.
        if self.run is not None and not self.has(federation.t):
            self.run.append(row, monotonic() - self.began)
        self.rows[federation.t] = row

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[EVALUATIONS] = len(self.rows)

    def check(self, t: int, evaluations: int) -> None:
        """Compare with a checkpoint of round t, when there were so many evaluations.

        Raises:
            Damaged: metrics.jsonl has lost some.
        """
        kept = sum(earlier <= t for earlier in self.rows)
        if self.run is not None and kept < evaluations:
            raise Damaged(self.run.metrics, f"it has {kept} of the {evaluations} evaluations up to round {t}")

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


class Checkpoints(Callback):
    """Saves a checkpoint after the last round, at intervals of time before it, and when the run is asked to stop.

    Intervals of rounds would not do: a state of m models takes longer to write than most rounds take. Lightning's own
    ModelCheckpoint ignores its time interval under manual optimization (2.6.6). Without a run folder nothing is saved.
    A run that is `requested` to stop ends with `Interrupted`.
    """

    def __init__(self, run: RunFolder | None, rounds: int, every: timedelta, requested: Callable[[], bool]) -> None:
        self.run = run
        self.rounds = rounds
        self.every = every.total_seconds()
        self.requested = requested
        self.saved = monotonic()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        last = federation.t == self.rounds
        stop = not last and self.requested()
        if self.run is not None and (last or stop or monotonic() - self.saved >= self.every):
            # Replaced atomically, and the one before is kept. Lightning can resume only from the end of a round.
            with replacing(self.run.checkpoint, lasting=True) as scratch:
                trainer.save_checkpoint(scratch)
                if self.run.checkpoint.exists():
                    self.run.checkpoint.replace(self.run.previous_checkpoint)
            self.run.saved(federation.t)
            self.saved = monotonic()
        elif self.run is not None:
            self.run.reached(federation.t)
        if stop:
            raise Interrupted(f"stopped after round {federation.t} of {self.rounds}")
