"""The interface of a participation model, and its knowledge of the clients."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.streams import stream


@dataclass(frozen=True)
class Population:
    """A participation model's knowledge of the clients before the first round.

    Attributes:
        clients: m, the number of clients.
        seed: the trial's seed, which determines all draws of the model.
        classes: [m, C], nu, the class distribution that each client's data were drawn from; None if there are no
            classes.
        histogram: [m, C], number of samples of each class that each client holds; None if there are no classes.
    """

    clients: int
    seed: int = 0
    classes: Float[np.ndarray, "m C"] | None = None
    histogram: Int[np.ndarray, "m C"] | None = None

    def pooled(self, unit: Int[np.ndarray, "m"], count: int) -> "Population":
        """The population of `count` units of clients: mean class distributions and summed histograms of their members.

        Args:
            unit: [m], the unit of each client, 0..count-1.
            count: number of units.
        """
        classes, histogram = self.classes, self.histogram
        if classes is not None:
            classes = np.stack([classes[unit == u].mean(axis=0) for u in range(count)])
        if histogram is not None:
            histogram = np.stack([histogram[unit == u].sum(axis=0) for u in range(count)])
        return replace(self, clients=count, classes=classes, histogram=histogram)


class Participation(ABC):
    """A model of which clients are active in each round, independent of the algorithm.

    A model does not change after it is built. `active(t)` is a function of (seed, t): rounds may be asked for in any
    order, and a run resumed at t sees the same active sets as an uninterrupted run. Rounds count from 0. A client is
    active in a round if its uplink is on.

    Attributes:
        clients: m, the number of clients.
    """

    clients: int

    def __init__(self, population: Population) -> None:
        self.clients = population.clients
        self.seed = population.seed

    @abstractmethod
    def active(self, t: int) -> Int[np.ndarray, "a"]:
        """The ids of the active clients in round t, ascending; may be empty."""

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        """p_i^t [m], the probability that each client is active in round t, for an oracle; None if unknown."""
        return None

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        """pi_i [m], the long-run share of rounds in which each client is active; None if unknown."""
        return None

    @property
    def correlation(self) -> Float[np.ndarray, "m"] | None:
        """lambda_i [m], the second eigenvalue of each client's chain; None if unknown.

        It is the lag-1 autocorrelation if probabilities do not change over time.
        """
        return None

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        """c_i = E[1{i in A} / |A|] [m], each client's expected weight in the mean over A; None if unknown.

        An empty round contributes 0 ([HAR] equation 6).
        """
        return None


def members(option: str, population: Population, count: int, *, shuffled: bool = False) -> Int[np.ndarray, "m"]:
    """The unit [m] of each client, 0..count-1: contiguous in the order of ids, or assigned at random by the seed.

    Raises:
        ValueError: the count does not divide the number of clients; `option` is its name in the error.
    """
    m = population.clients
    if count < 1 or m % count:
        raise ValueError(f"{option}: {count} is not allowed; must be a divisor of the {m} clients")
    unit = np.arange(m) // (m // count)
    # A key of two numbers: NumPy pads shorter keys with zeros, and (0,) is the key of round 0.
    return stream(population.seed, "participation", 0, 1).permutation(unit) if shuffled else unit


def spread(name: str, value: float | np.ndarray, n: int, unit: str = "client") -> Float[np.ndarray, "n"]:
    """An array [n] from one number, or from one number for each unit; ValueError for another shape."""
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (n,)):
        raise ValueError(
            f"{name}: shape {values.shape} is not allowed; must be one number or [{n}], one for each {unit}"
        )
    return np.broadcast_to(values, (n,))
