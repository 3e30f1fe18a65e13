"""Participation with memory: two-state Markov chains ([PBC] Table III, [CAF] sections III-A, III-D and V-A)."""

from math import inf
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from rollcall.participation.base import Chain, Population, check, members, need_defaults, spread, stream
from rollcall.participation.probabilities import Probability, Variation, first_half, resolve, sine, two_level, varied


class TwoStates(Chain):
    """Base class of independent two-state chains whose transition probabilities do not change over time.

    The chain starts from the stationary probability.

    Attributes:
        pi: [n], stationary probability of each chain.
        eigenvalue: [n], lambda, the second eigenvalue of each chain.
        on_on: [n], P(on|on).
        off_on: [n], P(on|off).
        chain: the chain of each client; by default one for each.
    """

    chain: slice | Int[np.ndarray, "m"] = slice(None)
    pi: Float[np.ndarray, "n"]
    eigenvalue: Float[np.ndarray, "n"]
    on_on: Float[np.ndarray, "n"]
    off_on: Float[np.ndarray, "n"]

    def start(self) -> Bool[np.ndarray, "n"]:
        return stream(self.seed, "participation", 0).random(len(self.pi)) < self.pi

    def step(self, state: Bool[np.ndarray, "n"], t: int) -> Bool[np.ndarray, "n"]:
        return switch(state, self.on_on, self.off_on, stream(self.seed, "participation", t))

    def emit(self, state: Bool[np.ndarray, "n"], t: int) -> Int[np.ndarray, "a"]:
        return np.flatnonzero(state[self.chain])

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.pi[self.chain]

    @property
    def stationary(self) -> Float[np.ndarray, "m"]:
        return self.pi[self.chain]

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return self.eigenvalue[self.chain]


class Markov(TwoStates):
    """A two-state Markov chain for each client: off to on with probability q*, on to off with q ([PBC] Table III).

    The chain starts from the stationary probability p. In each round it makes a transition first, then the active set
    is read.

    Args:
        probability: p_i.
        off_on: q* in (0, 1]; 0.05 in the paper. At fixed p_i it determines the memory: lambda_i = 1 - q* / p_i if
            q* (1 - p_i) <= p_i.
    """

    independent = True

    def __init__(self, population: Population, *, probability: Probability, off_on: float = 0.05) -> None:
        super().__init__(population)
        self.pi = resolve(probability, population)
        self.q_star, self.q = transition_rates(self.pi, off_on)
        self.on_on, self.off_on = 1 - self.q, self.q_star
        self.eigenvalue = 1 - self.q - self.q_star

    def start(self) -> Bool[np.ndarray, "m"]:
        rng = stream(self.seed, "participation", 0)
        return switch(rng.random(self.clients) < self.pi, self.on_on, self.off_on, rng)


class MarkovVarying(Chain):
    """A two-state Markov chain for each client whose transition probabilities follow p_i^t ([PBC] section VII).

    The paper's "non-homogeneous Markov"; the state is carried over from round to round. An oracle knows p_i^t. The
    probability mu^t to be active follows p_i^t with a delay: mu^t = (1 - q^t) mu^{t-1} + q*^t (1 - mu^{t-1}), from
    mu^{-1} = p_i^0.

    Args:
        probability: p_i.
        variation: p_i^t as a function of p_i and t.
        off_on: q* in (0, 1].
        restart_each_round: draw the state from p_i^t anew in every round, as the authors' released code does. The
            draws are those of `bernoulli` with the same variation.
    """

    def __init__(
        self,
        population: Population,
        *,
        probability: Probability,
        variation: Variation = sine,
        off_on: float = 0.05,
        restart_each_round: bool = False,
    ) -> None:
        super().__init__(population)
        self.p = resolve(probability, population)
        self.variation = variation
        self.off_on = off_on
        self.restart = restart_each_round
        if restart_each_round:
            need_defaults(MarkovVarying, "with restart_each_round", off_on=off_on)
        transition_rates(self.probability(0), off_on)  # refuses options out of range before the first round

    def start(self) -> Bool[np.ndarray, "m"]:
        rng = stream(self.seed, "participation", 0)
        on = rng.random(self.clients) < self.probability(0)
        return on if self.restart else self._transition(on, 0, rng)

    def step(self, state: Bool[np.ndarray, "m"], t: int) -> Bool[np.ndarray, "m"]:
        rng = stream(self.seed, "participation", t)
        return rng.random(self.clients) < self.probability(t) if self.restart else self._transition(state, t, rng)

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return varied(self.variation, self.p, t)

    def _transition(self, on: Bool[np.ndarray, "m"], t: int, rng: np.random.Generator) -> Bool[np.ndarray, "m"]:
        q_star, q = transition_rates(self.probability(t), self.off_on)
        return switch(on, 1 - q, q_star, rng)


