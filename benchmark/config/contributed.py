"""Choices from outside the suite: a file, an importable module, an installed package, or a Python object."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from benchmark.config.errors import SettingError, SourceError
from benchmark.config.fingerprint import fingerprint
from benchmark.config.kinds import KINDS
from benchmark.config.source import (
    Source,
    at_line,
    contributed_line,
    definition,
    load,
    of_object,
    plain,
    remember,
    told,
)

GROUP = "rollcall"
"""The group of entry points of installed packages; an entry point is named `KIND.NAME`."""

REFUSAL = re.compile(r"[\w.]+: .*(is|are) not allowed")
"""How a `ValueError` begins that names the setting itself."""


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


def installed(kind: str) -> dict[str, EntryPoint]:
    """The choices of a kind that installed packages offer, by name."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    return {name.removeprefix(f"{kind}."): point for name, point in points.items() if name.startswith(f"{kind}.")}


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
    result = KINDS[kind].result
    if kind in ("probability", "schedule", "variation") or result is None or isinstance(value, type):
        return False
    return isinstance(value, result)


@dataclass(frozen=True)
class Constant:
    """Makes the same thing whatever is supplied; a copy, since a run changes a network."""

    value: Any

    def __call__(self, *supplied: Any) -> Any:
        return deepcopy(self.value)


@dataclass(frozen=True)
class Guarded:
    """A contributed callable whose errors name the file and the line, and whose results are checked.

    Attributes:
        kind: of the choice.
        factory: the callable.
    """

    kind: str
    factory: Callable[..., Any]

    def __call__(self, *supplied: Any, **options: Any) -> Any:
        try:
            result = self.factory(*supplied, **options)
        except Exception as error:
            if isinstance(error, SourceError) or (isinstance(error, ValueError) and REFUSAL.match(str(error))):
                raise
            raise SourceError(f"{contributed_line(error) or self._place}{told(error)}") from error
        return self._checked(result, supplied)

    @property
    def _place(self) -> str:
        place = definition(self.factory)
        return f"{place}: " if place else ""

    def _checked(self, result: Any, supplied: tuple[Any, ...]) -> Any:
        kind = KINDS[self.kind]
        if self.kind == "partition" and isinstance(result, list | tuple):
            result = _parts(result, supplied[0])
        if self.kind == "partition" and kind.result and isinstance(result, kind.result):
            wrong = _wrong_rows(result.rows, len(supplied[0]), supplied[1])
            if wrong:
                raise SourceError(f"{self._place}{wrong}")
        if kind.result is not None and not isinstance(result, kind.result):
            raise SourceError(f"{self._place}must return {kind.returned or kind.returns}; returned {_article(result)}")
        clients = getattr(result, "clients", None)
        if self.kind == "participation" and clients != supplied[0].clients:
            raise SourceError(
                f"{self._place}its attribute `clients` is {clients}; must be {supplied[0].clients}, as in the task"
            )
        return result


def _parts(rows: Any, labels: np.ndarray) -> Any:
    """Parts from a list of the samples of each client."""
    from tasks.partitions import Parts
    from tasks.partitions.base import realised

    arrays = [np.asarray(mine) for mine in rows]
    if labels.dtype.kind not in "iu" or any(len(mine) == 0 or mine.dtype.kind not in "iu" for mine in arrays):
        return Parts(arrays, np.ones((len(arrays), 1)))
    if any(mine.max() >= len(labels) or mine.min() < 0 for mine in arrays):
        return Parts(arrays, np.ones((len(arrays), 1)))  # refused next
    return Parts(arrays, realised(labels, arrays))


def _wrong_rows(rows: list[np.ndarray], samples: int, clients: int) -> str:
    """What is wrong with the samples of the clients; empty if nothing is."""
    if len(rows) != clients:
        return f"the partition has {len(rows)} parts; must have {clients}, one for each client"
    taken = np.zeros(samples, dtype=np.int64)
    for client, mine in enumerate(rows):
        if len(mine) == 0:
            return f"client {client} has no samples; every client must have one"
        if mine.dtype.kind not in "iu":
            return f"the samples of client {client} are {mine.dtype}; must be whole numbers (positions of samples)"
        if mine.min() < 0 or mine.max() >= samples:
            outside = mine.max() if mine.max() >= samples else mine.min()
            return f"client {client} has sample {outside}; must be in 0 to {samples - 1}"
        taken += np.bincount(mine, minlength=samples)
    if taken.max() > 1:
        return f"sample {int(taken.argmax())} belongs to clients {taken.max()} times; must belong to one client at most"
    return ""


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
            raise SettingError(f"name: {label!r} is not allowed; must be {needs}; it is {_article(thing)}")
    elif _is_result(kind, thing):
        remember(thing, source)
        return Outside(name, Constant(thing), source, mark=fingerprint(thing))
    elif not callable(thing) or (isinstance(thing, type) and KINDS[kind].result and not _may_make(kind, thing)):
        raise SettingError(f"name: {label!r} is not allowed; must be {needs}; it is {_article(thing)}")
    else:
        _check_parameters(kind, label, thing)
    remember(thing, source)
    return Outside(name, thing, source)


def _may_make(kind: str, cls: type) -> bool:
    """Whether an instance of a class is what the kind makes."""
    result = KINDS[kind].result
    return result is None or getattr(result, "_is_protocol", False) or issubclass(cls, result)


def _check_parameters(kind: str, label: str, thing: Callable[..., Any]) -> None:
    needs, count = KINDS[kind].needs, KINDS[kind].supplied
    try:
        parameters = list(inspect.signature(thing, eval_str=True).parameters.values())
    except NameError as error:
        raise SourceError(f"{definition(thing)}: {told(error)}") from None
    first = parameters[:count]
    positional = [one for one in first if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(positional) < count or any(one.kind is one.VAR_KEYWORD for one in parameters[count:]):
        names = ", ".join(str(one).partition(":")[0] for one in parameters)
        raise SettingError(
            f"name: {label!r} is not allowed; must be {needs}; it takes ({names}), at {definition(thing)}. Parameters "
            "after the first ones are its options, each by name"
        )


def _article(value: Any) -> str:
    """A value in words, with the place of its definition."""
    if isinstance(value, type):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        place = definition(value)
        return f"a class{f' of {bases}' if bases else ''}{f', at {place}' if place else ''}"
    if inspect.isroutine(value):
        place = definition(value)
        return f"a function{f', at {place}' if place else ''}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def bound(kind: str, factory: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """A contributed callable with its options filled in, guarded."""
    return Guarded(kind, partial(factory, **options))
