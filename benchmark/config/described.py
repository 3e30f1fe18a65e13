"""What docstrings and signatures say of settings and choices: for `rollcall show`, the site and the documentation."""

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable
from functools import partial
from textwrap import dedent
from typing import Annotated, Any, NamedTuple

from pydantic.fields import FieldInfo

from rollcall.benchmark.config.choice import KINDS, Choice, options

BOUNDS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}

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
    """The text about a choice: of a method, the docstring of its file, or else of its class; of a data set, its own."""
    if isinstance(factory, partial):  # its own parameters are described at the function
        own = getattr(factory.args[0], "about", "") if factory.args else ""
        return own or parse(inspect.getdoc(factory.func)).body
    is_method = isinstance(factory, type) and issubclass(factory, KINDS["algorithm"].results)
    return (is_method and sys.modules[factory.__module__].__doc__) or inspect.getdoc(factory) or ""


def options_in_words(kind: str, factory: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """The options of a choice by name: the type of each with its default, and its meaning."""
    said = parse(inspect.getdoc(factory.func if isinstance(factory, partial) else factory))
    words = {}
    for key, parameter in options(factory, len(KINDS[kind].parameters)).items():
        required = parameter.default is parameter.empty
        default = "required" if required else f"default {value_in_words(parameter.default)}"
        words[key] = f"{type_in_words(parameter.annotation, key)}; {default}", said.meanings.get(key, "")
    return words


def type_in_words(annotation: Any, key: str = "") -> str:
    """A type as in a signature, such as `float > 0 | None`; a choice is the key of its setting, which is its kind."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, FieldInfo):
        origin, inside = Annotated, (annotation.annotation, *annotation.metadata)
    if origin is Annotated:
        bounds = [(sign, getattr(mark, name, None)) for mark in inside[1:] for name, sign in BOUNDS.items()]
        signs = " and".join(f" {sign} {bound}" for sign, bound in bounds if bound is not None)
        return type_in_words(inside[0], key) + signs
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_in_words(one, key) for one in inside)
    if annotation is Choice or origin is Callable:
        return key or "choice"
    if origin is typing.Literal:
        return " | ".join(map(repr, inside))
    if origin is None:
        return {type(None): "None", Ellipsis: "..."}.get(annotation) or annotation.__name__.rpartition(".")[2]
    return f"{origin.__name__}[{', '.join(map(type_in_words, inside))}]"


def value_in_words(value: Any) -> str:
    if isinstance(value, Choice):
        return value.name
    return str(value.__name__) if callable(value) else repr(value)


def slug(name: str) -> str:
    """A name as a part of a link's target."""
    return name.lower().replace("_", "-")
