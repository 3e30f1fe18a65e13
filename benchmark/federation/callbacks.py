"""Lightning callbacks of a run: record evaluations, save checkpoints, stop on request."""

from collections.abc import Callable
from datetime import timedelta
from time import monotonic

import pandas as pd
from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark.federation.interruption import Interrupted
from benchmark.federation.module import Federation
from benchmark.federation.run_folder import RunFolder, replacing


class Recorder(Callback):
    """Records every evaluation: in memory, and in the run folder if there is one.

    Args:
        run: the run folder.
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
        # A run that resumes at the round of an evaluation may evaluate again, with the same result.
        if self.run is not None and not self.has(federation.t):
            self.run.append(row, monotonic() - self.began)
        self.rows[federation.t] = row

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


class Evaluations(Callback):
    """Tells Lightning after which rounds to evaluate.

    Args:
        due: whether to evaluate the model after t rounds.
    """

    def __init__(self, due: Callable[[int], bool]) -> None:
        self.due = due

    def on_train_batch_start(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        # Lightning evaluates after each batch whose number is a multiple of this.
        trainer.val_check_batch = 1 if self.due(federation.t + 1) else float("inf")


class Checkpoints(Callback):
    """Saves a checkpoint after the last round, and before that at intervals of time.

    Intervals of rounds would not do: a state of m models takes longer to write than most rounds take. Lightning's own
    ModelCheckpoint ignores its time interval under manual optimization (2.6.6).

    Args:
        run: the run folder.
        rounds: T.
        every: time between two checkpoints.
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
    """Ends a run that is asked to stop, after a whole round, with a checkpoint.

    Args:
        run: the run folder; without one nothing is saved.
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
    """Replace the checkpoint in the run folder, atomically, and keep the one before.

    Lightning can resume only from the end of a round.
    """
    with replacing(run.checkpoint) as scratch:
        trainer.save_checkpoint(scratch)
        if run.checkpoint.exists():
            run.checkpoint.replace(run.previous_checkpoint)
    assert isinstance(trainer.lightning_module, Federation)
    run.reached(trainer.lightning_module.t)
