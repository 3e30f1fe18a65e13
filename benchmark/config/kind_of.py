"""The kind of a choice, seen from its name, its base class or its parameters."""

import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmark.config import contributed
from benchmark.config.errors import SettingError
from benchmark.config.kinds import KINDS, Kind

WIDER = {"metric": "model", "server_optimizer": "local_optimizer", "participation": "function"}
"""For a kind, a wider one that its parts could be of too: metrics of torchmetrics are torch modules, the checks of both
kinds of optimizers are the same, and a function of (t, rng) is a participation model."""


def kind_of(name: str) -> str:
    """The kind of what a name stands for; `algorithm` if the name is not known at all.

    Raises:
        SettingError: a file that cannot be loaded, or a choice that may be of several kinds or of none.
    """
    kinds = [kind for kind in KINDS if name in contributed.installed(kind)]
    if not kinds and ":" not in name:
        kinds = [kind for kind in KINDS if name in KINDS[kind].known]
    if kinds:
        return "algorithm" if "algorithm" in kinds else _only(name, _narrow(kinds))
    if ":" not in name:
        return "algorithm"
    return _only(name, kinds_of(contributed.loaded(name)))


def kinds_of(thing: Any) -> list[str]:
    """The kinds that a class, a function or an object may be of."""
    if isinstance(thing, type):
        kinds = _making(lambda entry: entry.may_make(thing))
        return kinds or [kind for kind in _by_parameters(thing) if kind == "augmentation"]
    kinds = _making(lambda entry: entry.fits(thing))
    if kinds or isinstance(thing, np.ndarray):
        return kinds or ["participation"] * (thing.ndim == 2)  # a mask
    if not callable(thing):
        return []
    annotated = getattr(thing, "__annotations__", {}).get("return")
    if isinstance(annotated, type):
        kinds = _making(lambda entry: issubclass(annotated, entry.result))
    return kinds or _by_parameters(thing)


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


def _by_parameters(thing: Callable[..., Any]) -> list[str]:
    """The kinds whose parameters have the names of those of a callable; the kinds with the most parameters count."""
    parameters = [
        parameter.name
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names = {kind: entry.parameters.split(", ") for kind, entry in KINDS.items() if entry.supplied}
    exact = [kind for kind, needed in names.items() if parameters[: len(needed)] == needed]
    longest = max((len(names[kind]) for kind in exact), default=0)
    exact = [kind for kind in exact if len(names[kind]) == longest]
    if "task" in exact:  # augmentations and analyses take the seed too
        annotated = getattr(thing, "__annotations__", {}).get("return")
        pair = not isinstance(thing, type) and (typing.get_origin(annotated) is tuple or annotated is None)
        return ["task"] if pair else ["augmentation"]
    if exact == ["function"]:
        return ["participation"]
    return ["probability"] if "probability" in exact else _narrow(exact)  # a participation model takes it too


def _only(name: str, kinds: list[str]) -> str:
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise SettingError(f"{name}: may be of the kinds {', '.join(kinds)}; say which with --kind")
    forms = "; ".join(
        f"{kind}: {entry.needs}"
        for kind, entry in KINDS.items()
        if kind in ("algorithm", "participation", "partition", "model")
    )
    raise SettingError(
        f"{name}: its kind is not clear from its base class and its parameters; say it with --kind, such as --kind "
        f"partition. For example, {forms}"
    )
