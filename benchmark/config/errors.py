"""The error of a setting that is not allowed: one line with the field, the value and what is allowed."""

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from lzma import LZMAError
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

ALLOWED = {
    "dataclass": "must be the name of a metric",
    "bool": "must be true or false",
    "dict": "must be a mapping, such as {key: value}",
    "finite": "must be a finite number",
    "float": "must be a number",
    "int": "must be a whole number",
    "model": "must be a mapping of settings to values",
    "string": "must be a text",
    "tuple": "must be a list",
}
"""What is allowed, by the first word of a type of pydantic's errors."""

MARK = re.compile(r"\[key\]|int|float|str|bool|constrained-\w+|(literal|tuple|list|dict|function-\w+)\[.*\]")
"""Where pydantic names a wrong key, or the member of a union, in the place of a field."""


UNREADABLE = (OSError, EOFError, LZMAError, zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""The errors of reading a compressed JSON file that is damaged, or does not have what it should."""


class SettingError(ValueError):
    """A setting is not allowed, or a command cannot run. One line, for the user."""


class SourceError(SettingError):
    """An error in a file of the user's own: code, whose line it begins with, or data."""


class CompleteError(ValueError):
    """An error of a value, raised while pydantic reads it, that names the value itself."""


def listed(allowed: Iterable[Any], name: Any, also: str = "") -> str:
    """What is allowed, for an error: names, what else, and the name that a misspelt one was probably meant to be."""
    names = [f"'{one}'" if "," in str(one) else str(one) for one in allowed]
    return (", ".join(names) or "none") + also + near(names, name)


def near(allowed: Iterable[str], name: Any) -> str:
    """The end of an error: the allowed name that a misspelt one was probably meant to be; empty without one."""
    found = get_close_matches(str(name), [*allowed], 1)
    return f". Did you mean {found[0]}?" if found else ""


def check_one_of(field: str, name: Any, allowed: Iterable[Any]) -> None:
    """Raise SettingError unless a name is among those allowed."""
    if name not in (names := [*allowed]):
        raise SettingError(f"{field}: {name!r} is not allowed; must be one of {listed(names, name)}")


@contextmanager
def at(field: str) -> Iterator[None]:
    """Prefix the errors of what is built from a field with the name of the field."""
    try:
        yield
    except SourceError as error:
        raise SourceError(prefixed(field, error)) from error
    except ValueError as error:
        raise SettingError(prefixed(field, error)) from error


def prefixed(field: str, error: ValueError) -> str:
    """The message of an error with the field before it: `field.setting: ...`, or `field: FILE:LINE: ...`."""
    return f"{field}: {error}" if isinstance(error, SourceError) else f"{field}.{error}"


def from_pydantic(error: ValidationError) -> SettingError:
    """The first error of a pydantic validation, as `field: value is not allowed; must be ...`."""
    first, *others = error.errors()
    field = _field(first)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SettingError):
        return type(cause)(prefixed(field, cause) if field else str(cause))
    if isinstance(cause, CompleteError):
        return SettingError(f"{field}: {cause}")
    if first["type"] == "missing":
        return SettingError(f"{field}: is missing; it must be given")
    also = [allowed(one).removeprefix("must be ") for one in others if _field(one) == field]  # of a union
    must = " or ".join([str(cause or allowed(first)), *also])
    return SettingError(f"{field}: {in_yaml(first['input'])} is not allowed; {must}")


def _field(error: ErrorDetails) -> str:
    return ".".join(str(part) for part in error["loc"] if not MARK.fullmatch(str(part)))


def allowed(error: ErrorDetails) -> str:
    """What pydantic would allow, in our words."""
    if error["type"] == "too_short":
        return f"must have {error['ctx']['min_length']} or more values"
    if error["type"] == "too_long":
        return f"must have {error['ctx']['max_length']} or fewer values"
    kind = error["type"].partition("_")[0]
    return ALLOWED.get(kind, error["msg"].replace("Input should be", "must be"))


def in_yaml(value: Any) -> str:
    """A value in an error, as an experiment file has it: `null`, `true` and `false`, and a list in brackets."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(list(value) if isinstance(value, tuple) else value)
