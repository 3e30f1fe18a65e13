"""The kind of a choice, seen from its name, its base class or its parameters."""

import inspect
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import numpy as np

from benchmark.config import contributed
from benchmark.config.errors import SettingError
from benchmark.config.kinds import KINDS, Kind
from benchmark.config.source import in_words

WIDER = {"metric": "model", "server_optimizer": "local_optimizer", "participation": "function"}
"""For a kind, a wider one that its parts could be of too: metrics of torchmetrics are torch modules, the checks of both
kinds of optimizers are the same, and a function of (t, rng) is a participation model."""

TAKEN = ("task", "probability", "server_optimizer")
"""Of the kinds with the same parameters, the ones that a function without annotations is taken for."""


@dataclass(frozen=True)
class Seen:
    """The kind that a part was taken for.

    Attributes:
        kind: such as `schedule`.
        because: the parameters that tell it; empty if its name, its base class or its annotation does.
        others: kinds that a part with the same parameters may be of too.
    """

    kind: str
    because: str = ""
    others: tuple[str, ...] = ()


def kind_of(name: str) -> Seen:
    """The kind of what a name stands for; `algorithm` if the name is not known at all.

    Raises:
        SettingError: a file that cannot be loaded, or a choice that may be of several kinds or of none.
    """
    kinds = [kind for kind in KINDS if name in contributed.installed(kind)]
    if not kinds and ":" not in name:
        kinds = [kind for kind in KINDS if name in KINDS[kind].known]
    if "algorithm" in kinds or (not kinds and ":" not in name):
        return Seen("algorithm")
    if kinds:
        return _only(name, _narrow(kinds))
    thing = contributed.loaded(name)
    kinds = _by_class(thing) if isinstance(thing, type) else _by_result(thing)
    if kinds:
        return _only(name, kinds)
    seen = _by_parameters(thing) if callable(thing) else None
    if seen is None:
        raise SettingError(f"{name}: {_unclear(thing)}")
    return seen


def _by_class(cls: type) -> list[str]:
    """The kinds that a base class tells; without one, those whose base class requires methods that the class has."""
    if issubclass(cls, resolve_name("tasks:Task")):  # it is a torch module too, but no model
        return ["task"]
    required = {kind: getattr(entry.result, "__abstractmethods__", ()) for kind, entry in KINDS.items()}
    alike = (kind for kind, names in required.items() if names and all(hasattr(cls, name) for name in names))
    return _making(lambda entry: entry.may_make(cls)) or list(alike)


def _by_result(thing: Any) -> list[str]:
    """The kinds that an object is the result of, or a function by its annotation."""
    if isinstance(thing, np.ndarray):
        return ["participation"] * (thing.ndim == 2)  # a mask
    kinds = _making(lambda entry: entry.fits(thing))
    annotated = getattr(thing, "__annotations__", {}).get("return")
    if not kinds and callable(thing) and isinstance(annotated, type):
        kinds = _making(lambda entry: issubclass(annotated, entry.result))
    return kinds


def _making(fits: Callable[[Kind], bool]) -> list[str]:
    """The kinds whose choices make something of a class that can be told, and that fits."""
    unknown = (None, tuple)
    return _narrow(
        kind
        for kind, entry in KINDS.items()
        if entry.result not in unknown and not getattr(entry.result, "_is_protocol", False) and fits(entry)
    )


def _narrow(kinds: Iterable[str]) -> list[str]:
    """Kinds without those that are wider than another one."""
    kinds = list(kinds)
    return [kind for kind in kinds if not any(WIDER.get(other) == kind for other in kinds)]


def _by_parameters(thing: Callable[..., Any]) -> Seen | None:
    """The kind whose parameters have the names of those of a callable; the kinds with the most parameters count."""
    names = [parameter.name for parameter in _positional(thing)]
    needed = {kind: entry.parameters.split(", ") for kind, entry in KINDS.items() if entry.supplied}
    exact = [kind for kind in needed if names[: len(needed[kind])] == needed[kind]]
    longest = max((len(needed[kind]) for kind in exact), default=0)
    exact = [kind for kind in exact if len(needed[kind]) == longest]
    kind = next((kind for kind in TAKEN if kind in exact), next(iter(exact), ""))
    if isinstance(thing, type) or (kind == "task" and not _may_return_a_pair(thing)):
        kind = "augmentation" if "augmentation" in exact else ""
    if not kind:
        return None
    others = tuple(one for one in exact if one not in (kind, WIDER.get(kind)))
    return Seen("participation" if kind == "function" else kind, KINDS[kind].parameters, others)


def _may_return_a_pair(thing: Callable[..., Any]) -> bool:
    annotated = getattr(thing, "__annotations__", {}).get("return")
    return annotated is None or typing.get_origin(annotated) is tuple


def _positional(thing: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(thing).parameters.values()
    return [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _only(name: str, kinds: list[str]) -> Seen:
    if len(kinds) == 1:
        return Seen(kinds[0])
    raise SettingError(f"{name}: may be of the kinds {', '.join(kinds)}; say which with --kind")


def _unclear(thing: Any) -> str:
    """Why the kind of something is not clear, and which kinds are possible."""
    if isinstance(thing, type):
        told = ("algorithm", "participation", "model", "metric", "server_optimizer")
        forms = "; ".join(f"{kind}: {KINDS[kind].returned or KINDS[kind].needs}" for kind in told)
        return f"its kind is not clear from its base class or its methods; say it with --kind. Classes are {forms}"
    if not callable(thing):
        seen = f"an array {list(thing.shape)}" if isinstance(thing, np.ndarray) else in_words(thing)
        return f"it is {seen}; must be a class, a function, a mask [rounds, clients], or an instance of a part"
    takes = ", ".join(parameter.name for parameter in _positional(thing))
    required = [parameter for parameter in _positional(thing) if parameter.default is parameter.empty]
    possible = [
        f"{'participation' if kind == 'function' else kind} ({entry.parameters})"
        for kind, entry in KINDS.items()
        if entry.supplied == len(required) and not entry.subclass
    ]
    listed = (
        f"With as many parameters there are {', '.join(possible)}" if possible else "No kind has as many parameters"
    )
    return f"its kind is not clear from its parameters ({takes}); say it with --kind. {listed}"
