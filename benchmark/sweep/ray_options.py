"""How trials run with Ray, as `rollcall run` and `rollcall tune` are told. This module imports no Ray."""

from dataclasses import dataclass
from datetime import timedelta

from benchmark.federation.simulation import CHECKPOINT_EVERY
from benchmark.sweep.executor import needed_by


@dataclass(frozen=True)
class RayOptions:
    """How trials run with Ray.

    Attributes:
        gpus_per_trial: the share of a GPU for each trial; with 0.25, four trials share a GPU; 0: CPU.
        retries: how often a trial is started again after its process died.
        checkpoint_every: time between two checkpoints of a trial.
        storage: a path or URL that all machines of a cluster without a shared disk reach, such as s3://bucket/runs;
            run folders travel through it. Empty: all machines see the store.
        address: of a Ray cluster; `auto`: the one of this machine; empty: RAY_ADDRESS, otherwise this machine alone.
    """

    gpus_per_trial: float = 0.0
    retries: int = 1
    checkpoint_every: timedelta = CHECKPOINT_EVERY
    storage: str = ""
    address: str = ""

    @property
    def needed_by(self) -> str:
        """The option of the command line that only Ray has and that is used; empty if none is."""
        return needed_by(self.storage, self.address, self.gpus_per_trial, self.retries)
