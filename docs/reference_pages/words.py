"""Types and default values in words, as a person writes them in an experiment file."""

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal

import annotated_types
import numpy as np
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from benchmark.config.choice import KINDS, Choice

PLAIN = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    type(None): "`null`",
    Any: "any value",
    np.ndarray: "array (in the file, or the path of a `.npy` file)",
}
BOUNDS = {
    annotated_types.Gt: ("gt", "above"),
    annotated_types.Ge: ("ge", "at least"),
    annotated_types.Lt: ("lt", "below"),
    annotated_types.Le: ("le", "at most"),
}


def type_in_words(annotation: Any, key: str = "") -> str:
    """What may be written for a type, as Markdown.

    Args:
        annotation: the type.
        key: the setting's name, which is the kind where the type is a choice.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, FieldInfo):
        return (type_in_words(annotation.annotation, key) + _bounds(annotation.metadata)).strip()
    if origin is Annotated:
        return type_in_words(arguments[0], key) + _bounds(arguments[1:])
    if origin in (typing.Union, types.UnionType):
        members = sorted(arguments, key=lambda member: member is type(None))
        return " or ".join(dict.fromkeys(type_in_words(member, key) for member in members))
    if origin is Literal:
        return _listed([shown(value) for value in arguments])
    if annotation is Choice or origin is Callable:
        return f"[{key}](#choices-{slug(key)})" if key in KINDS else "a choice"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {type_in_words(arguments[0])} to {type_in_words(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if origin is tuple and Ellipsis not in arguments:
            return f"list of {len(arguments)}: {', '.join(type_in_words(one) for one in arguments)}"
        return f"list of {type_in_words(arguments[0])}"
    return _of_class(annotation)


def shown(value: Any) -> str:
    """A value as it is written in a file."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, Choice):
        return f"`{value.name}`"
    if value == "":
        return "empty"
    if callable(value):  # a default such as model=mlp
        return f"`{value.__name__}`"
    written = {None: "null", True: "true", False: "false"} if value is None or isinstance(value, bool) else {}
    if isinstance(value, tuple | list):
        return f"`[{', '.join(shown(one).strip('`') for one in value)}]`"
    return f"`{written.get(value, value) if written else value}`"


def slug(name: str) -> str:
    """A name as a part of a link's target."""
    return name.lower().replace("_", "-")


def _of_class(annotation: Any) -> str:
    if annotation in PLAIN:
        return PLAIN[annotation]
    if getattr(annotation, "array_type", None) is np.ndarray:  # jaxtyping
        return PLAIN[np.ndarray]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#settings-{slug(annotation.__name__)})"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _listed([shown(one) for one in annotation])
    return getattr(annotation, "__name__", str(annotation))


def _bounds(metadata: Any) -> str:
    limits = [
        f"{word} {getattr(mark, field):g}"
        for mark in metadata
        for kind, (field, word) in BOUNDS.items()
        if isinstance(mark, kind)
    ]
    return f" {' and '.join(limits)}" if limits else ""


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
