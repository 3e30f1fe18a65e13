"""Callbacks that keep what a run must not lose."""

from collections.abc import Callable
from datetime import timedelta
from time import monotonic

import pandas as pd
from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark.federation.interruption import Interrupted
from benchmark.federation.module import Federation
from benchmark.federation.run_folder import RunFolder


class Recorder(Callback):
    """Keeps every evaluation: in the run folder, or in memory where there is none.

    Args:
        run: the folder.
    """

    def __init__(self, run: RunFolder | None) -> None:
        self.run = run
        self.rows: dict[int, dict[str, float]] = {}
        if run is not None:
            for row in run.history().to_dict("records"):
                self.rows[int(row["round"])] = {str(name): value for name, value in row.items()}

    def on_validation_start(self, trainer: Trainer, federation: LightningModule) -> None:
        self.began = monotonic()

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        row = {"round": federation.t, **federation.measured}
        # A run that was killed repeats the rounds since its checkpoint, and measures them with the same result.
        if self.run is not None and not self.has(federation.t):
            self.run.append(row, monotonic() - self.began)
        self.rows[federation.t] = row

    def history(self) -> pd.DataFrame:
        return pd.DataFrame([self.rows[t] for t in sorted(self.rows)] or {"round": []})

    def has(self, t: int) -> bool:
        """Whether the model after t rounds was measured."""
        return t in self.rows


class Evaluations(Callback):
    """Tells Lightning after which rounds to evaluate.

    Args:
        due: whether the model after t rounds is measured.
    """

    def __init__(self, due: Callable[[int], bool]) -> None:
        self.due = due

    def on_train_batch_start(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        # Lightning evaluates after each batch whose number can be divided by this one.
        trainer.val_check_batch = 1 if self.due(federation.t + 1) else float("inf")


class Checkpoints(Callback):
    """Saves the run after its last round, and every so often before: by the clock, because a state of m models takes
    longer to write than most rounds.

    Lightning's own ModelCheckpoint does not look at the clock under manual optimization (2.6.6).

    Args:
        run: the folder.
        rounds: T.
        every: how much work a kill may lose.
    """

    def __init__(self, run: RunFolder, rounds: int, every: timedelta) -> None:
        self.run = run
        self.rounds = rounds
        self.every = every.total_seconds()
        self.saved = monotonic()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        if federation.t == self.rounds or monotonic() - self.saved >= self.every:
            save_checkpoint(trainer, self.run)
            self.saved = monotonic()


class Stop(Callback):
    """Ends a run that is asked to stop, after a whole round and with a checkpoint of it.

    Args:
        run: the folder; without one nothing is saved.
        rounds: T.
        requested: whether to stop, asked after every round.
    """

    def __init__(self, run: RunFolder | None, rounds: int, requested: Callable[[], bool]) -> None:
        self.run = run
        self.rounds = rounds
        self.requested = requested

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        if federation.t < self.rounds and self.requested():
            if self.run is not None:
                save_checkpoint(trainer, self.run)
            raise Interrupted(f"stopped after round {federation.t} of {self.rounds}")


def save_checkpoint(trainer: Trainer, run: RunFolder) -> None:
    """Replace the folder's checkpoint; at no moment is there half a one. Called at the end of a round, from where
    Lightning can go on."""
    scratch = run.checkpoint.with_suffix(".new")
    trainer.save_checkpoint(scratch)
    scratch.replace(run.checkpoint)
    assert isinstance(trainer.lightning_module, Federation)
    run.reached(trainer.lightning_module.t)
