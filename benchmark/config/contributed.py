"""Choices from outside the suite: a file, an importable module, an installed package, or a Python object."""

import dataclasses
import inspect
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from benchmark.config.errors import SettingError, SourceError
from benchmark.config.fingerprint import fingerprint
from benchmark.config.kinds import GROUP, KINDS
from benchmark.config.source import (
    SUITE,
    Source,
    at_line,
    definition,
    in_words,
    load,
    of_object,
    plain,
    remember,
    told,
)


@dataclass(frozen=True)
class Outside:
    """A choice from outside the suite.

    Attributes:
        name: under which a file of settings finds it again.
        factory: the callable that was chosen.
        source: its source.
        options: of an object that holds its options itself.
        mark: digest of what the name and the source do not tell, such as the values that an object holds.
        shipped: the object, if no name leads to it; sent to other processes instead of the name.
    """

    name: str
    factory: Callable[..., Any]
    source: Source
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    mark: str = ""
    shipped: Any = None


def installed(kind: str) -> dict[str, Any]:
    """The choices of a kind that installed packages offer, by name."""
    points = _points(tuple(sys.path))
    return {name.removeprefix(f"{kind}."): point for name, point in points.items() if name.startswith(f"{kind}.")}


@cache
def _points(path: tuple[str, ...]) -> dict[str, Any]:
    """All that packages on this `sys.path` offer, by name. Reading their metadata takes 20 ms."""
    return {point.name: point for point in entry_points(group=GROUP)}


def named(kind: str, name: str) -> Outside | None:
    """What a name outside the suite stands for; None if it is not such a name.

    Raises:
        SettingError: it cannot be loaded, or is not what this kind of choice must be.
    """
    if ".py:" in name:
        path, _, attribute = name.rpartition(":")
        thing, source = load(path, attribute)
        return _checked(kind, f"{source.file}:{attribute}", thing, source)
    if name in installed(kind):
        point = installed(kind)[name]
        thing = _imported(point.value)
        return _checked(kind, name, thing, _source(thing))
    if ":" in name:
        thing = _imported(name)
        return _checked(kind, name, thing, _source(thing))
    return None


def address(kind: str, name: str) -> str:
    """The address of what an installed package offers by a name; every other name as it is."""
    known = name in KINDS[kind].known or ":" in name
    point = None if known else installed(kind).get(name)
    return name if point is None else str(point.value)


def loaded(name: str) -> Any:
    """What `FILE.py:NAME` or `package.module:NAME` leads to, of whatever kind."""
    path, _, attribute = name.rpartition(":")
    return load(path, attribute)[0] if ".py:" in name else _imported(name)


def from_object(kind: str, value: Any) -> Outside:
    """A class, a function or an instance as a choice.

    Raises:
        SettingError: it is not what this kind of choice must be.
    """
    thing, source = plain(value), _source(value)
    qualname = getattr(thing, "__qualname__", type(thing).__name__)
    reachable = qualname.isidentifier() and source.file.endswith(".py") and thing.__module__ != "__main__"
    name = f"{source.file}:{qualname}" if qualname.isidentifier() else f"python:{qualname.rpartition('.')[2]}"
    if dataclasses.is_dataclass(value) and isinstance(value, KINDS[kind].result or ()) and KINDS[kind].subclass:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        choice = _checked(kind, name, type(value), source)
        return dataclasses.replace(choice, options=fields, shipped=None if reachable else type(value))
    if _is_result(kind, value):
        remember(value, source)
        return Outside(name, Constant(value), source, mark=fingerprint(value), shipped=value)
    choice = _checked(kind, name, value, source)
    if reachable and thing is value:
        return choice
    return dataclasses.replace(choice, mark=fingerprint(value), shipped=value)


def _is_result(kind: str, value: Any) -> bool:
    """Whether an object is what a choice of this kind makes, rather than what makes it."""
    return KINDS[kind].result is not None and not isinstance(value, type) and KINDS[kind].fits(value)


