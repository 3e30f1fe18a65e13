"""Distribution of the number a = |A| of active clients in a round.

For independent participation and for the group events of [HAR]. A distribution of a count is an array [n + 1] whose
entry k is the probability of k.
"""

import math
from typing import Literal

import numpy as np
from jaxtyping import Float

from participation.theory.checks import check_least, check_probabilities

Reading = Literal["collision", "cap"]


def active_distribution_independent(p: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m+1"]:
    """P(a = k) for k = 0..m, for independent participation with probabilities p (Poisson binomial); O(m^2).

    All steps add products of non-negative numbers, so no digits are lost.

    Raises:
        ValueError: a probability outside [0, 1].
    """
    check_probabilities("p", p)
    law = np.zeros(len(p) + 1)
    law[0] = 1.0
    for k, p_k in enumerate(p):
        law[1 : k + 2] = law[1 : k + 2] * (1 - p_k) + law[: k + 1] * p_k
        law[0] *= 1 - p_k
    return law


def empty_probability_independent(p: Float[np.ndarray, "m"]) -> float:
    """P(a = 0) = prod_i (1 - p_i) for independent participation, by logarithms so that it does not underflow.

    Raises:
        ValueError: a probability outside [0, 1].
    """
    check_probabilities("p", p)
    if (p == 1).any():
        return 0.0
    return math.exp(float(np.log1p(-p).sum()))


def group_counts(
    sizes: list[int],
    event_probability: Float[np.ndarray, "G"],
    member_probability: float,
    max_active: int | None = None,
    reading: Reading = "collision",
) -> list[Float[np.ndarray, "..."]]:
    """Distribution of the number of active members of each group of [HAR], after the constraint M_max.

    See `effective_weights_groups` for the model and the arguments.

    Returns:
        For each group g an array [sizes[g] + 1].

    Raises:
        ValueError: no group, a size below 1, not one event probability for each group, a probability outside [0, 1], or
            max_active below 1.
    """
    from scipy import stats  # takes a quarter of a second, which a run need not wait for

    if len(sizes) != len(event_probability) or not sizes:
        raise ValueError(
            f"event_probability: {len(event_probability)} values for {len(sizes)} groups are not allowed; "
            "must be one for each group, and at least one group"
        )
    for size in sizes:
        check_least("sizes", size, 1)
    check_probabilities("event_probability", event_probability)
    check_probabilities("member_probability", np.array(member_probability, dtype=np.float64)[None])
    if max_active is not None:
        check_least("max_active", max_active, 1)
    counts = []
    for size, event in zip(sizes, event_probability, strict=True):
        count = stats.binom.pmf(np.arange(size + 1), size, member_probability)
        if max_active is not None and max_active < size:
            excess = count[max_active + 1 :].sum()
            count[max_active + 1 :] = 0.0
            count[0 if reading == "collision" else max_active] += excess
        count *= event
        count[0] += 1 - event
        counts.append(count)
    return counts


def active_distribution_groups(
    sizes: list[int],
    event_probability: Float[np.ndarray, "G"],
    member_probability: float,
    max_active: int | None = None,
    reading: Reading = "collision",
) -> Float[np.ndarray, "n"]:
    """P(a = k), k = 0..sum(sizes), for the group events of [HAR]; arguments and errors of `group_counts`."""
    law = np.ones(1)
    for count in group_counts(sizes, event_probability, member_probability, max_active, reading):
        law = np.convolve(law, count)
    return law


def empty_probability_groups(
    sizes: list[int],
    event_probability: Float[np.ndarray, "G"],
    member_probability: float,
    max_active: int | None = None,
    reading: Reading = "collision",
) -> float:
    """P(a = 0) for the group events of [HAR]; arguments and errors of `group_counts`."""
    counts = group_counts(sizes, event_probability, member_probability, max_active, reading)
    return math.prod(float(count[0]) for count in counts)
