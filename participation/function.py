"""User-defined participation without the base class: a plain function, or an object with `active(t)`."""

from collections.abc import Callable
from copy import copy
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from rollcall.participation.base import Participation, Population, stream
from rollcall.participation.trace import checked

Draw: TypeAlias = Callable[[int, np.random.Generator], Any]
"""The active clients of round t: a mask [m] of true and false, or the ids of the active clients in any order."""

FUNCTIONS: dict[str, Draw] = {}
"""Empty: the suite has no such function. An experiment file names a user's function."""


class FromObject(Participation):
    """A user's object with `active(t)`; it needs no base class.

    Oracle knowledge is optional: `probability` is a method of t; `stationary`, `correlation` and `share` are
    attributes. Each is one number for each client, or one number for all clients. If the object lacks one, or it is
    None, it is unknown.

    Args:
        model: its `active(t)` returns a mask [m] of true and false, or the ids of the active clients in any order.
        name: of the part that returns active clients, for errors.
    """

    def __init__(self, population: Population, model: Any, name: str = "active") -> None:
        super().__init__(population)
        self.model = model
        self.name = name
        self.active(0)  # refuses a wrong answer before the first round

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        return active_ids(self.name, self.model.active(t), self.clients, t)

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        return self._known("probability", t)

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self._known("stationary")

    @property
    def correlation(self) -> Float[np.ndarray, "m"] | None:
        return self._known("correlation", low=-1)

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        return self._known("share")

    def _known(self, name: str, *t: int, low: float = 0) -> Float[np.ndarray, "m"] | None:
        value = getattr(self.model, name, None)
        value = value(*t) if callable(value) else value
        if value is None:
            return None
        numbers = np.asarray(value, dtype=np.float64)
        shape = (self.clients,)
        return checked(name, np.full(shape, numbers) if numbers.ndim == 0 else numbers, [shape], low, 1)


class FromFunction(FromObject):
    """A user's function `function(t, rng)` that returns the active clients.

    `rng` is a NumPy generator whose numbers depend on the seed and the round alone. A function that draws from it only,
    and keeps nothing from round to round, gives the same roll call for every method and after a restart.

    Args:
        function: takes the round t and `rng`. Returns a mask [m] of true and false, or the ids of the active clients.
        probability: p_i for an oracle, the same in all rounds, [m] in [0, 1]. Default: unknown.
        stationary: pi [m] for an oracle, in [0, 1]. Default: unknown.
        correlation: lambda [m] for an oracle, in [-1, 1]. Default: unknown.
        share: c [m] for an oracle, in [0, 1]. Default: unknown.
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
        model = SimpleNamespace(
            active=lambda t: function(t, stream(population.seed, "participation", t)),
            probability=probability,
            stationary=stationary,
            correlation=correlation,
            share=share,
        )
        super().__init__(population, model, "function")
        _ = self.probability(0), self.stationary, self.correlation, self.share  # refused before the first round


def checked_model(model: Any, population: Population) -> Any:
    """A user's participation model; one without the base class as a `FromObject`.

    Raises ValueError: it is made for another number of clients.
    """
    if not isinstance(model, Participation) and not callable(getattr(model, "active", None)):
        return model
    clients = getattr(model, "clients", population.clients)
    if clients != population.clients:
        raise ValueError(f"its attribute `clients` is {clients}; must be {population.clients}, as in the task")
    if not isinstance(model, Participation):
        return FromObject(population, model)
    answer, model = model.active, copy(model)  # the user's own object stays as it is, and may be used again
    model.__dict__["active"] = lambda t: active_ids("active", answer(t), population.clients, t)
    model.active(0)
    known = {name: getattr(model, name) for name in ("stationary", "share", "correlation")}
    for name, value in (known | {"probability": model.probability(0)}).items():
        if value is not None:
            low = -1 if name == "correlation" else 0
            checked(name, np.asarray(value, dtype=np.float64), [(population.clients,)], low, 1)
    return model


def is_draw(value: Any) -> bool:
    """Whether a value is a function of (t, rng): it needs two parameters, and the first is not a population."""
    if isinstance(value, type) or not callable(value):
        return False
    try:
        parameters = list(signature(value).parameters.values())[:2]
    except ValueError:  # a function without a signature, of another language
        return False
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in positional and one.default is Parameter.empty]
    return len(needed) == 2 and needed[0].name != "population" and needed[0].annotation is not Population


def active_ids(name: str, answer: Any, m: int, t: int) -> Int[np.ndarray, "a"]:
    """The ids of the active clients, ascending, from a mask [m] or from ids: the answer of `name` in round t."""
    values = np.asarray(answer)
    must = f"must be a mask of {m} values true or false, or ids from 0 to {m - 1}"
    if values.dtype == bool:
        if values.shape != (m,):
            raise ValueError(f"{name}: a mask of shape {values.shape} is not allowed (round {t}); {must}")
        return np.flatnonzero(values)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        kind = f"{values.dtype} of shape {values.shape}"
        raise ValueError(f"{name}: {type(answer).__name__} ({kind}) is not allowed (round {t}); {must}")
    ids = np.unique(values).astype(np.int64)
    if len(ids) < len(values):
        raise ValueError(f"{name}: an id twice is not allowed (round {t}); {must}. A mask of 0 and 1: use astype(bool)")
    if ids[0] < 0 or ids[-1] >= m:
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise ValueError(f"{name}: id {wrong} is not allowed (round {t}); {must}")
    return ids
