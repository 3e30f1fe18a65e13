"""Minimum separation [Sun et al. 2025]: how often each unit is drawn, and how soon its law becomes stationary.

**The model.** Units are numbered 0..M-1. A unit drawn in round t is available again from round t + R + 1 on (R_i if R
differs by unit). Each round draws B units from the available ones: for B = 1 one unit with probability proportional
to p; for B > 1 a set with probability proportional to the product of p over the set (the `product` law, Proposition
1(2)). At the start all units are available. pi_R is the share of rounds in which a unit is drawn, so it sums to B.

**The stationary law.** Take one R for all units. The state is the list S_1, ..., S_R of the sets drawn in the last R
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

Laws over time are computed from the Markov chain over the rounds that each unit still waits in small cases, and
simulated in large ones. ValueError: an argument out of range.
"""

import math
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

from rollcall.participation.base import check

STATES = 20_000
"""The largest number of states of a chain."""

GROUPS = 20
"""Groups of simulated chains for the jackknife error."""


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


def _check(p: np.ndarray, R: int, B: int = 1) -> None:
    """Raise unless every round can draw B units in proportion to p."""
    check("R", R, 0, math.inf)
    if not np.isfinite(p).all() or (p < 0).any() or not (p > 0).any():
        raise ValueError("p: must be finite, at least 0 and not all 0")
    units = int((p > 0).sum())
    if units < B * (R + 1):
        must = f"must be at most {units // B - 1}, so that every round finds {B} available"
        raise ValueError(f"R: {R} is not allowed for {units} units of positive weight and B = {B}; {must}")


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


def separation_chain(p: Float[np.ndarray, "M"], R: int) -> tuple[sparse.csr_array, Float[np.ndarray, "S M"]]:
    """The Markov chain of minimum separation, B = 1, over the states that can be reached from all units available.

    A state is the number of rounds for which each unit is still unavailable; state 0 is the start.

    Returns:
        The transition matrix, sparse [S, S], and the probability that each unit is drawn in the coming round [S, M].
    """
    _check(p, R)
    weight = p / p.max()  # a common factor changes nothing, but products of small p could underflow
    start = (0,) * len(p)
    index, states = {start: 0}, [start]
    rows, columns, values, draws = [], [], [], []
    for x, state in enumerate(states):  # `states` grows while it is walked through
        available = [i for i, rounds in enumerate(state) if rounds == 0 and weight[i] > 0]
        draw = np.zeros(len(p))
        draw[available] = weight[available] / weight[available].sum()
        draws.append(draw)
        for i in available:
            following = [max(rounds - 1, 0) for rounds in state]
            following[i] = R
            y = index.setdefault(tuple(following), len(states))
            if y == len(states):
                if y == STATES:
                    raise ValueError(f"R: not allowed for the chain; it has more states than the limit of {STATES:,}")
                states.append(tuple(following))
            rows.append(x)
            columns.append(y)
            values.append(draw[i])
    # Converting to CSR adds up duplicates: with R = 0 every draw leads back to the same state.
    transition = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=(len(states), len(states))))
    return transition, np.array(draws)


