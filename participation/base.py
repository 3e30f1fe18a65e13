"""The interface of a participation model, its knowledge of the clients, and models with memory."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from inspect import signature
from math import inf
from zlib import crc32

import numpy as np
from jaxtyping import Float, Int


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for one key: the trial's seed, the purpose of the numbers, and numbers such as the round.

    Each draw depends on its key only. NumPy pads a shorter key with zeros, so all keys of a purpose should have the
    same length.
    """
    return np.random.default_rng([seed, crc32(purpose.encode()), *key])


@dataclass(frozen=True)
class Population:
    """A participation model's knowledge of the clients before the first round.

    Attributes:
        clients: m, the number of clients.
        seed: the trial's seed, which determines all draws of the model.
        classes: [m, C], nu, the class distribution that each client's data were drawn from; None if there are no
            classes.
        histogram: [m, C], number of samples of each class that each client holds; None if there are no classes.
        names: of the clients in the data, such as hospitals; None if they have none.
        purpose: of what a source of probabilities draws, in its key. A clock has purposes of its own.
    """

    clients: int
    seed: int = 0
    classes: Float[np.ndarray, "m C"] | None = None
    histogram: Int[np.ndarray, "m C"] | None = None
    names: tuple[str, ...] | None = None
    purpose: str = "probabilities"

    def pooled(self, unit: Int[np.ndarray, "m"], count: int) -> "Population":
        """The population of `count` units of clients: mean class distributions and summed histograms of their members.

        Args:
            unit: [m], the unit of each client, 0..count-1.
            count: number of units.
        """

        def summed(rows: np.ndarray) -> np.ndarray:
            sums = np.zeros((count, rows.shape[1]), rows.dtype)
            np.add.at(sums, unit, rows)
            return sums

        members = np.bincount(unit, minlength=count)[:, None]
        classes = None if self.classes is None else summed(self.classes) / members
        histogram = None if self.histogram is None else summed(self.histogram)
        return replace(self, clients=count, classes=classes, histogram=histogram, names=None)


class Participation(ABC):
    """A model of the active clients of each round, independent of the algorithm.

    A model does not change after it is built. `active(t)` is a function of (seed, t): rounds may be asked for in any
    order, and a run resumed at t sees the same active sets as an uninterrupted run. Rounds count from 0. A client is
    active in a round if its uplink is on and, with a clock (`Clocked`), if it is in time.

    Attributes:
        clients: m, the number of clients.
        independent: whether clients are independent in a round, each with the same probability in all rounds.
    """

    clients: int
    independent: bool = False

    def __init__(self, population: Population) -> None:
        self.clients = population.clients
        self.seed = population.seed

    @abstractmethod
    def active(self, t: int) -> Int[np.ndarray, "a"]:
        """The ids of the active clients in round t, ascending; may be empty."""

    def late(self, t: int) -> Int[np.ndarray, "l"] | None:
        """The ids of the clients that compute in round t but are not active, ascending: late, or the upload failed.

        None if the model does not tell those that compute from the others, as without a clock.
        """
        return None

    def seconds(self, t: int) -> float | None:
        """The duration of round t; None without a clock."""
        return None

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


class Constant(Participation):
    """Base class of models whose clients have the same probability in all rounds, as far as an oracle knows.

    Attributes:
        p: [m], each client's probability of being active.
    """

    p: Float[np.ndarray, "m"]

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.p

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self.p


class Chain(Participation):
    """Base class of Markov chains: the state of a round depends on that of the previous round.

    The last state is stored. Rounds in order cost one step each. An earlier round is reached by replaying from round 0,
    which is exact because each draw depends on its round only.
    """

    def __init__(self, population: Population) -> None:
        super().__init__(population)
        self._last: tuple[int, np.ndarray] | None = None

    @abstractmethod
    def start(self) -> np.ndarray:
        """The state of round 0."""

    @abstractmethod
    def step(self, state: np.ndarray, t: int) -> np.ndarray:
        """The state of round t > 0 from that of round t - 1, which must not be changed in place."""

    def emit(self, state: np.ndarray, t: int) -> Int[np.ndarray, "a"]:
        """The ids of the clients that are active in round t, ascending. By default the state is their mask [m]."""
        return np.flatnonzero(state)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        now, state = (0, self.start()) if self._last is None or self._last[0] > t else self._last
        for s in range(now + 1, t + 1):
            state = self.step(state, s)
        self._last = (t, state)
        return self.emit(state, t)


def members(option: str, population: Population, count: int, *, shuffled: bool = False) -> Int[np.ndarray, "m"]:
    """The unit [m] of each client, 0..count-1: contiguous in the order of ids, or assigned at random by the seed.

    ValueError if the count, the option of this name, does not divide the number of clients.
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
        must = f"must be one number or [{n}], one for each {unit}"
        raise ValueError(f"{name}: shape {values.shape} is not allowed; {must}")
    return np.broadcast_to(values, (n,))


def need_defaults(model: type, beside: str, **options: object) -> None:
    """ValueError unless each of these options of a model is its default: beside another one, they have no effect."""
    for name, value in options.items():
        if value != signature(model).parameters[name].default:
            raise ValueError(f"{name}: {value} is not allowed {beside}, where it has no effect; must be left out")


def check(name: str, value: float, low: float = 0, high: float = 1) -> None:
    """ValueError unless the option `name` is in [low, high]."""
    if not low <= value <= high:
        allowed = f"at least {low}" if high == inf else f"in [{low}, {high}]"
        raise ValueError(f"{name}: {value:g} is not allowed; must be {allowed}")
