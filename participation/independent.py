"""Models whose rounds are independent: a round does not depend on earlier rounds."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from rollcall.participation.base import Constant, Participation, Population, check, need_defaults, stream
from rollcall.participation.probabilities import Probability, Variation, mean_over_period, resolve, varied
from rollcall.participation.weights import effective_weights_groups, effective_weights_independent, group_counts


class IndependentRounds(Constant):
    """Base class of models whose rounds are independent and identically distributed: pi_i = p_i and lambda_i = 0."""

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return np.zeros(self.clients)


class Full(IndependentRounds):
    """Full participation: all clients are active in every round."""

    independent = True

    def __init__(self, population: Population) -> None:
        super().__init__(population)
        self.p = np.ones(self.clients)

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        return self.p / self.clients

    def active(self, t: int) -> Int[np.ndarray, "m"]:
        return np.arange(self.clients)


class Uniform(IndependentRounds):
    """B clients in each round, drawn uniformly without replacement.

    Args:
        per_round: B, the number of active clients, in [1, m].
    """

    def __init__(self, population: Population, *, per_round: int) -> None:
        super().__init__(population)
        self.per_round = per_round
        check("per_round", per_round, 1, self.clients)
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
        per_round: B, the number of active clients, at most the number of clients with a weight above 0.
        probability: q_i; only their proportions matter.
    """

    def __init__(self, population: Population, *, per_round: int, probability: Probability) -> None:
        super().__init__(population)
        self.per_round = per_round
        self.q = resolve(probability, population)
        possible = int((self.q > 0).sum())
        if not 1 <= per_round <= possible:
            must = f"must be in [1, {possible}], the clients with weight above 0"
            raise ValueError(f"per_round: {per_round} is not allowed; {must}")

    def active(self, t: int) -> Int[np.ndarray, "B"]:
        return np.sort(successive(self.q, self.per_round, stream(self.seed, "participation", t)))

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return np.zeros(self.clients)


def successive(q: Float[np.ndarray, "n"], B: int, rng: np.random.Generator) -> Int[np.ndarray, "B"]:
    """Draw B different positions of q [n] one after another, in proportion to the remaining q; in no order."""
    # The first B arrivals of exponential clocks with rates q_i. As the clocks are memoryless, the next arrival is i
    # with probability q_i over the sum of the remaining rates.
    q = np.ldexp(q, -np.frexp(q.max())[1])  # exact; a quotient by the smallest doubles would be infinite
    with np.errstate(divide="ignore", over="ignore"):
        arrival = rng.standard_exponential(len(q)) / q
    return np.argpartition(arrival, B - 1)[:B]


class Bernoulli(IndependentRounds):
    """Each client is active with probability p_i^t, independently over clients and rounds ([PBC] section VII).

    Args:
        probability: p_i.
        variation: p_i^t as a function of p_i and t, such as `sine`. Default: p_i^t = p_i. The stationary probability is
            the mean of p_i^t over a period, and unknown if the variation has no period.
    """

    def __init__(self, population: Population, *, probability: Probability, variation: Variation | None = None) -> None:
        super().__init__(population)
        self.p = resolve(probability, population)
        self.variation = variation
        self.independent = variation is None
        self.probability(0)  # refuses options of the variation that are out of range before the first round

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        # One uniform draw for each client couples the roll calls of a seed: a larger p_i only adds active rounds.
        return np.flatnonzero(stream(self.seed, "participation", t).random(self.clients) < self.probability(t))

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.p if self.variation is None else varied(self.variation, self.p, t)

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self.p if self.variation is None else mean_over_period(self.variation, self.p)

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        return effective_weights_independent(self.p) if self.variation is None else None


class Active(IndependentRounds):
    """Each client is active with probability p_i, independently; an empty round may be drawn again.

    Args:
        probability: p_i; one must be above 0 with `redraw_if_empty`.
        redraw_if_empty: repeat the draw of a round until a client is active. Then client i is active with probability
            p_i / (1 - prod_j (1 - p_j)), and an oracle knows this probability.

    References:
        FOCUS, "active arbitrary" participation.
    """

    def __init__(self, population: Population, *, probability: Probability, redraw_if_empty: bool = False) -> None:
        super().__init__(population)
        self.p_draw = self.p = resolve(probability, population)
        self.redraw = redraw_if_empty
        self.independent = not redraw_if_empty
        if redraw_if_empty and not self.p_draw.any():
            raise ValueError("redraw_if_empty: True is not allowed; a probability must be above 0")
        if redraw_if_empty:
            self.p = np.minimum(self.p_draw / self._occupancy, 1.0)

    @property
    def share(self) -> Float[np.ndarray, "m"]:
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


