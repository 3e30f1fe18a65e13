"""Variations of the participation probabilities p_i over time.

A variation takes p [m] and the round t and returns p^t [m]. Its keyword arguments are the options of an experiment
file. A periodic variation has the option `period`, P, a whole number of rounds. ValueError: an option out of range.
"""

import inspect
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from rollcall.participation.base import check

Variation: TypeAlias = Callable[[Float[np.ndarray, "m"], int], Float[np.ndarray, "m"]]


def sine(p: Float[np.ndarray, "m"], t: int, *, gamma: float = 0.4, period: int = 40) -> Float[np.ndarray, "m"]:
    """A sine: p_i^t = p_i [(1 - gamma) + gamma sin(2 pi t / P)], clipped to [0, 1] ([PBC] section VII).

    The default values are those of the authors' released code.

    Args:
        gamma: depth of the variation, in [0, 1]. Above 1/2 clients are inactive for a part of each period.
    """
    check("variation.gamma", gamma)
    check("variation.period", period, 1, math.inf)
    # The angle is taken within the period, so that p^t repeats exactly.
    factor = (1 - gamma) + gamma * math.sin(2 * math.pi * (t % period) / period)
    return np.clip(p * factor, 0.0, 1.0)


def staircase(p: Float[np.ndarray, "m"], t: int, *, low: float = 0.4, period: int = 40) -> Float[np.ndarray, "m"]:
    """A step: p_i in the first half of each period, low * p_i in the second (after Xiang et al. 2024, FedAWE).

    Args:
        low: factor of p_i in the second half, in [0, 1].
        period: P, in rounds. If odd, the first half is the longer one.
    """
    check("variation.low", low)
    check("variation.period", period, 1, math.inf)
    return p * (1.0 if 2 * (t % period) < period else low)


VARIATIONS: dict[str, Callable[..., np.ndarray]] = {
    "sine": sine,
    "staircase": staircase,
}


def mean_over_period(variation: Variation, p: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"] | None:
    """The mean of p^t [m] over the rounds of a period, after clipping; None if the variation has no period."""
    option = inspect.signature(variation).parameters.get("period")
    if option is None or not isinstance(option.default, int):
        return None
    # Rounding may put the mean just above 1.
    return np.minimum(sum((variation(p, t) for t in range(option.default)), np.zeros_like(p)) / option.default, 1.0)
