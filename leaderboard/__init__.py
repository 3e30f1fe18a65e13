"""From results to rankings, the papers' tables, claims and figures."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollcall.leaderboard.ranking.table import Ranking, Row, rank
    from rollcall.leaderboard.results import archive, load, unarchive
    from rollcall.leaderboard.run import Run
    from rollcall.leaderboard.table import Number, Table

__all__ = ["Number", "Ranking", "Row", "Run", "Table", "archive", "load", "rank", "unarchive"]

_HOMES = {
    "ranking.table": ("Ranking", "Row", "rank"),
    "results": ("archive", "load", "unarchive"),
    "run": ("Run",),
    "table": ("Number", "Table"),
}


def __getattr__(name: str) -> Any:
    # The command line imports this package for its commands. It imports pandas only when one of them is called.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"rollcall.leaderboard.{home}"), name)
    raise AttributeError(f"module 'leaderboard' has no attribute {name!r}")
