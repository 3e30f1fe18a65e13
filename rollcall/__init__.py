"""A benchmark suite for federated learning when not every client answers: `simulate`, `run`, `tune` and `load`."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not Path(__file__).with_name("benchmark").is_dir():
    raise ImportError(
        f"{Path(__file__).parent}: the symbolic links of the source code are missing (a zip download, or Windows); "
        "clone with git (on Windows: git clone -c core.symlinks=true), or install an sdist or a wheel"
    )

from rollcall.benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from rollcall.benchmark.config.trial import Trial
    from rollcall.benchmark.federation.simulation import Result, load, simulate
    from rollcall.benchmark.search.tune import tune
    from rollcall.benchmark.sweep.run import Execution, run

__all__ = ["Execution", "Result", "SettingError", "Trial", "load", "run", "simulate", "tune"]


def __getattr__(name: str) -> Any:
    # Importing torch and Lightning takes seconds, which a command that only reads results need not wait for.
    home = {"Trial": "config.trial", "tune": "search.tune", "Execution": "sweep.run", "run": "sweep.run"}
    home |= dict.fromkeys(("Result", "load", "simulate"), "federation.simulation")
    if name not in home:
        raise AttributeError(f"module 'rollcall' has no attribute {name!r}")
    return getattr(import_module(f"rollcall.benchmark.{home[name]}"), name)
