"""`auto`: the engine that is the fastest, as far as that can be told without a clock."""

from benchmark.config.errors import SettingError
from benchmark.engines.feed import Feed
from benchmark.engines.flat import FlatTask
from benchmark.engines.local import LocalTraining
from benchmark.engines.sequential import Sequential
from benchmark.engines.vectorised import Vectorised
from benchmark.engines.work import Engine

SMALL_MODEL = 250_000
SMALL_BATCH = 60_000
"""Parameters, and numbers in a client's minibatch, up to which clients computed at once still fit a CPU's caches."""


def fastest(model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> Engine:
    """Vectorised on a GPU, and on a CPU where `is_small`; sequential elsewhere, and where a model cannot be vectorised.

    Takes what an engine takes. The choice follows from the trial alone, neither from a clock nor from the number of
    threads, since engines differ in the last digits.
    """
    on_cpu = model.parameters_[0].device.type == "cpu"
    if not on_cpu or is_small(model, feed):
        try:
            return Vectorised(model, feed, local, workers)
        except SettingError:  # a loss that torch.func refuses
            pass
    return Sequential(model, feed, local, workers)


def is_small(model: FlatTask, feed: Feed) -> bool:
    """Whether Python, and not arithmetic, is most of a client's step: few parameters, few numbers in the longest
    minibatch, and no convolution, whose weights have four dimensions. One or two clients gain nothing together."""
    size, parts = feed.minibatches.size, feed.minibatches.parts
    longest = int(parts.sizes.max())
    length = longest if size == "full" else min(longest, size)
    numbers = length * sum(column[0].numel() for column in feed.samples)
    convolves = any(parameter.dim() == 4 for parameter in model.parameters_)
    return sum(model.sizes) <= SMALL_MODEL and numbers <= SMALL_BATCH and len(parts) > 2 and not convolves
