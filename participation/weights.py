"""The weight of each client in the mean over the active set A of a round, of size a, and the bias of such weights.

The weights are exact, for independent participation and for the group events of [HAR]. The expected weight of client i
is c_i = E[1{i in A} / a] ([HAR] eq. 6). An empty round contributes 0 to every client, so the c_i sum to 1 - P(a = 0).
"""

from functools import reduce
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import comb, gammaln, roots_legendre, xlog1py, xlogy

from rollcall.participation.base import check

Reading = Literal["collision", "cap"]


def effective_weights_independent(p: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """c_i [m] for independent participation with probabilities p, exact to rounding.

    Time is O(m^2) and memory O(m). Let a' be the number of active clients other than i (a Poisson binomial). Then
    c_i = p_i E[1 / (1 + a')]. As 1 / (1 + a') = int_0^1 s^a' ds,

        c_i = p_i int_0^1 prod_{j != i} (1 - p_j + p_j s) ds.

    The integrand is a polynomial of degree m - 1, which Gauss-Legendre quadrature with ceil(m / 2) nodes integrates
    exactly. All its terms are non-negative; removing one client from the Poisson binomial by division would lose
    digits.
    """
    for p_i in p:
        check("p", p_i)
    c = np.zeros(len(p))
    nodes, mass = roots_legendre((len(p) + 1) // 2)
    for s, w in zip((nodes + 1) / 2, mass / 2, strict=True):
        factor = 1 - p + p * s
        before = np.concatenate(([1.0], np.cumprod(factor[:-1])))
        after = np.concatenate((np.cumprod(factor[:0:-1])[::-1], [1.0]))
        c += w * before * after
    return p * c


def effective_weights_groups(counts: list[Float[np.ndarray, "..."]]) -> Float[np.ndarray, "m"]:
    """c_i [m] for the group events of [HAR], exact, from the distributions of `group_counts`.

    The counts of the groups are independent. With k active members in a group of size n and l active clients elsewhere,
    a member of the group is active with probability k / n and then has weight 1 / (k + l).
    """
    c = []
    for g, count in enumerate(counts):
        others = reduce(np.convolve, counts[:g] + counts[g + 1 :], np.ones(1))
        size = len(count) - 1
        k = np.arange(1, size + 1)[:, None]
        joint = count[1:, None] * others
        c.append(np.full(size, (joint * (k / size) / (k + np.arange(len(others)))).sum()))
    return np.concatenate(c)


def group_counts(
    sizes: list[int],
    event_probability: Float[np.ndarray, "G"],
    member_probability: float | Float[np.ndarray, "G"],
    max_active: int | None = None,
    reading: Reading = "collision",
) -> list[Float[np.ndarray, "..."]]:
    """The distribution [sizes[g] + 1] of the number of active members of each group g, after the constraint M_max.

    The arguments are those of `GroupEvents`; `event_probability` is its `events`, `member_probability` its `inside`.
    """
    counts = []
    inside = np.broadcast_to(member_probability, len(sizes))
    for size, event, member in zip(sizes, event_probability, inside, strict=True):
        k = np.arange(size + 1)
        if size < 1000:
            count = comb(size, k) * member**k * (1 - member) ** (size - k)
        else:  # where comb overflows
            choices = gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1)
            count = np.exp(choices + xlogy(k, member) + xlog1py(size - k, -member))
            count /= count.sum()  # the logarithms lose digits
        if max_active is not None and max_active < size:
            excess = count[max_active + 1 :].sum()
            count[max_active + 1 :] = 0.0
            count[0 if reading == "collision" else max_active] += excess
        count *= event
        count[0] += 1 - event
        counts.append(count)
    return counts


def normalised(weights: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """Weights divided by their sum, for example those of the objective that an algorithm in fact minimises."""
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise ValueError("weights: must be finite, at least 0 and not all 0")
    # First divided by the largest: the sum of weights near the largest double would overflow.
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def l1_distance(target: Float[np.ndarray, "m"], weights: Float[np.ndarray, "m"]) -> float:
    """L1 distance sum_i |target_i - weights_i| of two distributions, from 0 to 2: twice the total variation."""
    _check_distributions(target, weights)
    return float(np.abs(target - weights).sum())


def chi_square(target: Float[np.ndarray, "m"], weights: Float[np.ndarray, "m"]) -> float:
    """Chi-square divergence sum_i (alpha_i - q_i)^2 / q_i of target alpha and realised weights q ([CAF] eq. 11).

    It is not symmetric. As in the paper, the realised weights are in the denominator: the paper's bound on the bias
    applies Cauchy-Schwarz to the q-weighted objective that is in fact minimised. So a client with small q_i costs much,
    and the value is infinite if q_i = 0 < alpha_i. A client with alpha_i = q_i = 0 adds nothing.
    """
    _check_distributions(target, weights)
    if ((weights == 0) & (target > 0)).any():
        return float("inf")
    positive = weights > 0
    with np.errstate(over="ignore"):
        return float(((target[positive] - weights[positive]) ** 2 / weights[positive]).sum())


def _check_distributions(target: np.ndarray, weights: np.ndarray) -> None:
    for name, values in (("target", target), ("weights", weights)):
        if not (values >= 0).all() or not abs(values.sum() - 1) < 1e-9:
            raise ValueError(f"{name}: must be a distribution (at least 0, sum 1; the sum is {values.sum():g})")
