"""Engines: how the local work of a round is computed. All engines give the same result up to rounding.

`auto` chooses in each call by the number of clients, the model and the minibatches.
"""

from collections.abc import Callable
from functools import cached_property
from math import inf

from rollcall.benchmark.engines.base import Engine as Engine
from rollcall.benchmark.engines.base import LocalTraining as LocalTraining
from rollcall.benchmark.engines.base import Work as Work
from rollcall.benchmark.engines.feed import Feed as Feed
from rollcall.benchmark.engines.feed import held_out_splits as held_out_splits
from rollcall.benchmark.engines.flat_task import Evaluator as Evaluator
from rollcall.benchmark.engines.flat_task import FlatTask as FlatTask
from rollcall.benchmark.engines.flat_task import float32_products as float32_products
from rollcall.benchmark.engines.flat_task import kernels_of_one_thread as kernels_of_one_thread
from rollcall.benchmark.engines.sequential import Sequential as Sequential
from rollcall.benchmark.engines.vectorised import Vectorised as Vectorised

SMALL_MODEL = 250_000
"""Parameters. Up to this size, several clients computed at once still fit in a CPU's caches."""

SMALL_BATCH = 60_000
"""Numbers in the minibatch of one client. Up to this size, several clients at once still fit in a CPU's caches."""

FEWEST = 6
"""Clients in a call, from which on a CPU computes them faster at once than one after another (docs/speed.md)."""


class Auto(Engine):
    """The faster engine in each call; the sequential one for whatever cannot be vectorised.

    The choice follows from the trial and the call alone, not from time measurements or the number of threads, because
    engines differ in the last digits.
    """

    def __init__(self, model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> None:
        super().__init__(model, feed, local, workers)
        self.sequential = Sequential(model, feed, local, workers)
        self.fewest = fewest(model, feed)

    @cached_property
    def vectorised(self) -> Vectorised | None:
        """None for a model that cannot be vectorised. Made when it is needed, with the precision that steps have."""
        try:
            return Vectorised(self.model, self.feed, self.local)
        except Exception:  # the same model has just worked in the sequential engine
            return None

    def of(self, clients: int) -> Engine:
        vectorised = self.vectorised if clients >= self.fewest else None
        return self.sequential if vectorised is None else vectorised


def fewest(model: FlatTask, feed: Feed) -> float:
    """The number of clients in a call from which on the vectorised engine is faster; infinity if it never is.

    It is where a client's step spends most of its time in Python rather than in arithmetic: on a GPU always, on a CPU
    with few parameters, few numbers in the longest minibatch, and no convolution (a parameter with four dimensions).
    """
    if feed.samples[0].device.type != "cpu":
        return 1  # captured steps of one client take a third of the time
    numbers = int(feed.minibatches.longest.max()) * sum(column[0].numel() for column in feed.samples)
    has_convolution = any(parameter.dim() == 4 for parameter in model.parameters_)
    small = sum(model.sizes) <= SMALL_MODEL and numbers <= SMALL_BATCH and not has_convolution
    return FEWEST if small else inf


ENGINES: dict[str, Callable[[FlatTask, Feed, LocalTraining, int], Engine]] = {
    "auto": Auto,
    "sequential": Sequential,
    "vectorised": Vectorised,
}
