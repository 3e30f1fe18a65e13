"""Groups of clients with common events, and collisions within a group ([HAR] section V)."""

from collections.abc import Sequence
from math import comb
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.base import IndependentRounds, Population
from rollcall.participation.streams import stream
from rollcall.participation.theory import effective_weights_groups


class GroupEvents(IndependentRounds):
    """A group's clients can only be active in a round in which the event of their group happens ([HAR] section V).

    Group g has its event with probability e_g, independently over groups and rounds. Then its members are active
    independently with probability `inside`; otherwise all are inactive. The active set, and the probabilities that an
    oracle knows, are those after the constraint `max_active`.

    Args:
        population: the clients; groups are contiguous in the order of ids.
        sizes: number of clients of each group; they add up to m.
        events: e_g, one for each group, in [0, 1].
        inside: probability of a member to be active, given the event of its group, in [0, 1].
        max_active: M_max, the largest number of clients of a group that can be active. Default: no limit.
        reading: what happens if more members are active: `collision`, all of the group fail (the paper's wording), or
            `cap`, a random M_max of them succeed.

    Raises:
        ValueError: sizes that do not add up to m, not one event for each group, or a value out of range.
    """

    def __init__(
        self,
        population: Population,
        *,
        sizes: Sequence[int] = (3, 4, 3),
        events: Sequence[float] = (0.3, 0.6, 0.3),
        inside: float = 0.95,
        max_active: int | None = None,
        reading: Literal["collision", "cap"] = "collision",
    ) -> None:
        self.clients = population.clients
        self.seed = population.seed
        if min(sizes, default=0) < 1 or sum(sizes) != self.clients:
            raise ValueError(
                f"sizes: {list(sizes)} is not allowed; must be numbers above 0 that add up to {self.clients}"
            )
        if len(events) != len(sizes):
            raise ValueError(f"events: {list(events)} is not allowed; must be {len(sizes)} numbers, one for each group")
        for g, event in enumerate(events):
            if not 0 <= event <= 1:
                raise ValueError(f"events: {event:g} (group {g}) is not allowed; must be in [0, 1]")
        if not 0 <= inside <= 1:
            raise ValueError(f"inside: {inside:g} is not allowed; must be in [0, 1]")
        if max_active is not None and max_active < 1:
            raise ValueError(f"max_active: {max_active} is not allowed; must be at least 1, or null for all")
        self.group = np.repeat(np.arange(len(sizes)), sizes)
        self.events = np.array(events, dtype=np.float64)
        self.inside = inside
        self.max_active = max(sizes) if max_active is None else max_active
        self.reading = reading
        p = [e * _share(n, inside, self.max_active, reading) for e, n in zip(events, sizes, strict=True)]
        self.p = np.array(p, dtype=np.float64)[self.group]

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        sizes = np.bincount(self.group).tolist()
        return effective_weights_groups(sizes, self.events, self.inside, self.max_active, self.reading)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        rng = stream(self.seed, "participation", t)
        event = rng.random(len(self.events)) < self.events
        on = np.flatnonzero(event[self.group] & (rng.random(self.clients) < self.inside))
        count = np.bincount(self.group[on], minlength=len(self.events))
        if self.reading == "collision":
            return on[(count <= self.max_active)[self.group[on]]]
        # The first M_max of each group succeed, in random order.
        order = np.lexsort((rng.random(len(on)), self.group[on]))
        rank = np.arange(len(on)) - np.repeat(np.cumsum(count) - count, count)
        return np.sort(on[order][rank < self.max_active])


def _share(n: int, inside: float, max_active: int, reading: str) -> float:
    """Probability that one of n members is active after the constraint, given the event of its group."""
    total = 0.0
    for k in range(1, n + 1):
        successful = k if k <= max_active else (max_active if reading == "cap" else 0)
        total += comb(n, k) * inside**k * (1 - inside) ** (n - k) * successful / n
    return total
