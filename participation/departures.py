"""Models on top of another one: clients that arrive and depart during the run, and an adversary's dropout."""

from collections.abc import Callable
from math import inf

import numpy as np
from jaxtyping import Bool, Float, Int

from rollcall.participation.base import Participation, Population, check
from rollcall.participation.probabilities import Probability, resolve
from rollcall.participation.streams import stream


class Churn(Participation):
    """Clients arrive and depart; in between, another model decides. An oracle knows who is there.

    Args:
        participation: the other model.
        arrive: each client arrives in a round drawn uniformly from 0 to this one.
        stay: mean of the geometric number of rounds after which a client departs for good. Default: it stays.
    """

    def __init__(
        self,
        population: Population,
        *,
        participation: Callable[[Population], Participation],
        arrive: int = 0,
        stay: float | None = None,
    ) -> None:
        super().__init__(population)
        self.model = participation(population)
        check("arrive", arrive, 0, inf)
        check("stay", 1 if stay is None else stay, 1, inf)
        rng = stream(self.seed, "participation", 0, 4)  # keys of one number are those of rounds
        self.arrival = rng.integers(arrive, size=self.clients, endpoint=True)
        self.stay = rng.geometric(1 / stay, self.clients) if stay is not None else np.full(self.clients, inf)

    def _there(self, t: int) -> Bool[np.ndarray, "m"]:
        return (self.arrival <= t) & (t < self.arrival + self.stay)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        ids = self.model.active(t)
        return ids[self._there(t)[ids]]

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        p = self.model.probability(t)
        return None if p is None else p * self._there(t)


class Adversary(Participation):
    """Of the a available clients of another model, an adversary silences the floor(epsilon a) with the least weight.

    Args:
        participation: the other model.
        epsilon: the silenced share, in [0, 1].
        probability: the weights, such as those of `class_coupled`; of equal ones the smaller ids are silenced.
    """

    def __init__(
        self,
        population: Population,
        *,
        participation: Callable[[Population], Participation],
        probability: Probability,
        epsilon: float = 0.1,
    ) -> None:
        super().__init__(population)
        check("epsilon", epsilon)
        self.model, self.epsilon = participation(population), epsilon
        self.weights = resolve(probability, population)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        ids = self.model.active(t)
        silent = int(round(self.epsilon * len(ids), 9))  # 0.29 * 100 is just below 29
        return np.sort(ids[np.argsort(self.weights[ids], kind="stable")[silent:]])
