"""A roll call from a plain function."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from participation.base import Participation, Population
from participation.streams import stream
from participation.trace import checked

Draw: TypeAlias = Callable[[int, np.random.Generator], Any]
"""The active clients of round t: a mask [m] of true and false, or the ids of the active clients in any order."""

FUNCTIONS: dict[str, Draw] = {}
"""The suite has no such function. Yours is `FILE.py:NAME`, `package.module:NAME`, or in Python the function itself."""


class FromFunction(Participation):
    """The clients that a function of the user's own names, `function(t, rng)`.

    `rng` is a NumPy generator whose numbers depend on the seed and the round alone. A function that draws from it only,
    and keeps nothing from round to round, gives the same roll call for every method and after a restart.

    Args:
        population: the clients.
        function: takes the round t and `rng`. Returns a mask [m] of true and false, or the ids of the active clients.
        probability: p_i for an oracle, the same in all rounds, [m] in [0, 1]. Default: unknown.
        stationary: pi [m] for an oracle, in [0, 1]. Default: unknown.
        correlation: lambda [m] for an oracle, in [-1, 1]. Default: unknown.
        share: c [m] for an oracle, in [0, 1]. Default: unknown.

    Raises:
        ValueError: knowledge of a wrong shape or out of range; or the function returns something else.
    """

    def __init__(
        self,
        population: Population,
        *,
        function: Draw,
        probability: np.ndarray | None = None,
        stationary: np.ndarray | None = None,
        correlation: np.ndarray | None = None,
        share: np.ndarray | None = None,
    ) -> None:
        m = self.clients = population.clients
        self.seed = population.seed
        self.function = function
        self._probability = checked("probability", probability, [(m,)], 0, 1)
        self._stationary = checked("stationary", stationary, [(m,)], 0, 1)
        self._correlation = checked("correlation", correlation, [(m,)], -1, 1)
        self._share = checked("share", share, [(m,)], 0, 1)
        self.active(0)  # refuses a wrong function before the first round

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        return active_ids(self.function(t, stream(self.seed, "participation", t)), self.clients, t)

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        return self._probability

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self._stationary

    @property
    def correlation(self) -> Float[np.ndarray, "m"] | None:
        return self._correlation

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        return self._share


def active_ids(answer: Any, m: int, t: int) -> Int[np.ndarray, "a"]:
    """The ids of the active clients, ascending, from a mask or from ids.

    Raises:
        ValueError: it is neither a mask [m] nor different ids of clients.
    """
    values = np.asarray(answer)
    must = f"must be a mask of {m} values true or false, or ids from 0 to {m - 1}"
    if values.dtype == bool:
        if values.shape != (m,):
            raise ValueError(f"function: a mask of shape {values.shape} is not allowed (round {t}); {must}")
        return np.flatnonzero(values)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        kind = f"{values.dtype} of shape {values.shape}"
        raise ValueError(f"function: {type(answer).__name__} ({kind}) is not allowed (round {t}); {must}")
    ids = np.unique(values).astype(np.int64)
    if len(ids) < len(values):
        raise ValueError(
            f"function: an id twice is not allowed (round {t}); {must}. A mask of 0 and 1: use astype(bool)"
        )
    if ids[0] < 0 or ids[-1] >= m:
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise ValueError(f"function: id {wrong} is not allowed (round {t}); {must}")
    return ids
