"""Full participation."""

import numpy as np
from jaxtyping import Float, Int

from participation.base import IndependentRounds, Population


class Full(IndependentRounds):
    """Full participation: all clients are active in every round."""

    def __init__(self, population: Population) -> None:
        self.clients = population.clients
        self.p = np.ones(self.clients)

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        return self.p / self.clients

    def active(self, t: int) -> Int[np.ndarray, "m"]:
        return np.arange(self.clients)
