"""What runs the trials of a command: Ray or this process, with which GPUs, and where the run folders are kept."""

from enum import StrEnum
from math import inf

from benchmark.cli.options import err
from benchmark.config.errors import SettingError
from benchmark.sweep.executor import executor_of as choose
from benchmark.sweep.executor import needed_by


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


def gpus_of(text: str) -> float:
    """The share of a GPU for each trial.

    Raises:
        SettingError: the text is no number from 0.
    """
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < inf:
        raise SettingError(f"gpus-per-trial: {text!r} is not allowed; must be a number from 0, such as 0.25")
    return share


def storage_of(text: str) -> str:
    """The storage at a path or URL, if one is named.

    Raises:
        SettingError: nothing can be written there.
    """
    if not text:
        return ""
    from benchmark.sweep.ray_executor import checked_storage

    return checked_storage(text)