class MarkovPiLambda(TwoStates):
    """A two-state Markov chain for each client with availability pi_i and correlation lambda_i ([CAF] section III-D).

    P(on|on) = lambda + (1 - lambda) pi and P(on|off) = (1 - lambda) pi. The chain starts from pi. In each round the
    active set is read first, then the chain makes a transition.

    The default is the paper's population ([CAF] section V-A): by `two_level`, half of the clients have pi = 1/2 + g and
    half 1/2 - g. In each half, the first half of the clients has lambda = nu, and the second lambda ~ N(0, eps^2),
    drawn once; one below what a chain with pi_i can have is raised to that. With `lasting: rare`, lambda = nu occurs
    in the second half of the clients only, by default the rarely available one: these are the three classes of the
    authors' released code, which draws the other lambda from N(eps/2, (eps/2)^2).

    Args:
        probability: pi_i.
        correlation: lambda_i as one number or one for each client, instead of the paper's draw. It sets the correlation
            time, -1 / log lambda rounds, at fixed availability.
        nu: lambda of the correlated clients.
        eps: standard deviation of lambda of the other clients.
        lasting: which halves have clients with lambda = nu: `both`, or only the second one (`rare`).
    """

    independent = True

    def __init__(
        self,
        population: Population,
        *,
        probability: Probability = two_level,
        correlation: float | np.ndarray | None = None,
        nu: float = 0.9,
        eps: float = 0.01,
        lasting: Literal["both", "rare"] = "both",
    ) -> None:
        super().__init__(population)
        m = self.clients
        check("eps", eps, 0, inf)
        self.pi = resolve(probability, population)
        if correlation is None:
            drawn = np.maximum(
                eps * stream(self.seed, "probabilities", 1).standard_normal(m), least_correlation(self.pi)
            )
            high = first_half(m)
            correlated = np.concatenate([first_half(int(high.sum())), first_half(m - int(high.sum()))])
            if lasting == "rare":
                correlated &= ~high
            correlation = np.where(correlated, nu, drawn)
        else:
            need_defaults(MarkovPiLambda, "beside correlation", nu=nu, eps=eps, lasting=lasting)
        self.eigenvalue = spread("correlation", correlation, m)
        self.on_on, self.off_on = transitions(self.pi, self.eigenvalue)


class ClusteredMarkov(TwoStates):
    """One two-state Markov chain for each cluster, with availability pi and correlation lambda ([CAF] Fig. 5).

    All members of a cluster share its state. In each round the active set is read first, then the chain makes a
    transition. The default is the paper's population of ten clusters: pi = 0.9 and lambda = 0 in clusters 0..4;
    pi = 0.1 and lambda = c/10 in clusters c = 5..9.

    Args:
        population: the clients; clusters are contiguous in the order of ids.
        clusters: C, the number of clusters, a divisor of the number of clients.
        probability: pi_c as one number, one for each cluster, or a source (for which clusters are the clients).
            Default: 0.9 in the first half of the clusters, 0.1 in the second.
        correlation: lambda_c as one number, or one for each cluster. Default: 0 in the first half, c/C in the second.
    """

    def __init__(
        self,
        population: Population,
        *,
        clusters: int = 10,
        probability: Probability | None = None,
        correlation: float | np.ndarray | None = None,
    ) -> None:
        super().__init__(population)
        self.chain = members("clusters", population, clusters)
        if probability is None:
            probability = np.where(first_half(clusters), 0.9, 0.1)
        if correlation is None:
            correlation = np.where(first_half(clusters), 0.0, np.arange(clusters) / clusters)
        self.pi = resolve(probability, population.pooled(self.chain, clusters), unit="cluster")
        self.eigenvalue = spread("correlation", correlation, clusters, "cluster")
        self.on_on, self.off_on = transitions(self.pi, self.eigenvalue, "cluster")


def transition_rates(p: Float[np.ndarray, "m"], off_on: float) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """q* = P(on|off) and q = P(off|on), each [m], of [PBC] Table III for chains with stationary probabilities p.

    q* = off_on and q = q* (1 - p) / p if that is a probability. For smaller p, q = 1 and q* = p / (1 - p), the fastest
    chain with this p. ValueError for q* outside (0, 1]: with 0 an inactive client would never become active again.
    """
    if not 0 < off_on <= 1:
        raise ValueError(f"off_on: {off_on:g} is not allowed; must be in (0, 1]")
    scarce = off_on * (1 - p) > p
    # Each branch is computed only where it applies: the other one divides by 0 at p = 0 or p = 1.
    q_star = np.where(scarce, np.divide(p, 1 - p, where=scarce, out=np.zeros_like(p)), off_on)
    q = np.divide(off_on * (1 - p), p, where=~scarce, out=np.ones_like(p))
    return q_star, np.minimum(q, 1.0)


def least_correlation(pi: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """The least lambda of a two-state chain with stationary pi: max(1 - 1/pi, 1 - 1/(1 - pi)), in [-1, 0]."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.maximum(1 - 1 / pi, 1 - 1 / (1 - pi)))


def transitions(
    pi: Float[np.ndarray, "n"], correlation: Float[np.ndarray, "n"], who: str = "client"
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """P(on|on) and P(on|off), each [n], of two-state chains with stationary pi and second eigenvalue lambda.

    ValueError for (pi, lambda) that no chain has: lambda must be in [max(1 - 1/pi, 1 - 1/(1 - pi)), 1).
    """
    least = least_correlation(pi)
    # A lambda on the boundary is allowed, even if its division was rounded to the wrong side.
    wrong = np.flatnonzero(~((correlation >= least - 1e-12) & (correlation < 1)))
    if len(wrong):
        i = int(wrong[0])
        owner = f"{who} {i}, whose pi is {pi[i]:g}"
        raise ValueError(f"correlation: {correlation[i]:g} ({owner}) is not allowed; must be in [{least[i]:g}, 1)")
    # In this form pi = 1 and pi = 0 give exact probabilities without rounding.
    return 1 - (1 - correlation) * (1 - pi), (1 - correlation) * pi


def switch(
    on: Bool[np.ndarray, "n"], on_on: Float[np.ndarray, "n"], off_on: Float[np.ndarray, "n"], rng: np.random.Generator
) -> Bool[np.ndarray, "n"]:
    """One transition of n independent two-state chains with on_on = P(on|on) and off_on = P(on|off)."""
    return rng.random(len(on)) < np.where(on, on_on, off_on)
