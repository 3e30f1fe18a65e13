"""Independent participation: each client is active with its own probability."""

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.base import IndependentRounds, Participation, Population
from rollcall.participation.probabilities import Source, resolve
from rollcall.participation.streams import stream
from rollcall.participation.theory import effective_weights_independent
from rollcall.participation.variations import Variation, mean_over_period


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


class Active(IndependentRounds):
    """Each client is active with probability p_i, independently; an empty round may be drawn again.

    Args:
        population: the clients.
        probability: p_i as one number, one for each client, or a source such as `mixture`.
        redraw_if_empty: repeat the draw of a round until a client is active. Then client i is active with probability
            p_i / (1 - prod_j (1 - p_j)), and an oracle knows this probability.

    Raises:
        ValueError: a probability outside [0, 1], not one for each client, or all 0 with `redraw_if_empty`.

    References:
        FOCUS, "active arbitrary" participation.
    """

    def __init__(
        self, population: Population, *, probability: float | np.ndarray | Source, redraw_if_empty: bool = False
    ) -> None:
        self.clients = population.clients
        self.seed = population.seed
        self.p_draw = self.p = resolve(probability, population)
        self.redraw = redraw_if_empty
        if redraw_if_empty:
            if not self.p_draw.any():
                raise ValueError("redraw_if_empty: True is not allowed; a probability must be above 0")
            self.p = np.minimum(self.p_draw / self._occupancy, 1.0)

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        """c_i [m] = E[1{i in A} / |A|]."""
        c = effective_weights_independent(self.p_draw)
        return c / self._occupancy if self.redraw else c

    @property
    def _occupancy(self) -> float:
        """The probability that a draw is not empty."""
        with np.errstate(divide="ignore"):
            return float(-np.expm1(np.log1p(-self.p_draw).sum()))

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        rng = stream(self.seed, "participation", t)
        on = np.flatnonzero(rng.random(self.clients) < self.p_draw)
        return self._occupied(rng) if self.redraw and len(on) == 0 else on

    def _occupied(self, rng: np.random.Generator) -> Int[np.ndarray, "a"]:
        """One draw with the law of repeating until a client is active, which would take very long for small p.

        The first active client is j with probability proportional to p_j prod_{i<j} (1 - p_i). The clients after j are
        drawn independently.
        """
        # Only reached after an empty draw, so no p is 1 and all logarithms are finite.
        before = np.concatenate([[0.0], np.cumsum(np.log1p(-self.p_draw))[:-1]])
        first = np.cumsum(self.p_draw * np.exp(before))
        j = int(np.searchsorted(first, rng.random() * first[-1], side="right"))
        # If the product rounds up to the total, the index would be beyond the last client with p > 0.
        j = min(j, int(np.flatnonzero(self.p_draw)[-1]))
        later = rng.random(self.clients) < self.p_draw
        return np.concatenate([[j], j + 1 + np.flatnonzero(later[j + 1 :])])
