"""The Lightning trainer of a trial: one training step is one round."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.profilers import PassThroughProfiler

from benchmark.config.trial import Trial
from benchmark.federation.callbacks import Evaluations
from benchmark.federation.precision import PRECISIONS

ACCELERATORS = {"auto": "auto", "cpu": "cpu", "cuda": "gpu"}


class NoProfiler(PassThroughProfiler):
    """Measures nothing. Lightning's own default enters and leaves 27 generator contexts in a round, for nothing."""

    NOTHING: AbstractContextManager[None] = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:  # type: ignore[override, unused-ignore]
        return self.NOTHING


def trainer_of(
    trial: Trial, callbacks: Sequence[Callback], logger: Logger | bool = False, evaluation_batches: int | None = None
) -> Trainer:
    """A Lightning trainer whose steps are the trial's rounds.

    Args:
        trial: the settings.
        callbacks, logger: Lightning's.
        evaluation_batches: the most batches of each split that are evaluated; None for all.
    """
    return Trainer(
        max_epochs=1,
        max_steps=trial.rounds,
        accelerator=ACCELERATORS[trial.numerics.device],
        devices=1,
        precision=PRECISIONS[trial.numerics.dtype].lightning,
        callbacks=[Evaluations(lambda t: trial.evaluation.due(t, trial.rounds)), *callbacks],
        logger=logger,
        profiler=NoProfiler(),
        limit_val_batches=evaluation_batches,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        check_val_every_n_epoch=None,
        val_check_interval=1,  # see `callbacks.Evaluations`
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
