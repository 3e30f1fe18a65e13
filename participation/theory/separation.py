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

Laws over time are simulated. ValueError: an argument out of range.
"""

import math
from collections import deque
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import expit

from rollcall.participation.base import check


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


def separation_laws(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 2000
) -> Float[np.ndarray, "T M"]:
    """The laws eta_R(t) of the unit drawn in round t = 0..T-1, T = horizon, B = 1, all units available at first.

    eta_R(0) = p. eta_R(t) is the mean, over simulated chains, of the probabilities of the next draw given the available
    units. That has the same mean as the draws and much less noise; at R = 0 it has none.
    """
    check("horizon", horizon, 1, math.inf)
    walk = zip(range(horizon), _walk(p, R, chains, seed), strict=False)
    return np.stack([(weight / weight.sum(axis=1, keepdims=True)).mean(axis=0) for _, (weight, _) in walk])
