"""Puts roll call, clients and algorithm together: settings, engine, federated loop, sweeps, results."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmark.config.errors import SettingError
from benchmark.light_imports import defer_torchmetrics

if TYPE_CHECKING:
    from benchmark.config.trial import Trial
    from benchmark.federation.simulation import Result, load, simulate
    from benchmark.search.api import tune
    from benchmark.sweep.pool import RayOptions

defer_torchmetrics()  # before anything imports Lightning

__all__ = ["RayOptions", "Result", "SettingError", "Trial", "load", "simulate", "tune"]


def __getattr__(name: str) -> Any:
    # Importing torch and Lightning takes seconds, which a command that only reads results need not wait for.
    home = {
        "Result": "benchmark.federation.simulation",
        "load": "benchmark.federation.simulation",
        "simulate": "benchmark.federation.simulation",
        "Trial": "benchmark.config.trial",
        "tune": "benchmark.search.api",
        "RayOptions": "benchmark.sweep.pool",
    }
    if name not in home:
        raise AttributeError(f"module 'benchmark' has no attribute {name!r}")
    return getattr(import_module(home[name]), name)
