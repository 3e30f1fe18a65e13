"""A clock: which of the available clients are in time, and how long a round lasts.

In a round each available client receives the model, takes its local steps and sends an upload. Client i needs

    T_i = floats down / down_i + samples / speed_i + floats up / up_i    seconds, times exp(jitter z) with z ~ N(0, 1).

The round ends when the first n uploads have arrived, when the deadline has passed, or when all available clients have
answered, whichever is first. A client that is late, or whose upload fails, has computed for nothing. A client without
samples never computes, so no round waits for it, and its answer is no upload.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from scipy.special import ndtr, ndtri, roots_legendre

from rollcall.participation.base import Participation, Population, check, stream
from rollcall.participation.base import spread as of_each
from rollcall.participation.probabilities import Probability, resolve
from rollcall.participation.weights import effective_weights_independent

Speed: TypeAlias = float | np.ndarray | Callable[[Population, np.random.Generator], Float[np.ndarray, "m"]]
"""Speeds above 0 of all clients: one number, one for each client, or a distribution such as `lognormal`."""

NODES = 64
"""Of the quadrature over a client's jitter."""


def lognormal(
    population: Population,
    rng: np.random.Generator,
    *,
    median: float,
    spread: float = 1.0,
    probability: Probability = 1.0,
) -> Float[np.ndarray, "m"]:
    """Lognormal speeds: median * exp(spread * z_i) * factor_i with z_i ~ N(0, 1).

    Args:
        median: of the clients' speeds, where the factors are 1.
        spread: standard deviation of the logarithm.
        probability: the factor in (0, 1] of each client's speed, from a source of probabilities: with `class_coupled`
            clients that hold certain classes are slow, those that it makes rarely available.
    """
    check("median", median, 0, inf)
    check("spread", spread, 0, inf)
    return median * np.exp(spread * rng.standard_normal(population.clients)) * resolve(probability, population)


SPEEDS: dict[str, Callable[..., np.ndarray]] = {"lognormal": lognormal}


def speeds(name: str, speed: Speed | None, population: Population, number: int) -> Float[np.ndarray, "m"]:
    """The speeds [m] of the option `name`, infinite if it is None; ValueError for one that is not above 0.

    The draws depend on the seed and the number of the option alone, so that all methods of a seed meet the same clock.
    """
    if speed is None:
        return np.full(population.clients, inf)
    # Keys of two numbers: rounds have (t, 3).
    rng, own = stream(population.seed, "clock", 0, number), replace(population, purpose=f"clock {name}")
    drawn = speed(own, rng) if callable(speed) else speed
    values = of_each(name, drawn, population.clients)
    wrong = np.flatnonzero(~(values > 0))
    if len(wrong):
        raise ValueError(f"{name}: {values[wrong[0]]:g} (client {wrong[0]}) is not allowed; must be above 0")
    return values


