"""A fixed number of clients in each round: all, or some drawn without replacement ([FOCUS], [Sun])."""

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.base import IndependentRounds, Participation, Population
from rollcall.participation.probabilities import Source, resolve
from rollcall.participation.streams import stream


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


class Uniform(IndependentRounds):
    """B clients in each round, drawn uniformly without replacement.

    Args:
        population: the clients.
        per_round: B, the number of active clients.

    Raises:
        ValueError: B is not in [1, m].
    """

    def __init__(self, population: Population, *, per_round: int) -> None:
        self.clients = population.clients
        self.seed = population.seed
        self.per_round = per_round
        if not 1 <= per_round <= self.clients:
            raise ValueError(f"per_round: {per_round} is not allowed; must be in [1, {self.clients}]")
        self.p = np.full(self.clients, per_round / self.clients)

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        return self.p / self.per_round

    def active(self, t: int) -> Int[np.ndarray, "B"]:
        rng = stream(self.seed, "participation", t)
        return np.sort(rng.choice(self.clients, self.per_round, replace=False, shuffle=False))


class Weighted(Participation):
    """B clients in each round, drawn one after another in proportion to weights q_i ([FOCUS] "passive arbitrary").

    Draws are without replacement: the next client is i with probability q_i / (sum of the remaining q). The
    participation probabilities have no closed form, so an oracle knows none.

    Args:
        population: the clients.
        per_round: B, the number of active clients.
        probability: q_i in [0, 1], of which only the proportions matter: one for each client, or a source.

    Raises:
        ValueError: B is not in [1, number of clients with a weight above 0], or a weight is not in [0, 1].
    """

    def __init__(self, population: Population, *, per_round: int, probability: float | np.ndarray | Source) -> None:
        self.clients = population.clients
        self.seed = population.seed
        self.per_round = per_round
        self.q = resolve(probability, population)
        possible = int((self.q > 0).sum())
        if not 1 <= per_round <= possible:
            raise ValueError(
                f"per_round: {per_round} is not allowed; must be in [1, {possible}], the clients with weight above 0"
            )

    def active(self, t: int) -> Int[np.ndarray, "B"]:
        return np.sort(successive(self.q, self.per_round, stream(self.seed, "participation", t)))

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return np.zeros(self.clients)


def successive(q: Float[np.ndarray, "n"], B: int, rng: np.random.Generator) -> Int[np.ndarray, "B"]:
    """Draw B different positions of q one after another, in proportion to the remaining q.

    These are the first B arrivals of exponential clocks with rates q_i. As the clocks are memoryless, the next arrival
    is i with probability q_i over the sum of the remaining rates.

    Args:
        q: [n], weights of at least 0.
        B: number of positions.
        rng: the generator.

    Returns:
        The positions [B], in no order.
    """
    with np.errstate(divide="ignore", over="ignore"):
        arrival = rng.standard_exponential(len(q)) / q
    return np.argpartition(arrival, B - 1)[:B]
