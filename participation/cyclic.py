"""Periodic participation: some rounds active, then some rounds inactive ([PBC] Fig. 5).

Neither model has a correlation lambda: a client's state is determined by its offset.
"""

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.base import Constant, Population, check, need_defaults, stream
from rollcall.participation.probabilities import Probability, resolve


def stretches(p: Float[np.ndarray, "m"], length: int) -> tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"]]:
    """Active and inactive rounds [m] of a cycle of L >= 2 rounds: on = round(L p), half to even; both at least one."""
    check("length", length, 2, 2**53)  # beyond, a float does not hold every number of rounds
    on = np.maximum(1, np.rint(length * p).astype(np.int64))
    return on, np.maximum(1, length - on)


class Cyclic(Constant):
    """Each client repeats a cycle of `on` active and `off` inactive rounds, after a random offset ([PBC] Fig. 5a).

    The client is inactive for the first U{0..off-1} rounds, as in the authors' released code; the paper draws the
    offset from [0, (1 - p) L]. on = max(1, round(L p)) and off = max(1, L - on): even with p = 0 a client is active
    once in L rounds, and with p = 1 it is inactive once in L + 1. An oracle tells the duty on / (on + off). In a round
    t the probability to be active depends on t mod (on + off), and is 0 in the last round of each cycle.

    Args:
        probability: p_i.
        length: L, in rounds, at least 2.
    """

    def __init__(self, population: Population, *, probability: Probability, length: int = 100) -> None:
        super().__init__(population)
        self.on, self.off = stretches(resolve(probability, population), length)
        self.p = self.on / (self.on + self.off)
        self.offset = stream(self.seed, "participation", 0).integers(self.off)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        since = t - self.offset
        return np.flatnonzero((since >= 0) & (since % (self.on + self.off) < self.on))


class CyclicReset(Constant):
    """Cycles of L rounds with a new random offset in each cycle ([PBC] Fig. 5b).

    In each cycle a client is inactive for U{0..off-1} rounds, then active for `on` rounds, then inactive. An oracle
    tells the duty on / L. In a round t the probability to be active depends on t mod L, and is 0 in the last round of
    each cycle unless on = L.

    Args:
        probability: p_i.
        length: L, in rounds, at least 2.
        frozen_duty: replace p_i by (1 - gamma) p_i, as the authors' released code does.
        gamma: used with `frozen_duty`: depth of the time variation, in [0, 1].
    """

    def __init__(
        self,
        population: Population,
        *,
        probability: Probability,
        length: int = 100,
        frozen_duty: bool = False,
        gamma: float = 0.4,
    ) -> None:
        super().__init__(population)
        self.length = length
        check("gamma", gamma)
        if not frozen_duty:
            need_defaults(CyclicReset, "without frozen_duty", gamma=gamma)
        p = resolve(probability, population)
        self.on, self.off = stretches((1 - gamma) * p if frozen_duty else p, length)
        self.p = self.on / length

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        now = t % self.length
        # The active rounds fit in the cycle: offset + on <= off - 1 + on, which is L - 1, or L if on = L and off = 1.
        offset = stream(self.seed, "participation", t - now).integers(self.off)
        return np.flatnonzero((offset <= now) & (now < offset + self.on))
