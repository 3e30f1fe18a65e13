"""Nested settings: lay one set over another, set one by its dotted name, read `local.lr=0.1` of a command line."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from benchmark.config.errors import SettingError
from benchmark.config.yaml_text import parsed


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Settings laid over others. A choice of another name replaces the whole choice, options included."""
    result = dict(base)
    for key, value in over.items():
        below = {"name": result[key]} if isinstance(result.get(key), str) else result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and _same_choice(below, value):
            value = merged(below, value)
        result[key] = value
    return result


def put(spec: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of nested settings in which the setting with this dotted name is replaced.

    Raises:
        SettingError: the path leads through a value that holds no settings.
    """
    first, dot, rest = path.partition(".")
    if not dot:
        return {**spec, first: value}
    inner = spec.get(first, {})
    if isinstance(inner, str):  # a choice that is written as its name alone
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        raise SettingError(f"{path}: cannot be set; {first} is {inner!r}")
    return {**spec, first: put(inner, rest, value)}


def parse_part(field: str, text: str) -> Any:
    """A part on a command line, as its name or as a mapping: `{name: mifa, memory: updates}`.

    Args:
        field: the option, for the error.
        text: YAML.

    Raises:
        SettingError: it is not YAML.
    """
    try:
        return parsed(text)
    except yaml.YAMLError:
        raise SettingError(
            f"{field}: {text!r} is not allowed; must be NAME or '{{name: NAME, OPTION: VALUE}}'"
        ) from None


def parse_values(field: str, text: str) -> list[Any]:
    """`0.1,0.05` as [0.1, 0.05]; the values are YAML.

    Args:
        field: the option, for the error.
        text: the values.

    Raises:
        SettingError: it is empty, or not YAML.
    """
    try:
        content: list[Any] = parsed(f"[{text}]")
    except yaml.YAMLError:
        content = []
    if not content:
        raise SettingError(f"{field}: {text!r} is not allowed; must be VALUE or VALUE,VALUE")
    return content


def parse(field: str, assignment: str) -> tuple[str, list[Any]]:
    """`local.lr=0.1,0.05` as ("local.lr", [0.1, 0.05]).

    Args:
        field: the option, for the error.
        assignment: the text.

    Raises:
        SettingError: the text does not have this form.
    """
    path, equals, values = assignment.partition("=")
    if not (path and equals):
        raise SettingError(f"{field}: {assignment!r} is not allowed; must be SETTING=VALUE or SETTING=VALUE,VALUE")
    return path, parse_values(f"{field} {path}", values)


def parse_all(field: str, assignments: Iterable[str]) -> dict[str, list[Any]]:
    """Assignments by their path. `panel=cifar10,local.lr=0.1,0.05` holds two; values of a repeated path are joined.

    Args:
        field: the option, for the error.
        assignments: the texts.

    Raises:
        SettingError: a text does not have this form.
    """
    values: dict[str, list[Any]] = {}
    for text in assignments:
        for assignment in re.split(r",(?=\s*[A-Za-z_][\w.]*=)", text):
            path, more = parse(field, assignment.strip())
            values[path] = values.get(path, []) + more
    return values


def _same_choice(below: Mapping[str, Any], over: Mapping[str, Any]) -> bool:
    return bool(over.get("name", below.get("name")) == below.get("name"))