@dataclass(frozen=True)
class Constant:
    """Makes the same thing whatever is supplied; a copy, since a run changes a network."""

    value: Any

    def __call__(self, *supplied: Any) -> Any:
        return deepcopy(self.value)


def _imported(address: str) -> Any:
    """What an address `package.module:Name` leads to."""
    module_name, _, attribute = address.partition(":")
    try:
        value: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise SettingError(
                f"name: {address!r} is not allowed; there is no module {error.name}. "
                "Install its package, or name a file: FILE.py:NAME"
            ) from None
        raise SourceError(f"{address}: {told(error)}") from None
    except (Exception, SystemExit) as error:
        raise SourceError(f"{address}: {_last_line(error)}{told(error)}") from None
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise SettingError(f"name: {address!r} is not allowed; {module_name} does not define {part}")
        value = getattr(value, part)
    return value


def _last_line(error: BaseException) -> str:
    trace = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    return f"{at_line(trace[-1].filename, error)}: " if trace else ""


def _source(value: Any) -> Source:
    """The source of an object; of one that is in no file (a notebook), the text of its definition."""
    source = of_object(value)
    if source is not None:
        return source
    thing = plain(value)
    try:
        text = inspect.getsource(thing)
    except (OSError, TypeError):
        text = fingerprint(thing)
    return Source(f"{getattr(thing, '__name__', 'object')}.txt", text)


def _checked(kind: str, name: str, thing: Any, source: Source) -> Outside:
    """Refuse what cannot be a choice of this kind."""
    needs, label = KINDS[kind].needs, name.rpartition("/")[2]
    if KINDS[kind].subclass:
        if not (isinstance(thing, type) and issubclass(thing, KINDS[kind].result or object)):
            raise SettingError(f"name: {label!r} is not allowed; must be {needs}; it is {in_words(thing)}")
        _check_fields(label, thing)
    elif _is_result(kind, thing):
        remember(thing, source)
        return Outside(name, Constant(thing), source, mark=fingerprint(thing))
    elif not callable(thing) or (isinstance(thing, type) and not KINDS[kind].may_make(thing)):
        raise SettingError(f"name: {label!r} is not allowed; must be {needs}; it is {in_words(thing)}")
    else:
        _check_parameters(kind, label, thing)
    remember(thing, source)
    return Outside(name, thing, source)


def _check_fields(label: str, cls: type) -> None:
    """Refuse a class whose body names options that are none, because `@dataclass` is missing."""
    fields = getattr(cls, "__dataclass_fields__", {})
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in SUITE or "__init__" in vars(base):
            return
        named = [
            name
            for name, annotation in inspect.get_annotations(base).items()
            if name not in fields and "ClassVar" not in str(annotation) and not hasattr(KINDS["algorithm"].result, name)
        ]
        if named:
            raise SourceError(
                f"{definition(base)}: {label.rpartition(':')[2]} names the options {', '.join(named)}, but it is no "
                "dataclass; must have @dataclass(frozen=True) above the class"
            )


def _check_parameters(kind: str, label: str, thing: Callable[..., Any]) -> None:
    needs, count = KINDS[kind].needs, KINDS[kind].supplied
    try:
        parameters = list(inspect.signature(thing, eval_str=True).parameters.values())
    except NameError as error:
        raise SourceError(f"{definition(thing)}: {told(error)}") from None
    first = parameters[:count]
    positional = [one for one in first if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    taken = dict(zip(KINDS[kind].parameters.split(", "), positional, strict=False))
    if (
        len(positional) < count
        or (count and any(one.kind is one.VAR_KEYWORD for one in parameters[count:]))
        or any(_is_option(thing, parameter) and parameter.name != name for name, parameter in taken.items())
    ):
        names = ", ".join(str(one).partition(":")[0] for one in parameters)
        raise SettingError(
            f"name: {label!r} is not allowed; must be {needs}; it takes ({names}), at {definition(thing)}. Parameters "
            "after the first ones are its options, each by name"
        )


def _is_option(thing: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    """Whether a parameter can be an option: it has a default, or is a field."""
    return dataclasses.is_dataclass(thing) or parameter.default is not parameter.empty
