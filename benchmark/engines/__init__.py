"""Engines: how the local work of a round is computed, which must not show in a result beyond rounding."""

from collections.abc import Callable
from functools import partial

import torch

from benchmark.engines.choosing import fastest
from benchmark.engines.evaluating import Evaluator
from benchmark.engines.feed import Feed, held_out
from benchmark.engines.flat import FlatTask
from benchmark.engines.local import LocalTraining
from benchmark.engines.sequential import Sequential
from benchmark.engines.vectorised import Vectorised
from benchmark.engines.work import Engine, Work

ENGINES: dict[str, Callable[[FlatTask, Feed, LocalTraining, int], Engine]] = {
    "auto": fastest,
    "sequential": Sequential,
    "vectorised": Vectorised,
    "compiled": partial(Vectorised, compiler=partial(torch.compile, dynamic=False)),
}

__all__ = [
    "ENGINES",
    "Engine",
    "Evaluator",
    "Feed",
    "FlatTask",
    "LocalTraining",
    "Sequential",
    "Vectorised",
    "Work",
    "fastest",
    "held_out",
]
