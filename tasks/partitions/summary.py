"""A partition in a few numbers: how many samples and classes the clients hold."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Summary:
    """A partition in numbers; triples are the least, the median and the largest over clients.

    Attributes:
        clients, classes: m and C.
        samples: a client's number of samples.
        held: a client's number of classes.
        largest: the share of a client's samples that belongs to its most frequent class.
    """

    clients: int
    classes: int
    samples: tuple[float, float, float]
    held: tuple[float, float, float]
    largest: tuple[float, float, float]


def summarise(histogram: Int[np.ndarray, "m C"]) -> Summary:
    """The summary of the clients' label counts; every client must have a sample."""
    sizes = histogram.sum(axis=1)
    m, C = histogram.shape
    return Summary(m, C, _spread(sizes), _spread((histogram > 0).sum(axis=1)), _spread(histogram.max(axis=1) / sizes))


def _spread(values: Int[np.ndarray, "m"] | Float[np.ndarray, "m"]) -> tuple[float, float, float]:
    return float(values.min()), float(np.median(values)), float(values.max())
