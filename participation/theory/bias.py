"""Distances between realised weights and target weights, as distributions over the clients."""

import numpy as np
from jaxtyping import Float


def normalised(weights: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """Weights divided by their sum.

    For example pi_R, p or c become the weights of the objective that an algorithm in fact minimises.

    Raises:
        ValueError: a weight that is negative or not finite, or none above zero.
    """
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise ValueError("weights: must be finite, at least 0 and not all 0")
    # First divided by the largest: weights near the smallest double would overflow the quotient.
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def l1_distance(target: Float[np.ndarray, "m"], weights: Float[np.ndarray, "m"]) -> float:
    """L1 distance sum_i |target_i - weights_i|, from 0 to 2.

    Raises:
        ValueError: one of them is not a distribution; see `normalised`.
    """
    _check(target, weights)
    return float(np.abs(target - weights).sum())


def total_variation(target: Float[np.ndarray, "m"], weights: Float[np.ndarray, "m"]) -> float:
    """Total variation distance: half the L1 distance, from 0 to 1.

    Raises:
        ValueError: one of them is not a distribution; see `normalised`.
    """
    return l1_distance(target, weights) / 2


def chi_square(target: Float[np.ndarray, "m"], weights: Float[np.ndarray, "m"]) -> float:
    """Chi-square divergence sum_i (alpha_i - q_i)^2 / q_i of target alpha and realised weights q ([CAF] eq. 11).

    It is not symmetric. As in the paper, the realised weights are in the denominator: the paper's bound on the bias
    applies Cauchy-Schwarz to the q-weighted objective that is in fact minimised. So a client with small q_i costs much,
    and the value is infinite if q_i = 0 < alpha_i. A client with alpha_i = q_i = 0 adds nothing.

    Raises:
        ValueError: one of them is not a distribution; see `normalised`.
    """
    _check(target, weights)
    if ((weights == 0) & (target > 0)).any():
        return float("inf")
    positive = weights > 0
    with np.errstate(over="ignore"):
        return float(((target[positive] - weights[positive]) ** 2 / weights[positive]).sum())


def _check(target: np.ndarray, weights: np.ndarray) -> None:
    for name, values in (("target", target), ("weights", weights)):
        if not (values >= 0).all() or not abs(values.sum() - 1) < 1e-9:
            raise ValueError(f"{name}: must be a distribution (at least 0, sum 1; the sum is {values.sum():g})")
