"""Minimum separation as a finite Markov chain: for small cases, R_i that differ by unit, and laws over time."""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from participation.theory.chains import long_run_distribution
from participation.theory.checks import check_least
from participation.theory.separation.arguments import check_draw, check_enough

STATES = 50_000
"""The largest number of states that a chain is built for, by default."""

State = tuple[int, ...]
"""For each unit, the rounds for which it is still unavailable."""


@dataclass(frozen=True)
class SeparationChain:
    """The Markov chain of minimum separation, over the states that can be reached from state 0, the start.

    Attributes:
        cooldown: [S, M], rounds for which each unit is still unavailable in each state, including the coming round.
        transition: sparse [S, S], rows sum to 1.
        draw: [S, M], probability that each unit is drawn in the coming round; rows sum to B.
    """

    cooldown: Int[np.ndarray, "S M"]
    transition: sparse.csr_array
    draw: Float[np.ndarray, "S M"]


def separation_chain(
    p: Float[np.ndarray, "M"], R: int | Int[np.ndarray, "M"], B: int = 1, limit: int = STATES
) -> SeparationChain:
    """Build the Markov chain of minimum separation that starts with all units available.

    With one R for all units the states are the ordered lists of the sets drawn in the last R rounds. For B = 1 there
    are sum_{k <= R} M! / (M - k)! of them, including the shorter lists of the first R rounds.

    Args:
        p: weights [M], at least 0. A unit of weight 0 is never drawn.
        R: minimum separation, one number or one for each unit.
        B: units drawn in each round, by the product law.
        limit: the largest number of states to build.

    Raises:
        ValueError: as `stationary_separation`; more states than the limit; or R_i that can leave a round with fewer
            than B units available.
    """
    separation = np.broadcast_to(np.asarray(R), p.shape)
    _check(p, R, separation, B, limit)
    # A common factor of p changes nothing, but products of small p could underflow.
    weight = p / p.max()
    start: State = (0,) * len(p)
    index = {start: 0}
    states = [start]
    rows, columns, values = [], [], []
    draws = []
    for x, state in enumerate(states):  # `states` grows while it is walked through
        sets, chance = _law_of_draw(weight, state, B)
        draw = np.zeros(len(p))
        for drawn, probability in zip(sets, chance.tolist(), strict=True):
            draw[list(drawn)] += probability
            following = _next(state, drawn, separation)
            y = index.setdefault(following, len(states))
            if y == len(states):
                if y == limit:
                    raise ValueError(f"R: not allowed for the chain; it has more states than the limit of {limit:,}")
                states.append(following)
            rows.append(x)
            columns.append(y)
            values.append(probability)
        draws.append(draw)
    S = len(states)
    # Converting to CSR adds up duplicates: with R = 0 every draw leads back to the same state.
    transition = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=(S, S)))
    return SeparationChain(np.array(states), transition, np.array(draws))


def chain_size(M: int, R: int, B: int = 1) -> int:
    """Number of states of the chain over M units of positive weight, including those of the first R rounds."""
    return sum(math.prod(math.comb(M - j * B, B) for j in range(k)) for k in range(R + 1))


def chain_separation(
    p: Float[np.ndarray, "M"], R: int | Int[np.ndarray, "M"], B: int = 1, limit: int = STATES
) -> Float[np.ndarray, "M"]:
    """Long-run share of rounds pi_R in which each unit is drawn, from the Markov chain; R_i may differ by unit.

    Only for small cases. If the chain can end in more than one class, each class counts with the probability that the
    start leads to it.

    Args:
        p: weights [M], at least 0.
        R: minimum separation, one number or one for each unit.
        B: units drawn in each round, by the product law.
        limit: the largest number of states to build.

    Returns:
        pi_R [M], which sums to B.

    Raises:
        ValueError: as `separation_chain`.
        RuntimeError: as `long_run_distribution`.
    """
    chain = separation_chain(p, R, B, limit)
    return long_run_distribution(chain.transition) @ chain.draw


def _check(p: np.ndarray, R: int | np.ndarray, separation: np.ndarray, B: int, limit: int) -> None:
    """Refuse arguments for which there is no chain, or one that is known to be too large."""
    check_draw(p, B)
    check_least("R", int(separation.min()), 0)
    if isinstance(R, int):
        drawable = int((p > 0).sum())
        check_enough(drawable, R, B)
        size = chain_size(drawable, R, B)
        if size > limit:
            raise ValueError(
                f"R: {R} is not allowed for the chain over {drawable} units; it has {size:,} states, more than "
                f"the limit of {limit:,}: use stationary_separation or simulated_separation"
            )


def _law_of_draw(weight: np.ndarray, state: State, B: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """The sets that can be drawn in a state, and the probability of each by the product law."""
    available = [i for i, rounds in enumerate(state) if rounds == 0 and weight[i] > 0]
    if len(available) < B:
        raise ValueError(f"R: not allowed; the state {state} of rounds to wait leaves fewer than B = {B} available")
    sets = list(combinations(available, B))
    chance = np.array([math.prod(weight[i] for i in drawn) for drawn in sets])
    return sets, chance / chance.sum()


def _next(state: State, drawn: tuple[int, ...], separation: np.ndarray) -> State:
    """The state after these units were drawn."""
    following = [max(rounds - 1, 0) for rounds in state]
    for i in drawn:
        following[i] = int(separation[i])
    return tuple(following)
