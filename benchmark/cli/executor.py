"""The options of `run` and `tune` on how trials run."""

from datetime import timedelta
from math import inf
from typing import Annotated

import typer

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import read_time
from rollcall.benchmark.sweep.pool import Executor, RayOptions

ExecutorOption = Annotated[
    Executor | None, typer.Option(help="Parallel (ray), or one by one (inline). Default: ray if installed.")
]


def ray_options(
    gpus_per_trial: Annotated[str, typer.Option(metavar="SHARE", help="GPU share of a trial with ray; 0: CPU.")] = "0",
    retries: Annotated[int, typer.Option(min=0, help="Restarts of a trial whose process died, with ray.")] = 1,
    checkpoint_every: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two checkpoints of a trial: 30s, 5m.")
    ] = "2m",
    ray_address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Ray cluster, or auto. Default: RAY_ADDRESS, else this machine.")
    ] = "",
    storage: Annotated[
        str, typer.Option("--storage", metavar="URL", help="Where a cluster without a shared disk keeps run folders.")
    ] = "",
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
