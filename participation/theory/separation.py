"""Minimum separation [Sun et al. 2025]: how often each unit is drawn.

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

ValueError: an argument out of range.
"""

import math

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
