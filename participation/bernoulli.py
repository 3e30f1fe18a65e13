"""Independent participation: client i is active in round t with probability p_i^t."""

import numpy as np
from jaxtyping import Float, Int

from participation.base import Participation, Population
from participation.probabilities import Source, resolve
from participation.streams import stream
from participation.theory import effective_weights_independent
from participation.variations import Variation, mean_over_period


class Bernoulli(Participation):
    """Each client is active with probability p_i^t, independently over clients and rounds ([PBC] section VII).

    Args:
        population: the clients.
        probability: p_i as one number, one for each client, or a source such as `class_coupled`.
        variation: p_i^t as a function of p_i and t, such as `sine`. Default: p_i^t = p_i. The stationary probability is
            the mean of p_i^t over a period, and unknown if the variation has no period.

    Raises:
        ValueError: a probability outside [0, 1], or not one for each client.
    """

    def __init__(
        self,
        population: Population,
        *,
        probability: float | np.ndarray | Source,
        variation: Variation | None = None,
    ) -> None:
        self.clients = population.clients
        self.seed = population.seed
        self.p = resolve(probability, population)
        self.variation = variation
        self.probability(0)  # refuses options of the variation that are out of range before the first round

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        # One uniform draw for each client couples the roll calls of a seed: a larger p_i only adds active rounds.
        return np.flatnonzero(stream(self.seed, "participation", t).random(self.clients) < self.probability(t))

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.p if self.variation is None else self.variation(self.p, t)

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self.p if self.variation is None else mean_over_period(self.variation, self.p)

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        return effective_weights_independent(self.p) if self.variation is None else None

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return np.zeros(self.clients)
