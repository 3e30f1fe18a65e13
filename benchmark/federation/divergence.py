"""Divergence: a run ends early when its parameters or metrics are NaN or infinite."""

import math

from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark.federation.module import Federation


class Diverged(Exception):
    """A parameter or a metric is NaN or infinite.

    Args:
        t: rounds done.
        quantity: what is not finite.
    """

    def __init__(self, t: int, quantity: str) -> None:
        super().__init__(f"diverged: {quantity} not finite after round {t}")
        self.t = t


class Divergence(Callback):
    """Raises `Diverged` after the first round, or the first evaluation, that gives NaN or infinity.

    It must come before callbacks that record evaluations or save checkpoints, so that these hold finite numbers only.
    """

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        assert isinstance(federation, Federation)
        server = federation.server.detach()
        # The sum is fast, and NaN or infinite if an entry is. It can also overflow, so look again at the entries.
        if not server.sum().isfinite() and not server.isfinite().all():
            raise Diverged(federation.t, "parameters are")

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        assert isinstance(federation, Federation)
        wrong = [name for name, value in federation.measured.items() if not math.isfinite(value)]
        if wrong:
            raise Diverged(federation.t, f"{wrong[0]} is")
