"""What the papers show of roll calls themselves: laws and pictures without any learning.

A study takes a seed and gives a table with the column `round`, which is what it runs over (rounds, clients or
probabilities), and a column for each quantity; its keyword arguments are the options of an experiment file.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from participation import theory


def prop1_limit(seed: int, *, targets: np.ndarray, probability: np.ndarray) -> pd.DataFrame:
    """Where E[x] of FedAvg tends on scalar quadratics 0.5 (x - u_i)^2 under independent uplinks ([PBC] Proposition 1).

    The limit is the mean of the u_i under FedAvg's effective weights E[1{i in A}/|A|], whatever eta and K; for
    u = (0, 100), p_1 = 0.5 it is 150 p_2 / (1 + p_2).

    Columns are x, and `train/bias` as the task `quadratic` has it: x less the mean of the u_i, which is the optimum.

    Args:
        seed: has no part in it.
        targets: u, [m].
        probability: p, [m].
    """
    weights = theory.normalised(theory.effective_weights_independent(np.asarray(probability, dtype=np.float64)))
    x = float(weights @ targets)
    return pd.DataFrame({"round": [0], "x": [x], "train/bias": [x - float(np.mean(targets))]})


STUDIES: dict[str, Callable[..., pd.DataFrame]] = {
    "prop1_limit": prop1_limit,
}
