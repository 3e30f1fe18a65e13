"""Engines: how the local work of a round is computed. All engines give the same result up to rounding."""

from collections.abc import Callable

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.engines.base import Engine as Engine
from rollcall.benchmark.engines.base import LocalTraining as LocalTraining
from rollcall.benchmark.engines.base import Work as Work
from rollcall.benchmark.engines.feed import Feed as Feed
from rollcall.benchmark.engines.feed import held_out_splits as held_out_splits
from rollcall.benchmark.engines.flat_task import Evaluator as Evaluator
from rollcall.benchmark.engines.flat_task import FlatTask as FlatTask
from rollcall.benchmark.engines.flat_task import kernels_of_one_thread as kernels_of_one_thread
from rollcall.benchmark.engines.sequential import Sequential as Sequential
from rollcall.benchmark.engines.vectorised import Vectorised as Vectorised

SMALL_MODEL = 250_000
"""Parameters. Up to this size, several clients computed at once still fit in a CPU's caches."""

SMALL_BATCH = 60_000
"""Numbers in the minibatch of one client. Up to this size, several clients at once still fit in a CPU's caches."""


def fastest(model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> Engine:
    """Vectorised on a GPU, and on a CPU if `is_small`; sequential otherwise, and if a model cannot be vectorised.

    The arguments are those of an engine. The choice follows from the trial alone, not from time measurements or the
    number of threads, because engines differ in the last digits.
    """
    on_cpu = model.parameters_[0].device.type == "cpu"
    if not on_cpu or is_small(model, feed):
        try:
            return Vectorised(model, feed, local, workers)
        except SettingError:  # torch.func cannot vectorise the loss
            pass
    return Sequential(model, feed, local, workers)


def is_small(model: FlatTask, feed: Feed) -> bool:
    """Whether a client's step spends most of its time in Python rather than in arithmetic.

    This holds for few parameters, few numbers in the longest minibatch, and no convolution (a parameter with four
    dimensions). With one or two clients there is nothing to gain from computing them together.
    """
    longest = feed.minibatches.longest
    numbers = int(longest.max()) * sum(column[0].numel() for column in feed.samples)
    has_convolution = any(parameter.dim() == 4 for parameter in model.parameters_)
    return sum(model.sizes) <= SMALL_MODEL and numbers <= SMALL_BATCH and len(longest) > 2 and not has_convolution


ENGINES: dict[str, Callable[[FlatTask, Feed, LocalTraining, int], Engine]] = {
    "auto": fastest,
    "sequential": Sequential,
    "vectorised": Vectorised,
}
