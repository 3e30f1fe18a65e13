"""Which executor runs the trials: Ray, or this process."""

from importlib.util import find_spec
from typing import Literal

from benchmark.config.errors import SettingError

INSTALL_RAY = "pip install 'rollcall[ray]'"

Name = Literal["ray", "inline"]


def needed_by(storage: object, address: str, gpus_per_trial: float, retries: int) -> str:
    """The first of these options that differs from its default, as on the command line; empty if none does."""
    used = {
        "--storage": storage,
        "--ray-address": address,
        "--gpus-per-trial": gpus_per_trial,
        "--retries": retries > 1,
    }
    return next((option for option, value in used.items() if value), "")


def executor_of(asked: Name | None, needed_by: str = "") -> tuple[Name, str]:
    """The executor to use: by default Ray if it is installed, otherwise inline.

    Args:
        asked: what the user chose; None for the default.
        needed_by: an option that only Ray has and that is used; empty for none.

    Returns:
        the executor, and a sentence for the user; empty if there is nothing to say.

    Raises:
        SettingError: Ray is needed and is not installed, or another executor was chosen.
    """
    if needed_by and asked == "inline":
        raise SettingError(f"--executor inline is not allowed with {needed_by}; must be ray")
    if needed_by:
        asked = "ray"
    if asked == "inline" or find_spec("ray"):
        return asked or "ray", ""
    if asked == "ray":
        raise SettingError(f"--executor ray needs Ray: {INSTALL_RAY}")
    return "inline", f"Ray is not installed: trials run one after another. For parallel trials: {INSTALL_RAY}"
