"""Models with memory: the state of a round depends on the state of the previous round."""

from abc import abstractmethod

import numpy as np
from jaxtyping import Int

from rollcall.participation.base import Participation, Population

SNAPSHOTS = 16
"""The largest number of earlier states that a chain stores."""


class Chain(Participation):
    """Base class of Markov chains, with `active(t)` as a function of (seed, t).

    The last state and a few earlier ones are stored. Rounds in order cost one step each. Any other round is reached by
    replaying from the nearest stored state, which is exact because each draw depends on its round only.
    """

    def __init__(self, population: Population) -> None:
        super().__init__(population)
        self._cursor: tuple[int, np.ndarray] | None = None
        self._snapshots: dict[int, np.ndarray] = {}
        self._stride = 64

    @abstractmethod
    def start(self) -> np.ndarray:
        """The state of round 0."""

    @abstractmethod
    def step(self, state: np.ndarray, t: int) -> np.ndarray:
        """The state of round t > 0 from that of round t - 1, which must not be changed in place."""

    @abstractmethod
    def emit(self, state: np.ndarray, t: int) -> Int[np.ndarray, "a"]:
        """The ids of the clients that are active in round t, ascending."""

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        known = [(s, state) for s, state in self._snapshots.items() if s <= t]
        if self._cursor is not None and self._cursor[0] <= t:
            known.append(self._cursor)
        now, state = max(known, key=lambda at: at[0]) if known else (0, self.start())
        while now < t:
            now += 1
            state = self.step(state, now)
            if now % self._stride == 0:
                self._keep(now, state)
        self._cursor = (now, state)
        return self.emit(state, t)

    def _keep(self, t: int, state: np.ndarray) -> None:
        self._snapshots[t] = state
        if len(self._snapshots) > SNAPSHOTS:  # keep half of them, twice as far apart
            self._stride *= 2
            self._snapshots = {s: state for s, state in self._snapshots.items() if s % self._stride == 0}
