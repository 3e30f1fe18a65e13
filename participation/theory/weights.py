"""Each client's expected weight in the mean over the active set, c_i = E[1{i in A} / |A|] ([HAR] eq. 6).

An empty round contributes 0 to every client, so the c_i sum to 1 - P(A is empty).
"""

import numpy as np
from jaxtyping import Float
from scipy.special import roots_legendre

from participation.theory.checks import check_probabilities
from participation.theory.counts import Reading, group_counts


def effective_weights_independent(p: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """c_i [m] for independent participation with probabilities p, exact to rounding.

    Time is O(m^2) and memory O(m). Let a' be the number of active clients other than i (a Poisson binomial). Then
    c_i = p_i E[1 / (1 + a')]. As 1 / (1 + a') = int_0^1 s^a' ds,

        c_i = p_i int_0^1 prod_{j != i} (1 - p_j + p_j s) ds.

    The integrand is a polynomial of degree m - 1, which Gauss-Legendre quadrature with ceil(m / 2) nodes integrates
    exactly. All its terms are non-negative; removing one client from the Poisson binomial by division would lose
    digits.

    Raises:
        ValueError: a probability outside [0, 1].
    """
    check_probabilities("p", p)
    m = len(p)
    c = np.zeros(m)
    if m == 0:
        return c
    nodes, mass = roots_legendre((m + 1) // 2)
    for s, w in zip((nodes + 1) / 2, mass / 2, strict=True):
        factor = 1 - p + p * s
        before = np.concatenate(([1.0], np.cumprod(factor[:-1])))
        after = np.concatenate((np.cumprod(factor[:0:-1])[::-1], [1.0]))
        c += w * before * after
    return p * c


def effective_weights_groups(
    sizes: list[int],
    event_probability: Float[np.ndarray, "G"],
    member_probability: float,
    max_active: int | None = None,
    reading: Reading = "collision",
) -> Float[np.ndarray, "m"]:
    """c_i [m] for the group events of [HAR], exact.

    Events E_g are independent Bernoulli(event_probability[g]). Given E_g = 1, the members of group g are active
    independently with `member_probability`; given E_g = 0, none is. The counts of the groups are independent. With k
    active members in a group of size n and l active clients elsewhere, a member of the group is active with probability
    k / n and then has weight 1 / (k + l).

    Args:
        sizes: clients in each group; clients are numbered group after group, m = sum(sizes).
        event_probability: P(E_g = 1) for each group.
        member_probability: P(member active | E_g = 1).
        max_active: M_max, the largest number of active members of a group in a round. Default: no limit.
        reading: what happens if more members are active: `collision`, all of the group fail (the paper's wording);
            `cap`, a uniformly random M_max of them succeed.

    Raises:
        ValueError: as `group_counts`.
    """
    counts = group_counts(sizes, event_probability, member_probability, max_active, reading)
    c = []
    for g, size in enumerate(sizes):
        others = np.ones(1)
        for h, count in enumerate(counts):
            if h != g:
                others = np.convolve(others, count)
        k = np.arange(1, size + 1)[:, None]
        joint = counts[g][1:, None] * others
        c.append(np.full(size, (joint * (k / size) / (k + np.arange(len(others)))).sum()))
    return np.concatenate(c)