class Clocked(Participation):
    """The clients of another model that are in time.

    Args:
        population: the clients.
        available: the model of the available clients.
        seconds: T_i [m] without jitter, see above.
        first: n, the number of uploads that end a round. Default: all available clients are awaited.
        deadline: the seconds after which a round ends. Default: none.
        jitter: standard deviation of the logarithm of a client's time from round to round.
        failure: probability that an upload fails after the work, independently in each round.
        trains: [m], whether each client has samples. One without is active whenever it is available, as without a
            clock. Default: all have.
    """

    def __init__(
        self,
        population: Population,
        available: Participation,
        seconds: Float[np.ndarray, "m"],
        *,
        first: int | None = None,
        deadline: float | None = None,
        jitter: float = 0.0,
        failure: Probability = 0.0,
        trains: Bool[np.ndarray, "m"] | None = None,
    ) -> None:
        super().__init__(population)
        self.available, self.T, self.jitter = available, seconds, jitter
        self.trains = np.ones(self.clients, dtype=bool) if trains is None else trains
        self.first, self.deadline = first, inf if deadline is None else deadline
        check("wait.first", 1 if first is None else first, 1, self.clients)
        fastest = seconds[self.trains].min()
        if not jitter and fastest > self.deadline:
            must = f"must be at least {fastest:.4g}, which the fastest client needs"
            raise ValueError(f"wait.deadline: {deadline:g} is not allowed; {must}")
        self.failure = resolve(failure, replace(population, purpose="clock failure"), name="failure")
        # A round without available clients: the server waits in vain for the deadline; without one it asks again about
        # as late as after a round of one client.
        self.idle = float(np.median(seconds[self.trains])) if deadline is None else deadline
        self._round = lru_cache(maxsize=2)(self._computed)
        self._law = lru_cache(maxsize=64)(self._marginals)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        return self._round(t)[0]

    def late(self, t: int) -> Int[np.ndarray, "l"]:
        return self._round(t)[1]

    def seconds(self, t: int) -> float:
        return self._round(t)[2]

    def _computed(self, t: int) -> tuple[Int[np.ndarray, "a"], Int[np.ndarray, "l"], float]:
        """The clients in time, those that computed for nothing, and the duration."""
        available = self.available.active(t)
        B = available[self.trains[available]]
        if len(B) == 0:
            return available, B, self.idle
        # A draw for each client, whoever is available, so that a client has the same luck under every rule.
        rng = stream(self.seed, "clock", t, 3)
        T = (self.T * np.exp(self.jitter * rng.standard_normal(self.clients)))[B]
        sent = (rng.random(self.clients) >= self.failure)[B]
        end = min(self.deadline, float(T.max()))
        on = sent & (T <= end)
        if self.first is not None and on.sum() >= self.first:
            among = np.argsort(np.where(on, T, inf), kind="stable")[: self.first]
            on, end = np.isin(np.arange(len(B)), among), float(T[among[-1]])
        late = B[~on]
        return np.setdiff1d(available, late, assume_unique=True), late, end

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        return self._thinned(self.available.probability(t))

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self._thinned(self.available.stationary)

    @property
    def correlation(self) -> Float[np.ndarray, "m"] | None:
        """Of client i that is available with pi and lambda, and then in time with probability s, independently."""
        pi, eigenvalue = self.available.stationary, self.available.correlation
        if self.first is not None or pi is None or eigenvalue is None:
            return None
        s = self._sent_in_time
        moves = pi * s < 1
        return np.divide(eigenvalue * s * (1 - pi), 1 - pi * s, where=moves, out=np.zeros(self.clients))

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        known = self.first is None and self.available.independent and self.available.share is not None
        p = self.stationary
        return effective_weights_independent(p) if known and p is not None else None

    @property
    def _sent_in_time(self) -> Float[np.ndarray, "m"]:
        """[m], the probability that an available client sends its upload before the deadline; 1 without samples."""
        return np.where(self.trains, (1 - self.failure) * self._before(self.T, self.deadline), 1.0)

    def _before(self, T: Float[np.ndarray, "..."], end: float | np.ndarray) -> Float[np.ndarray, "..."]:
        """The probability that clients whose time is T without jitter answer by the end."""
        if not self.jitter:
            return np.asarray(T <= end, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):  # the time of a client without samples may be 0
            return np.asarray(ndtr(np.log(end / T) / self.jitter))

    def _thinned(self, p: Real[np.ndarray, "m"] | None) -> Float[np.ndarray, "m"] | None:
        """Of probabilities p to be available, those to be in time; None if unknown."""
        if p is None or (self.first is not None and not self.available.independent):
            return None
        return p * self._sent_in_time if self.first is None else self._law(np.asarray(p, dtype=np.float64).tobytes())

    def _marginals(self, p: bytes) -> Float[np.ndarray, "m"]:
        """The probability of each client to be among the first n, if clients are independent.

        Given its time, client i is in time if fewer than n others are earlier: a Poisson binomial. It is exact without
        jitter, and a quadrature over the client's time with jitter.
        """
        available = np.frombuffer(p)
        sent = available * (1 - self.failure) * self.trains
        by_deadline, earlier_id = self._before(self.T, self.deadline), np.tri(self.clients, k=-1)
        nodes, mass = roots_legendre(NODES) if self.jitter else (np.zeros(1), np.full(1, 2.0))
        total = np.zeros(self.clients)
        for u, w in zip((nodes + 1) / 2, mass / 2, strict=True):
            time = self.T * np.exp(self.jitter * ndtri(u * by_deadline)) if self.jitter else self.T
            before = self._before(self.T, time[:, None])  # [i, j]: client j no later than client i
            if not self.jitter:
                before = np.where(self.T == self.T[:, None], earlier_id, before)  # of equal ones the smaller id
            np.fill_diagonal(before, 0)
            count = np.eye(1, self.first).repeat(self.clients, axis=0)  # [i, k]: P(k others are earlier), k < n
            for q in (before * sent).T:
                count += (np.pad(count[:, :-1], ((0, 0), (1, 0))) - count) * q[:, None]
            total += w * count.sum(axis=1)
        return np.where(self.trains, sent * by_deadline * total, available)