def simulated_separation(
    p: Float[np.ndarray, "M"], R: int, rounds: int, seed: int, chains: int = 64
) -> tuple[Float[np.ndarray, "M"], Float[np.ndarray, "M"]]:
    """Long-run share of rounds pi_R in which each unit is drawn, B = 1, and its standard error, by simulation.

    The error is from the spread between chains. Each chain first runs for a tenth of `rounds`, or 10 R if that is more,
    and up to R more rounds at random; then `rounds` rounds are counted.
    """
    check("rounds", rounds, 1, math.inf)
    counts = np.zeros((chains, len(p)))
    # Chains that start in the same state stay synchronous for long: a heavy unit returns every R + 1 rounds exactly.
    # If all chains counted the same rounds, all would miss or gain the same draw, and the spread would not show it.
    burn_in = max(rounds // 10, 10 * R)
    opening = burn_in + np.random.default_rng([seed, 1]).integers(R + 1, size=chains)
    for t, (_, unit) in zip(range(burn_in + R + rounds), _walk(p, R, chains, seed), strict=False):
        counted = np.flatnonzero((t >= opening) & (t < opening + rounds))
        counts[counted, unit[counted]] += 1
    share = counts / rounds
    return share.mean(axis=0), share.std(axis=0, ddof=1) / np.sqrt(chains)


def separation_shares(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 200
) -> Float[np.ndarray, "T"]:
    """Mean total variation distance between pi_R and the shares of the first t + 1 draws of one roll call, B = 1.

    The mean is over simulated roll calls, for t = 0..T-1, T = horizon. At R = M - 1 the shares are even after each
    cycle.
    """
    check("horizon", horizon, 1, math.inf)
    pi = stationary_separation(p, R)
    counts = np.zeros((chains, len(p)))
    distance = np.empty(horizon)
    for t, (_, drawn) in zip(range(horizon), _walk(p, R, chains, seed), strict=False):
        counts[np.arange(chains), drawn] += 1
        distance[t] = (np.abs(counts / (t + 1) - pi).sum(axis=1) / 2).mean()
    return distance


def _walk(p: np.ndarray, R: int, chains: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Simulate chains round by round, without end.

    Yields:
        The weights [chains, M] of the units at the start of the round, 0 for a unit that is not available (the array
        is reused from round to round); and the unit drawn [chains].
    """
    _check(p, R)
    rng = np.random.default_rng(seed)
    scaled = p / p.max()
    weight = np.tile(scaled, (chains, 1))
    each = np.arange(chains)
    waiting: deque[np.ndarray] = deque()  # the units drawn in the last R rounds, oldest first
    while True:
        if len(waiting) > R:
            back = waiting.popleft()
            weight[each, back] = scaled[back]
        cumulated = np.cumsum(weight, axis=1)
        # The first unit whose cumulated weight exceeds the target has positive weight, even for a target of 0.
        target = rng.random(chains) * cumulated[:, -1]
        unit = (cumulated > target[:, None]).argmax(axis=1)
        yield weight, unit
        weight[each, unit] = 0
        waiting.append(unit)


class Mixing(NamedTuple):
    """Distance of the law of the drawn unit from its stationary law, round by round ([Sun] Fig. 5).

    Attributes:
        eta: [T, M], eta_R(t), the distribution of the unit drawn in round t.
        distance: [T], the total variation TV(eta_R(t), pi_R).
        error: [T], its standard error; 0 where exact.
        floor: [T], the distance that sampling noise alone would show if eta_R(t) were pi_R; 0 where exact. An estimate
            near the floor only says that the distance is not larger than that.
    """

    eta: Float[np.ndarray, "T M"]
    distance: Float[np.ndarray, "T"]
    error: Float[np.ndarray, "T"]
    floor: Float[np.ndarray, "T"]


def separation_mixing(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 2000, limit: int = STATES
) -> Mixing:
    """The laws eta_R(t) of the drawn unit and TV(eta_R(t), pi_R) for t = 0..T-1, B = 1, all units available at first.

    eta_R(0) = p. At R = M - 1 the roll call is cyclic and the distance does not go to 0. The result is exact if the
    chain has at most `limit` states. Otherwise eta_R(t) is the mean, over simulated chains, of the probabilities of
    the next draw given the available units. That has the same mean as the draws and much less noise. pi_R is exact in
    both cases.

    Args:
        p: weights [M], at least 0.
        R: minimum separation.
        horizon: T, number of rounds.
        seed: of the simulation.
        chains: number of simulated chains, a multiple of 20.
        limit: the largest number of states to treat exactly.
    """
    check("horizon", horizon, 1, math.inf)
    pi, M = stationary_separation(p, R), len(p)
    eta, error, floor = np.empty((horizon, M)), np.zeros(horizon), np.zeros(horizon)
    # The states are the ordered lists of the last R units drawn, and the shorter lists of the first R rounds.
    if sum(math.perm(int((p > 0).sum()), k) for k in range(R + 1)) <= limit:
        transition, draw = separation_chain(p, R)
        back = transition.T.tocsr()
        x = np.zeros(len(draw))  # the distribution over states
        x[0] = 1.0
        for t in range(horizon):
            eta[t] = x @ draw
            x = np.asarray(back @ x).ravel()
        return Mixing(eta, np.abs(eta - pi).sum(axis=1) / 2, error, floor)
    for t, (weight, _) in zip(range(horizon), _walk(p, R, chains, seed), strict=False):
        chance = weight / weight.sum(axis=1, keepdims=True)
        eta[t] = chance.mean(axis=0)
        # The mean absolute value of a normal variable is sqrt(2 / pi) times its standard deviation.
        floor[t] = np.sqrt(2 / np.pi) * (chance.std(axis=0, ddof=1) / np.sqrt(chains)).sum() / 2
        # Jackknife over groups of chains: the distance is not a mean, so its error is not that of a mean.
        groups = chance.reshape(GROUPS, -1, M).mean(axis=1)
        without = np.abs((GROUPS * eta[t] - groups) / (GROUPS - 1) - pi).sum(axis=1) / 2
        error[t] = np.sqrt((GROUPS - 1) * without.var())
    return Mixing(eta, np.abs(eta - pi).sum(axis=1) / 2, error, floor)