class GroupEvents(IndependentRounds):
    """A group's clients can only be active in a round in which the event of their group happens ([HAR] section V).

    Group g has its event with probability e_g, independently over groups and rounds. Then its members are active
    independently with probability `inside`; otherwise all are inactive. The active set, and the probabilities that an
    oracle knows, are those after the constraint `max_active`.

    Args:
        sizes: number of clients of each group, in the order of ids; they add up to m.
        events: e_g, one for each group, in [0, 1].
        inside: probability of a member to be active, given the event of its group, in [0, 1]; one number, or one for
            each group. With events of probability 1 clients are independent.
        max_active: M_max, the largest number of clients of a group that can be active. Default: no limit.
        reading: rule if more members are active: `collision`, all of the group fail (the paper's wording), or
            `cap`, a random M_max of them succeed.
    """

    def __init__(
        self,
        population: Population,
        *,
        sizes: Sequence[int] = (3, 4, 3),
        events: Sequence[float] = (0.3, 0.6, 0.3),
        inside: float | np.ndarray = 0.95,
        max_active: int | None = None,
        reading: Literal["collision", "cap"] = "collision",
    ) -> None:
        super().__init__(population)
        if min(sizes, default=0) < 1 or sum(sizes) != self.clients:
            must = f"must be numbers above 0 that add up to {self.clients}"
            raise ValueError(f"sizes: {list(sizes)} is not allowed; {must}")
        if len(events) != len(sizes):
            raise ValueError(f"events: {list(events)} is not allowed; must be {len(sizes)} numbers, one for each group")
        if max_active is None:
            need_defaults(GroupEvents, "without max_active", reading=reading)
        check("max_active", 1 if max_active is None else max_active, 1, math.inf)
        self.group = np.repeat(np.arange(len(sizes)), sizes)
        groups = Population(len(sizes))
        self.events = resolve(np.asarray(events), groups, "group", "events")
        self.inside = resolve(inside, groups, "group", "inside")
        self.max_active = max(sizes) if max_active is None else max_active
        self.reading: Literal["collision", "cap"] = reading
        self.counts = group_counts(list(sizes), self.events, self.inside, self.max_active, reading)
        self.p = np.array([np.arange(len(one)) @ one / (len(one) - 1) for one in self.counts])[self.group]

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        return effective_weights_groups(self.counts)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        rng = stream(self.seed, "participation", t)
        event = rng.random(len(self.events)) < self.events
        on = np.flatnonzero(event[self.group] & (rng.random(self.clients) < self.inside[self.group]))
        count = np.bincount(self.group[on], minlength=len(self.events))
        if self.reading == "collision":
            return on[(count <= self.max_active)[self.group[on]]]
        # The first M_max of each group succeed, in random order.
        order = np.lexsort((rng.random(len(on)), self.group[on]))
        rank = np.arange(len(on)) - np.repeat(np.cumsum(count) - count, count)
        return np.sort(on[order][rank < self.max_active])


class Copula(IndependentRounds):
    """One-factor Gaussian copula: clients are correlated by rho, at fixed probabilities p_i.

    Client i is active if sqrt(rho) W + sqrt(1 - rho) e_i < Phi^-1(p_i). W is N(0, 1) for each round, e_i is N(0, 1) for
    each client and round, all independent. Each sum is N(0, 1), so client i is active with probability p_i for any rho.
    Rounds are independent. Not from a paper; made for experiments that vary rho alone.

    Args:
        probability: p_i.
        rho: latent correlation of two clients, in [0, 1); 0 is independence.
    """

    def __init__(self, population: Population, *, probability: Probability, rho: float) -> None:
        super().__init__(population)
        if not 0 <= rho < 1:
            raise ValueError(f"rho: {rho:g} is not allowed; must be in [0, 1)")
        self.rho = rho
        self.p = resolve(probability, population)
        self.threshold = ndtri(self.p)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        rng = stream(self.seed, "participation", t)
        common = rng.standard_normal()
        individual = rng.standard_normal(self.clients)
        return np.flatnonzero(math.sqrt(self.rho) * common + math.sqrt(1 - self.rho) * individual < self.threshold)
