"""The options of `run` and `tune` on how trials run."""

from datetime import timedelta
from math import inf

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.sweep.pool import RayOptions
from rollcall.benchmark.sweep.times import read_time


def ray_options(
    gpus_per_trial: str = "0",
    retries: int = 1,
    checkpoint_every: str = "2m",
    storage: str = "",
    ray_address: str = "",
) -> RayOptions:
    """How trials run with Ray, from the options of a command.

    Raises:
        SettingError: an option is not allowed.
    """
    try:
        share = float(gpus_per_trial)
    except ValueError:
        share = -1.0
    if not 0 <= share < inf:
        raise SettingError(f"gpus-per-trial: {gpus_per_trial!r} is not allowed; must be a number from 0, such as 0.25")
    every = timedelta(seconds=read_time(checkpoint_every, "checkpoint-every"))
    return RayOptions(share, retries, every, storage, ray_address)
