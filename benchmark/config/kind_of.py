"""The kind of a choice, seen from its name, its base class or its parameters."""

import inspect
import typing
from typing import Any

from benchmark.config import contributed
from benchmark.config.errors import SettingError
from benchmark.config.kinds import KINDS


def kind_of(name: str) -> str:
    """The kind of what a name stands for; `algorithm` if the name is not known at all.

    Raises:
        SettingError: a file that cannot be loaded, or a choice that may be of several kinds or of none.
    """
    kinds = [kind for kind in KINDS if name in contributed.installed(kind)]
    if not kinds and ":" not in name:
        kinds = [kind for kind in KINDS if name in KINDS[kind].known]
    if kinds:
        return "algorithm" if "algorithm" in kinds else _only(name, kinds)
    if ":" not in name:
        return "algorithm"
    return _only(name, kinds_of(contributed.loaded(name)))


def kinds_of(thing: Any) -> list[str]:
    """The kinds that a class or function may be of."""
    results = {kind: entry.result for kind, entry in KINDS.items() if entry.result not in (None, tuple)}
    if isinstance(thing, type):
        return [kind for kind, result in results.items() if not _protocol(result) and issubclass(thing, result)]
    if not callable(thing):
        return []
    annotated = thing.__annotations__.get("return") if hasattr(thing, "__annotations__") else None
    by_result = [
        kind
        for kind, result in results.items()
        if isinstance(annotated, type) and not _protocol(result) and issubclass(annotated, result)
    ]
    if by_result:
        return by_result
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
        return ["task"] if typing.get_origin(annotated) is tuple or annotated is None else ["augmentation"]
    return ["probability"] if "probability" in exact else exact


def _protocol(result: Any) -> bool:
    return bool(getattr(result, "_is_protocol", False))


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
