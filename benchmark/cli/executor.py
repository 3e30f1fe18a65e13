"""What runs the trials of a command: Ray or this process, with which GPUs, and where the run folders are kept."""

from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli.shared import err
from benchmark.config.errors import SettingError
from benchmark.sweep.executor import executor_of as choose
from benchmark.sweep.executor import needed_by

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job
    from benchmark.sweep.storage import Storage


class Executor(StrEnum):
    ray = "ray"
    inline = "inline"


def executor_of(
    executor: Executor | None, storage: str = "", ray_address: str = "", gpus_per_trial: str = "0", retries: int = 1
) -> Executor:
    """The executor to use, as `benchmark.sweep.executor.executor_of` chooses it. A note for the user goes to stderr.

    Args:
        executor: what the user chose.
        storage, ray_address, gpus_per_trial, retries: options that only Ray has, as they are written.

    Raises:
        SettingError: the executor cannot be used here.
    """
    option = needed_by(storage, ray_address, gpus_per_trial != "0", retries)
    name, note = choose(None if executor is None else executor.value, option)
    if note:
        err.print(note, highlight=False, soft_wrap=True)
    return Executor(name)


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
