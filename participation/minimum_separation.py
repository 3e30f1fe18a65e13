"""Minimum separation: a client pauses after each participation ([Sun] section 2)."""

from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.base import Chain, Population, members, spread
from rollcall.participation.independent import successive
from rollcall.participation.probabilities import Probability, resolve
from rollcall.participation.streams import stream
from rollcall.participation.theory.separation import stationary_separation

TRIES = 16
"""Attempts to draw different units independently."""


class MinimumSeparation(Chain):
    """B units in each round, drawn by p from those that did not participate in the last R rounds ([Sun] section 2).

    A unit is a client, or a group of clients that participate together. At the start all units are available. With
    R = 0 rounds are independent; with B = 1 and R = M - 1 participation is cyclic. An oracle knows pi_R if all R_i are
    equal and sets follow the product law (see `rollcall.participation.theory.separation`), and p_i^t
    only if it does not depend on earlier rounds.

    Args:
        probability: p of the units; only their proportions matter. A source takes the units as clients.
        separation: R from 0 to M - 1, one number or one for each unit.
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
        self.R = _checked(separation, M, unit)
        self.B = per_round
        self.law = law
        possible = self.p > 0
        if not 1 <= per_round <= possible.sum():
            must = f"must be in [1, {possible.sum()}], the {unit}s with probability above 0"
            raise ValueError(f"per_round: {per_round} is not allowed; {must}")
        left = int(possible.sum()) - _most_waiting(self.R[possible], per_round)
        if left < per_round:
            raise ValueError(
                f"separation: {np.max(self.R)} is not allowed with {per_round} {unit}s a round; must leave that many "
                f"to draw from, but of the {possible.sum()} with probability above 0 it can leave {left}"
            )

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


def _most_waiting(R: Int[np.ndarray, "n"], B: int) -> int:
    """The largest number of units that can be unavailable at once, if B participate in each round.

    A unit that participated k rounds ago is unavailable if k <= R_i. This is scheduling of jobs with deadlines R_i, B
    at a time.
    """
    waiting = 0
    for r in np.sort(R):
        waiting += int(waiting < B * r)
    return waiting


def _checked(separation: int | np.ndarray, M: int, unit: str) -> Int[np.ndarray, "M"]:
    """R [M], if all are whole numbers in range."""
    R = spread("separation", separation, M, unit)
    wrong = np.flatnonzero(~((R >= 0) & (R <= M - 1) & (R == np.floor(R))))
    if len(wrong):
        raise ValueError(
            f"separation: {R[wrong[0]]:g} ({unit} {wrong[0]}) is not allowed; must be a whole number in [0, {M - 1}]"
        )
    return R.astype(np.int64)
