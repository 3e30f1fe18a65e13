"""What docstrings and signatures say of settings and choices: for `rollcall show`, the site and the documentation.

Types and default values are in words, as a person writes them in an experiment file, with marks of Markdown.
"""

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import dedent
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rollcall.benchmark.config.choice import KINDS, Choice, options

PLAIN = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    type(None): "`null`",
    Any: "any value",
    np.ndarray: "array (in the file, or the path of a `.npy` or `.npz` file)",
}
WRITTEN = {"None": "null", "True": "true", "False": "false"}
BOUNDS = (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most"))

SECTION = re.compile(r"^([A-Z][\w ]+):\n((?: {4}.*(?:\n|$)|\n)+)", re.MULTILINE)
"""A section of a docstring: a title, and an indented text."""


class Docstring(NamedTuple):
    """A docstring in parts.

    Attributes:
        body: the text without its sections.
        meanings: the text about each parameter or attribute.
        sections: the text of all other sections by title, such as `Cost` or `Raises`.
    """

    body: str
    meanings: dict[str, str]
    sections: dict[str, str]


def parse(text: str | None) -> Docstring:
    """Split a docstring, as `inspect.getdoc` returns it."""
    sections = {title: dedent(content).strip() for title, content in SECTION.findall(text or "")}
    meanings: dict[str, str] = {}
    for title in ("Args", "Attributes"):
        for line in re.sub(r"\n +", " ", sections.pop(title, "")).splitlines():
            names, _, meaning = line.partition(": ")
            meanings |= dict.fromkeys(names.split(", "), meaning)
    return Docstring(SECTION.sub("", text or "").strip(), meanings, sections)


def text_of(factory: Callable[..., Any]) -> str:
    """The text about a choice: of a method, its file's docstring; of a data set, that of the data set."""
    if isinstance(factory, partial):  # its own parameters are described at the function
        return parse(inspect.getdoc(factory.args[0])).body
    is_method = isinstance(factory, type) and issubclass(factory, KINDS["algorithm"].results)
    return (sys.modules[factory.__module__].__doc__ if is_method else inspect.getdoc(factory)) or ""


def options_in_words(kind: str, factory: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """The options of a choice by name: the values that each takes with its default, and its meaning."""
    said = parse(inspect.getdoc(factory.func if isinstance(factory, partial) else factory))
    words = {}
    for key, parameter in options(factory, len(KINDS[kind].parameters)).items():
        required = parameter.default is parameter.empty
        default = "required" if required else f"default {value_in_words(parameter.default)}"
        words[key] = f"{type_in_words(parameter.annotation, key)}; {default}", said.meanings.get(key, "")
    return words


def type_in_words(annotation: Any, key: str = "") -> str:
    """The values that a type allows, as Markdown.

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
        *most, last = map(value_in_words, arguments)
        return f"{', '.join(most)} or {last}" if most else last
    if annotation is Choice or origin is Callable:
        return f"[{key}](#choices-{slug(key)})" if key in KINDS else "a choice"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {type_in_words(arguments[0])} to {type_in_words(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if origin is tuple and Ellipsis not in arguments:
            return f"list of {len(arguments)}: {', '.join(map(type_in_words, arguments))}"
        return f"list of {type_in_words(arguments[0])}"
    if getattr(annotation, "array_type", None) is np.ndarray:  # jaxtyping
        return PLAIN[np.ndarray]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#settings-{slug(annotation.__name__)})"
    return str(PLAIN.get(annotation) or getattr(annotation, "__name__", annotation))


def value_in_words(value: Any) -> str:
    """A value as it is written in a file; the empty text is `empty`."""
    if isinstance(value, tuple | list):
        value = f"[{', '.join(value_in_words(one).strip('`') for one in value)}]"
    elif isinstance(value, Choice):
        value = value.name
    elif callable(value):  # a default such as model=mlp
        value = value.__name__
    return "empty" if value == "" else f"`{WRITTEN.get(str(value), value)}`"


def slug(name: str) -> str:
    """A name as a part of a link's target."""
    return name.lower().replace("_", "-")


def without_marks(text: str) -> str:
    """A text in words without its marks of Markdown, for a terminal."""
    return re.sub(r"\[([^]]+)\]\(#[^)]*\)", r"\1", text).replace("`", "")


def _bounds(metadata: Any) -> str:
    limits = [f"{word} {getattr(mark, field):g}" for mark in metadata for field, word in BOUNDS if hasattr(mark, field)]
    return f" {' and '.join(limits)}" if limits else ""
