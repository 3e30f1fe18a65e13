"""Engines: how the local work of a round is computed. All engines give the same result up to rounding."""

from collections.abc import Callable

from rollcall.benchmark.engines.auto import fastest
from rollcall.benchmark.engines.base import Engine, Work
from rollcall.benchmark.engines.evaluator import Evaluator
from rollcall.benchmark.engines.feed import Feed
from rollcall.benchmark.engines.flat_task import FlatTask
from rollcall.benchmark.engines.held_out import held_out_splits
from rollcall.benchmark.engines.local_training import Adam, LocalTraining
from rollcall.benchmark.engines.sequential import Sequential
from rollcall.benchmark.engines.vectorised import Vectorised

ENGINES: dict[str, Callable[[FlatTask, Feed, LocalTraining, int], Engine]] = {
    "auto": fastest,
    "sequential": Sequential,
    "vectorised": Vectorised,
}

__all__ = [
    "ENGINES",
    "Adam",
    "Engine",
    "Evaluator",
    "Feed",
    "FlatTask",
    "LocalTraining",
    "Sequential",
    "Vectorised",
    "Work",
    "fastest",
    "held_out_splits",
]
