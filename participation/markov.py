"""Participation with memory: one two-state Markov chain for each client ([PBC] Table III)."""

import numpy as np
from jaxtyping import Bool, Float, Int

from participation.base import Population
from participation.chain import Chain, switch
from participation.probabilities import Source, resolve
from participation.streams import stream
from participation.variations import Variation, sine


def transition_rates(p: Float[np.ndarray, "m"], off_on: float) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """Transition probabilities (q*, q) of [PBC] Table III for chains with stationary probabilities p.

    q* = off_on and q = q* (1 - p) / p if that is a probability. For smaller p, q = 1 and q* = p / (1 - p), the fastest
    chain with this p.

    Args:
        p: [m], stationary probabilities.
        off_on: q*, the probability to become active.

    Returns:
        q* = P(on|off) and q = P(off|on), each [m].
    """
    scarce = off_on * (1 - p) > p
    # Each branch is computed only where it applies: the other one divides by 0 at p = 0 or p = 1.
    q_star = np.where(scarce, np.divide(p, 1 - p, where=scarce, out=np.zeros_like(p)), off_on)
    q = np.divide(off_on * (1 - p), p, where=~scarce, out=np.ones_like(p))
    return q_star, np.minimum(q, 1.0)


class Markov(Chain):
    """A two-state Markov chain for each client: off to on with probability q*, on to off with q ([PBC] Table III).

    The chain starts from the stationary probability p. In each round it makes a transition first, then the active set
    is read.

    Args:
        population: the clients.
        probability: p_i as one number, one for each client, or a source such as `class_coupled`.
        off_on: q* in (0, 1]; 0.05 in the paper. At fixed p_i it determines the memory: lambda_i = 1 - q* / p_i if
            q* (1 - p_i) <= p_i.

    Raises:
        ValueError: a probability outside [0, 1], not one for each client, or q* out of range.
    """

    def __init__(
        self, population: Population, *, probability: float | np.ndarray | Source, off_on: float = 0.05
    ) -> None:
        super().__init__(population)
        self.p = resolve(probability, population)
        self.q_star, self.q = transition_rates(self.p, check_off_on(off_on))

    def start(self) -> Bool[np.ndarray, "m"]:
        rng = stream(self.seed, "participation", 0)
        return switch(rng.random(self.clients) < self.p, 1 - self.q, self.q_star, rng)

    def step(self, state: Bool[np.ndarray, "m"], t: int) -> Bool[np.ndarray, "m"]:
        return switch(state, 1 - self.q, self.q_star, stream(self.seed, "participation", t))

    def emit(self, state: Bool[np.ndarray, "m"], t: int) -> Int[np.ndarray, "a"]:
        return np.flatnonzero(state)

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.p

    @property
    def stationary(self) -> Float[np.ndarray, "m"]:
        return self.p

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return 1 - self.q - self.q_star


class MarkovVarying(Chain):
    """A two-state Markov chain for each client whose transition probabilities follow p_i^t ([PBC] section VII).

    The paper's "non-homogeneous Markov"; the state is carried over from round to round. An oracle knows p_i^t. The
    probability mu^t to be active follows p_i^t with a delay: mu^t = (1 - q^t) mu^{t-1} + q*^t (1 - mu^{t-1}), from
    mu^{-1} = p_i^0.

    Args:
        population: the clients.
        probability: p_i as one number, one for each client, or a source such as `class_coupled`.
        variation: p_i^t as a function of p_i and t.
        off_on: q* in (0, 1].
        restart_each_round: draw the state from p_i^t anew in every round, as the authors' released code does. The
            draws are those of `bernoulli` with the same variation.

    Raises:
        ValueError: a probability outside [0, 1], not one for each client, or q* out of range.
    """

    def __init__(
        self,
        population: Population,
        *,
        probability: float | np.ndarray | Source,
        variation: Variation = sine,
        off_on: float = 0.05,
        restart_each_round: bool = False,
    ) -> None:
        super().__init__(population)
        self.p = resolve(probability, population)
        self.variation = variation
        self.off_on = check_off_on(off_on)
        self.restart = restart_each_round
        self.variation(self.p, 0)  # refuses options out of range before the first round

    def start(self) -> Bool[np.ndarray, "m"]:
        rng = stream(self.seed, "participation", 0)
        p = self.probability(0)
        on = rng.random(self.clients) < p
        return on if self.restart else self._transition(on, p, rng)

    def step(self, state: Bool[np.ndarray, "m"], t: int) -> Bool[np.ndarray, "m"]:
        rng = stream(self.seed, "participation", t)
        p = self.probability(t)
        return rng.random(self.clients) < p if self.restart else self._transition(state, p, rng)

    def emit(self, state: Bool[np.ndarray, "m"], t: int) -> Int[np.ndarray, "a"]:
        return np.flatnonzero(state)

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.variation(self.p, t)

    def _transition(
        self, on: Bool[np.ndarray, "m"], p: Float[np.ndarray, "m"], rng: np.random.Generator
    ) -> Bool[np.ndarray, "m"]:
        q_star, q = transition_rates(p, self.off_on)
        return switch(on, 1 - q, q_star, rng)


def check_off_on(off_on: float) -> float:
    """q* itself.

    Raises:
        ValueError: q* is not in (0, 1]; with 0 an inactive client would never become active again.
    """
    if not 0 < off_on <= 1:
        raise ValueError(f"off_on: {off_on:g} is not allowed; must be in (0, 1]")
    return off_on
