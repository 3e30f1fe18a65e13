"""What runs the trials of a command: Ray or this process, with which GPUs, and where the run folders are kept."""

import os
from enum import StrEnum
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli.options import err
from benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job
    from benchmark.sweep.storage import Storage

INSTALL_RAY = "pip install 'rollcall[ray]'"


class Executor(StrEnum):
    ray = "ray"
    inline = "inline"


def executor_of(executor: Executor | None, storage: str = "", ray_address: str = "") -> Executor:
    """The executor to use: by default Ray if it is installed, otherwise inline, with a line that says so.

    Under torchrun, whose processes compute one trial together, always inline.

    Args:
        executor: what the user chose.
        storage, ray_address: options that only Ray has; empty if they are not used.

    Raises:
        SettingError: Ray is needed and is not installed, or another executor was chosen, or torchrun started this
            process.
    """
    needed_by = "--storage" if storage else "--ray-address" if ray_address else ""
    if needed_by and executor is Executor.inline:
        raise SettingError(f"--executor inline is not allowed with {needed_by}; must be ray")
    if needed_by:
        executor = Executor.ray
    if "TORCHELASTIC_RUN_ID" in os.environ:
        if executor is Executor.ray:
            raise SettingError("--executor: ray is not allowed under torchrun; must be inline")
        return Executor.inline
    if executor is Executor.inline or find_spec("ray"):
        return executor or Executor.ray
    if executor is Executor.ray:
        raise SettingError(f"--executor ray needs Ray: {INSTALL_RAY}")
    err.print(
        f"Ray is not installed: trials run one after another. For parallel trials: {INSTALL_RAY}",
        highlight=False,
        soft_wrap=True,
    )
    return Executor.inline


def gpus_of(text: str, sweeps: list[list["Job"]]) -> float:
    """The share of a GPU for each trial.

    Raises:
        SettingError: the text is neither a number from 0 nor `auto`.
    """
    if text == "auto":
        from benchmark.sweep.gpu_share import automatic

        share, why = automatic([job.trial for jobs in sweeps for job in jobs])
        err.print(why, highlight=False, soft_wrap=True)
        return share
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < inf:
        raise SettingError(f"gpus-per-trial: {text!r} is not allowed; must be a number from 0, such as 0.25, or auto")
    return share


def storage_of(text: str, store: Path) -> "Storage | None":
    """The storage at a path or URL; None if the text is empty.

    Raises:
        SettingError: see `Storage.of`.
    """
    if not text:
        return None
    from benchmark.sweep.storage import Storage

    return Storage.of(text, store)
