"""Results into rankings, papers' tables, verdicts and figures, from MLflow or from the results that the suite keeps."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaderboard.ranking.table import Row, Table, Value, tabulate
    from leaderboard.results import Run, archive, load, unarchive

__all__ = ["Row", "Run", "Table", "Value", "archive", "load", "tabulate", "unarchive"]


def __getattr__(name: str) -> Any:
    # The command line asks this package for its commands; pandas and torch can wait until one of them is called.
    if name not in __all__:
        raise AttributeError(f"module 'leaderboard' has no attribute {name!r}")
    home = "ranking.table" if name in ("Row", "Table", "Value", "tabulate") else "results"
    return getattr(import_module(f"leaderboard.{home}"), name)
