"""The exact long-run law pi_R of minimum separation, in closed form.

Take one R for all units. The state is the list S_1, ..., S_R of the sets drawn in the last R rounds. Write S for their
union, S^c for the other units, and e_B(S^c) for the sum over all B-subsets U of S^c of prod_U p. The next set is U with
probability prod_U p / e_B(S^c). Then

    mu(S_1, ..., S_R)  proportional to  prod_{i in S} p_i * e_B(S^c)

is stationary. The flow into (S_2, ..., S_R, U) is the sum, over sets S_1 disjoint from S' = S_2 + ... + S_R + U, of
prod_S p * prod_U p = prod_S' p * prod_{S_1} p, and the sum over S_1 of the last factor is e_B(S'^c).

So the n = B (R + 1) units of R + 1 consecutive rounds form a set that is drawn with probability proportional to its
product of p, whatever their order (conditional Poisson sampling). By symmetry over the R + 1 rounds

    pi_R(i) = p_i e_{n-1}(p without i) / ((R + 1) e_n(p)),    e_k: the elementary symmetric polynomials.

For B = 1 this is p at R = 0 and uniform at R = M - 1. At n = M the chain is periodic and has one class for each cyclic
order, but all classes have the same shares.
"""

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import expit

from participation.theory.checks import check_least
from participation.theory.separation.arguments import check_draw, check_enough


def stationary_separation(p: Float[np.ndarray, "M"], R: int, B: int = 1) -> Float[np.ndarray, "M"]:
    """Long-run share of rounds pi_R in which each unit is drawn, exact to rounding for any M and R.

    The module's docstring has the derivation. Time and memory are O(M R B). If R differs by unit there is no closed
    form; use `chain_separation`.

    Args:
        p: weights [M], at least 0, of any sum. A unit of weight 0 is never drawn.
        R: minimum separation, at least 0.
        B: units drawn in each round, by the product law.

    Returns:
        pi_R [M], which sums to B.

    Raises:
        ValueError: a negative weight, R below 0, B below 1, or fewer than B (R + 1) units of positive weight, so that
            some round would find fewer than B units available.
    """
    check_least("R", R, 0)
    check_draw(p, B)
    n = B * (R + 1)
    drawable = np.flatnonzero(p > 0)
    check_enough(len(drawable), R, B)
    pi = np.zeros(len(p))
    pi[drawable] = _inclusion(p[drawable], n) / (R + 1)
    return pi


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
