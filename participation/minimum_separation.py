"""Minimum separation: a unit pauses after each participation [Sun et al. 2025, section 2].

The B units of a round follow the `product` law (Proposition 1(2); section 3 of the paper, before Proposition 1, says
the sum). pi_R is the share of rounds in which a unit is drawn, so it sums to B.

**The stationary law.** The state is the list S_1, ..., S_R of the sets drawn in the last R
rounds. Write S for their union, S^c for the other units, and e_B(S^c) for the sum over all B-subsets U of S^c of
prod_U p. The next set is U with probability prod_U p / e_B(S^c). Then

    mu(S_1, ..., S_R)  proportional to  prod_{i in S} p_i * e_B(S^c)

is stationary. The flow into (S_2, ..., S_R, U) is the sum, over sets S_1 disjoint from S' = S_2 + ... + S_R + U, of
prod_S p * prod_U p = prod_S' p * prod_{S_1} p, and the sum over S_1 of the last factor is e_B(S'^c).

So the n = B (R + 1) units of R + 1 consecutive rounds form a set that is drawn with probability proportional to its
product of p, whatever their order (conditional Poisson sampling). By symmetry over the R + 1 rounds

    pi_R(i) = p_i e_{n-1}(p without i) / ((R + 1) e_n(p)),    e_k: the elementary symmetric polynomials.

For B = 1 this is p at R = 0 and uniform at R = M - 1. At n = M the chain is periodic and has one class for each cyclic
order, but all classes have the same shares.
"""

from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import expit

from rollcall.participation.base import Chain, Population, members, spread, stream
from rollcall.participation.independent import successive
from rollcall.participation.probabilities import Probability, resolve

TRIES = 16
"""Attempts to draw different units independently."""


class MinimumSeparation(Chain):
    """B units in each round, drawn by p from those that did not participate in the last R rounds ([Sun] section 2).

    A unit is a client, or a group of clients that participate together. At the start all units are available. With
    R = 0 rounds are independent; with B = 1 and R = M - 1 participation is cyclic. An oracle knows pi_R if all R_i are
    equal and sets follow the product law, and p_i^t only if it does not depend on earlier rounds.

    Args:
        probability: p of the units; only their proportions matter. A source takes the units as clients.
        separation: R, at least 0, one number or R_i of each unit; B units must always be left to draw. For one number:
            B (R + 1) units must have a probability above 0.
        groups: M, the number of groups, a divisor of the number of clients. Default: every client is a unit.
        shuffled: assign clients to groups at random (by the seed) instead of in the order of their ids.
        per_round: B, the number of units drawn in each round.
        law: law of a set of B > 1 units: `product`, proportional to the product of p over the set ([Sun] Proposition
            1), or `successive`, one unit after the other in proportion to p.
    """

    def __init__(
        self,
        population: Population,
        *,
        probability: Probability,
        separation: int | np.ndarray,
        groups: int | None = None,
        shuffled: bool = False,
        per_round: int = 1,
        law: Literal["product", "successive"] = "product",
    ) -> None:
        super().__init__(population)
        unit = "client" if groups is None else "group"
        M = self.clients if groups is None else groups
        self.unit = members("groups", population, M, shuffled=shuffled)
        self.p = resolve(probability, population.pooled(self.unit, M), unit=unit)
        R = spread("separation", separation, M, unit)
        _check(self.p, R, per_round)
        self.R, self.B, self.law = R.astype(np.int64), per_round, law

    def start(self) -> Int[np.ndarray, "M"]:
        """The state is the last round in which each unit participated."""
        return self.step(-1 - self.R, 0)

    def step(self, state: Int[np.ndarray, "M"], t: int) -> Int[np.ndarray, "M"]:
        available = np.flatnonzero((t - state >= self.R + 1) & (self.p > 0))
        draw = product if self.law == "product" else successive
        last = state.copy()
        last[available[draw(self.p[available], self.B, stream(self.seed, "participation", t))]] = t
        return last

    def emit(self, state: Int[np.ndarray, "M"], t: int) -> Int[np.ndarray, "a"]:
        return np.flatnonzero((state == t)[self.unit])

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        return None if self.R.any() else self.stationary

    @cached_property  # used in every round if R = 0
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        if np.ptp(self.R) or (self.B > 1 and self.law == "successive"):
            return None
        return stationary_separation(self.p, int(self.R[0]), self.B)[self.unit]

    @property
    def correlation(self) -> Float[np.ndarray, "m"] | None:
        return None if self.R.any() else np.zeros(self.clients)


