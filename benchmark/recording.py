"""Callbacks that keep what a run must not lose."""

from datetime import timedelta
from time import monotonic

import pandas as pd
from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark.federation import Federation
from benchmark.folder import RunFolder


class Recorder(Callback):
    """Keeps every evaluation: in the run folder, or in memory where there is none.

    Args:
        run: the folder.
    """

    def __init__(self, run: RunFolder | None) -> None:
        self.run = run
        self.rows: list[dict[str, float]] = []

    def on_validation_start(self, trainer: Trainer, federation: LightningModule) -> None:
        self.began = monotonic()

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        row = {"round": federation.t, **federation.measured}
        self.rows.append(row)
        if self.run is not None:
            self.run.append(row, monotonic() - self.began)

    def history(self) -> pd.DataFrame:
        return self.run.history() if self.run is not None else pd.DataFrame(self.rows or {"round": []})

    def has(self, t: int) -> bool:
        """Whether the model after t rounds was measured."""
        return bool((self.history()["round"] == t).any())


class Checkpoints(Callback):
    """Saves the run every so often; by the clock, because a state of m models takes longer to write than most rounds.

    Lightning's own ModelCheckpoint does not look at the clock under manual optimization (2.6.6).

    Args:
        run: the folder.
        every: how much work a stop may lose.
    """

    def __init__(self, run: RunFolder, every: timedelta) -> None:
        self.run = run
        self.every = every.total_seconds()
        self.saved = monotonic()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        if monotonic() - self.saved >= self.every:
            save_checkpoint(trainer, self.run)
            self.saved = monotonic()


def save_checkpoint(trainer: Trainer, run: RunFolder) -> None:
    """Replace the folder's checkpoint; at no moment is there half a one."""
    scratch = run.checkpoint.with_suffix(".new")
    trainer.save_checkpoint(scratch)
    scratch.replace(run.checkpoint)
