"""The error of a setting that is not allowed: one line with the field, the value and what is allowed."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError


class SettingError(ValueError):
    """A setting is not allowed, or a command cannot run. One line, for the user."""


class SourceError(SettingError):
    """An error in a file of the user's own. It begins with the file and the line."""


class CompleteError(ValueError):
    """An error of a value, raised while pydantic reads it, that names the value itself."""


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
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SettingError):
        return type(cause)(prefixed(field, cause) if field else str(cause))
    if isinstance(cause, CompleteError):
        return SettingError(f"{field}: {cause}")
    if first["type"] == "missing":
        return SettingError(f"{field}: is missing; it must be given")
    allowed = str(cause) if cause else first["msg"].replace("Input should be", "must be")
    return SettingError(f"{field}: {first['input']!r} is not allowed; {allowed[0].lower()}{allowed[1:]}")