def product(w: Float[np.ndarray, "n"], B: int, rng: np.random.Generator) -> Int[np.ndarray, "B"]:
    """Draw a set S of B positions of w > 0, in no order, with probability proportional to the product of w over S.

    B independent draws in proportion to w that are all different have exactly this law. If several attempts give no
    such draws, elementary symmetric polynomials decide about one position after the other.
    """
    upto = np.cumsum(w)
    # If a draw rounds up to the total, the index would be beyond the end.
    draws = np.minimum(np.searchsorted(upto, rng.random((TRIES, B)) * upto[-1], side="right"), len(w) - 1)
    draws.sort(axis=1)
    differ = (np.diff(draws, axis=1) != 0).all(axis=1)
    if differ.any():
        return draws[np.argmax(differ)]
    n, log_w = len(w), np.log(w)
    e = np.full((n + 1, B + 1), -np.inf)  # e[j, k] = log of the k-th symmetric polynomial of w_j, ..., w_{n-1}
    e[n, 0] = 0
    for j in reversed(range(n)):
        e[j] = np.logaddexp(e[j + 1], np.concatenate([[-np.inf], log_w[j] + e[j + 1, :-1]]))
    chosen: list[int] = []
    for j, u in enumerate(rng.random(n)):
        left = B - len(chosen)
        if left and u < np.exp(log_w[j] + e[j + 1, left - 1] - e[j, left]):
            chosen.append(j)
    return np.array(chosen)


def stationary_separation(p: Float[np.ndarray, "M"], R: int, B: int = 1) -> Float[np.ndarray, "M"]:
    """Long-run share of rounds pi_R in which each unit is drawn, exact to rounding for any M and R.

    Time and memory are O(M R B).

    Args:
        p: weights [M], at least 0, of any sum. A unit of weight 0 is never drawn.
        R: minimum separation, at least 0.
        B: units drawn in each round, by the product law. At least B (R + 1) units must have positive weight.
    """
    _check(p, R, B)
    drawable = np.flatnonzero(p > 0)
    pi = np.zeros(len(p))
    pi[drawable] = _inclusion(p[drawable], B * (R + 1)) / (R + 1)
    return pi


def _check(p: np.ndarray, R: int | np.ndarray, B: int) -> None:
    """ValueError unless every round can draw B units in proportion to p; R is one number or [M]."""
    if not np.isfinite(p).all() or (p < 0).any():
        raise ValueError("p: must be finite and at least 0")
    units = int((p > 0).sum())
    if not 1 <= B <= units:
        raise ValueError(
            f"per_round: {B} is not allowed; must be in [1, {units}], the number of units with probability above 0"
        )
    R = np.broadcast_to(R, len(p))
    # A unit that was drawn k rounds ago waits if k <= R_i. How many can wait at once is the number of jobs that can be
    # done in time if B are done in each round, and job i has the deadline R_i: the earliest deadline first.
    waiting = 0
    for r in np.sort(R[p > 0]):
        waiting += int(waiting < B * r)
    if (R < 0).any() or (R != np.floor(R)).any() or units - waiting < B:
        must = (
            f"must be whole numbers from 0 that leave {B} of the {units} units with probability above 0 to draw; one "
            f"number for all: in [0, {units // B - 1}]"
        )
        raise ValueError(f"separation: {R.tolist() if np.ptp(R) else f'{R[0]:g}'} is not allowed; {must}")


def _inclusion(p: Float[np.ndarray, "M"], n: int) -> Float[np.ndarray, "M"]:
    """P(i in T) [M] for a set T of n units drawn with probability proportional to prod_T p.

    Let each unit be in T independently with odds theta p_i. Given that T has n units, it has the required law for any
    theta. The theta for which T has n units on average keeps all quantities far from underflow.
    """
    M = len(p)
    if n == M:
        return np.ones(M)
    log_p = np.log(p)
    low = -log_p.max() - np.log(M) + np.log(n) - 1
    high = -log_p.min() + np.log(M) + 1
    log_theta = float(brentq(lambda tilt: expit(tilt + log_p).sum() - n, low, high))
    on, off = expit(log_theta + log_p), expit(-log_theta - log_p)
    # before[i] and after[i] are the distributions of the number of units in T among those before i, and from i on.
    # They only add non-negative terms. Dividing one unit out of the product over all units would lose digits.
    before, after = np.zeros((M + 1, n + 1)), np.zeros((M + 1, n + 1))
    before[0, 0] = after[M, 0] = 1
    for i in range(M):
        before[i + 1] = before[i] * off[i]
        before[i + 1, 1:] += before[i, :-1] * on[i]
    for i in reversed(range(M)):
        after[i] = after[i + 1] * off[i]
        after[i, 1:] += after[i + 1, :-1] * on[i]
    without_i = (before[:-1, :n] * after[1:, n - 1 :: -1]).sum(axis=1)
    return on * without_i / before[M, n]
