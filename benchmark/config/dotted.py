"""Settings as nested mappings: laid over others, or replaced by dotted name."""

from collections.abc import Mapping
from typing import Any

from rollcall.benchmark.config.errors import SettingError, at


def in_long_form(choice: Any) -> Any:
    """A choice as a mapping; a bare name, a class or a function is its `name`. Anything else as it is."""
    return {"name": choice} if isinstance(choice, str) or callable(choice) else choice


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Settings laid over others. A choice of another name replaces the whole choice, options included."""
    result = dict(base)
    for key, value in over.items():
        below = in_long_form(result.get(key))
        if (
            isinstance(below, Mapping)
            and isinstance(value, Mapping)
            and value.get("name", below.get("name")) == below.get("name")
        ):
            value = merged(below, value)
        result[key] = value
    return result


def put(spec: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of nested settings in which the setting with this dotted name is replaced.

    Raises SettingError: the path leads through a value that holds no settings.
    """
    first, dot, rest = path.partition(".")
    if not dot:
        return {**spec, first: value}
    inner = in_long_form(spec.get(first, {}))
    if not isinstance(inner, Mapping):
        raise SettingError(f"{path}: cannot be set; {first} is {inner!r}")
    with at(first):
        return {**spec, first: put(inner, rest, value)}


def put_all(spec: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested settings with these values by dotted setting."""
    for path, value in values.items():
        spec = put(spec, path, value)
    return dict(spec)
