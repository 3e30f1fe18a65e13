"""Choices: a name out of one of the suite's dictionaries, with its options, such as `{name: dirichlet, alpha: 0.1}`.

What can be chosen is a callable. The suite supplies its first parameters when it is built; the others are its options.
Their annotations and defaults are the only description of the options, so that nothing has to be kept in agreement.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, create_model

from benchmark.config import contributed, guarded
from benchmark.config.base import DATA_FILES, check_kind
from benchmark.config.contributed import Outside
from benchmark.config.errors import CompleteError, SettingError, from_pydantic, in_yaml
from benchmark.config.forms import FORMS
from benchmark.config.kinds import KINDS, Kind
from benchmark.config.source import Source

__all__ = ["KINDS", "Choice", "Kind", "options", "read"]


@dataclass(frozen=True)
class Choice:
    """A validated choice.

    Attributes:
        name: as in the experiment file.
        options: complete, defaults included; an option that is itself a choice is a `Choice`.
        factory: the callable that was chosen.
        kind: of the choice.
        outside: where a choice comes from that is not the suite's; None for what the suite has.
    """

    name: str
    options: dict[str, Any]
    factory: Callable[..., Any]
    kind: str = ""
    outside: Outside | None = field(default=None, compare=False)

    def build(self, *supplied: Any) -> Any:
        """The chosen thing, made from what the suite supplies and from the options."""
        return self.bound()(*supplied)

    def bound(self) -> Callable[..., Any]:
        """The callable with its options filled in."""
        options = {key: value.bound() if isinstance(value, Choice) else value for key, value in self.options.items()}
        if self.outside is not None:
            return guarded.bound(self.kind, self.factory, options)
        return partial(self.factory, **options)

    @property
    def label(self) -> str:
        """The name in tables: for a class of a user's file, the name of the class."""
        return self.name.rpartition(":")[2]

    @property
    def source(self) -> Source | None:
        """The file that a user's choice comes from; None for what the suite has."""
        return None if self.outside is None else self.outside.source

    @property
    def identity(self) -> str:
        """What the digest of a run names the choice by: its name; for a user's choice, its code instead of its path."""
        if self.outside is None:
            return self.name
        return ":".join(filter(None, [self.outside.source.digest, self.label, self.outside.mark]))

    @property
    def portable(self) -> Any:
        """What another process can read the choice from: its name, or the object if no name leads to it."""
        return self.name if self.outside is None or self.outside.shipped is None else self.outside.shipped


def read(kind: str, value: Any) -> Choice:
    """A choice from a name, from a mapping with a name and options, or from a Python object.

    A name is one of the suite's, one of an installed package, `FILE.py:NAME` or `package.module:NAME`. The object is a
    class, a function or an instance; it may be the `name` of a mapping.

    Raises:
        SettingError: unknown name, something that is not of this kind, unknown option, or a value that the option does
            not allow.
    """
    if isinstance(value, Choice):
        return value
    value = FORMS[kind](value) if kind in FORMS else value
    written, value = value, value if isinstance(value, Mapping) else {"name": value}
    name = value.get("name")
    if name is None or isinstance(name, bool | int | float | list | Mapping):
        raise SettingError(f"name: is missing in {in_yaml(written)}; must be {_names(kind)}")
    name, factory, outside, held = _chosen(kind, name)
    options = held | {key: option for key, option in value.items() if key != "name"}
    model = _model(factory, 1 if isinstance(factory, contributed.Constant) else KINDS[kind].supplied)
    for key, option in options.items():
        if key not in model.model_fields:
            raise SettingError(f"{key}: is not an option of {name}; allowed: {', '.join(model.model_fields) or 'none'}")
        check_kind(model, key, option)
    try:
        return Choice(name, dict(model.model_validate(options)), factory, kind, outside)
    except ValidationError as error:
        raise from_pydantic(error) from None


def _chosen(kind: str, name: Any) -> tuple[str, Callable[..., Any], Outside | None, dict[str, Any]]:
    """The name of a choice, its callable, where it comes from if it is not the suite's, and options that it holds."""
    known = KINDS[kind].known
    if isinstance(name, str):
        if name in known:
            return name, known[name], None, {}
        outside = contributed.named(kind, name)
        if outside is None:
            raise SettingError(f"name: {name!r} is not allowed; must be {_names(kind)}")
    else:
        outside = None if _suites(kind, name) else contributed.from_object(kind, name)
    factory = name if outside is None else outside.factory
    suites = _suites(kind, factory)
    held = {} if outside is None else outside.options
    if suites:  # written as package.module:NAME, or given as an object
        return suites, known[suites], None, held
    assert outside is not None
    return outside.name, factory, outside, held


def _suites(kind: str, factory: Any) -> str:
    """The name of a callable that is one of the suite's; empty if it is not."""
    return next((name for name, value in KINDS[kind].known.items() if value is factory), "")


def options(factory: Callable[..., Any], supplied: int) -> dict[str, inspect.Parameter]:
    """The parameters of a callable that an experiment file sets."""
    parameters = inspect.signature(factory, eval_str=True).parameters
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # as torchmetrics' classes have
    return {key: one for key, one in list(parameters.items())[supplied:] if one.kind not in several}


def _names(kind: str) -> str:
    names = ", ".join([*KINDS[kind].known, *contributed.installed(kind)])
    own = "your own as FILE.py:NAME or package.module:NAME"
    return f"one of {names}; or {own}" if names else own


@cache
def _model(factory: Callable[..., Any], supplied: int) -> type[BaseModel]:
    """A pydantic model with the options of a choice as fields."""
    settings = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    types: dict[str, Any] = {}
    for key, parameter in options(factory, supplied).items():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        if callable(default) and key in KINDS:  # a default such as model=mlp: that choice, without options
            default = read(key, default)
        annotation = Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation
        types[key] = (_annotation(key, annotation), default)
    return create_model("options", __config__=settings, **types)


def _annotation(key: str, annotation: Any) -> Any:
    """The type as which pydantic validates an option. Choices and arrays get a validator of ours."""
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    members = typing.get_args(annotation) if union else (annotation,)
    if (_has_choice(members) and key in KINDS) or np.ndarray in members:
        return Annotated[Any, PlainValidator(partial(_read_option, key, members))]
    return annotation


def _has_choice(members: tuple[Any, ...]) -> bool:
    """Whether an option may be a choice: its annotation is a callable such as `Partition`."""
    return any(typing.get_origin(member) is Callable for member in members)


def _read_option(key: str, members: tuple[Any, ...], value: Any) -> Any:
    """The value of an option that may be a choice or an array.

    Args:
        key: the option, which is also the kind of its choices.
        members: the types that its annotation allows.
        value: from the experiment file.

    Raises:
        ValueError: none of the types fits.
    """
    if _has_choice(members) and key in KINDS and _names_choice(key, value):
        return read(key, value)
    if value is None and NoneType in members:
        return None
    if isinstance(value, bool) and bool not in members:
        raise ValueError("must be a number, an array or a choice")
    if isinstance(value, int | float) and float in members:
        return float(value)
    if isinstance(value, int) and int in members:
        return value
    if isinstance(value, str) and str in members and Path(value).is_file():
        from participation import recording

        try:
            return recording.load(value)
        except ValueError as error:
            raise CompleteError(str(error)) from None
    if np.ndarray in members:
        return _array(value)
    raise ValueError(f"must be {_names(key)}")


def _names_choice(kind: str, value: Any) -> bool:
    if isinstance(value, str):
        return value in KINDS[kind].known or ":" in value or value in contributed.installed(kind)
    return isinstance(value, Mapping | Choice) or callable(value)


def _array(value: Any) -> np.ndarray:
    """Numbers in the file itself, or the path of a .npy file."""
    if isinstance(value, str | Path):
        if Path(value).suffix not in DATA_FILES:
            raise ValueError("must be numbers, or the path of a .npy file")
        if not Path(value).is_file():
            raise CompleteError(f"{str(value)!r} is not allowed; there is no file {Path(value).resolve()}")
        try:
            return typing.cast(np.ndarray, np.load(value, allow_pickle=False))
        except (ValueError, OSError, EOFError):
            raise CompleteError(f"{str(value)!r} is not allowed; must be a .npy file of numbers") from None
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise ValueError("must be numbers in rows of equal length") from None
    if numbers.dtype.kind not in "biuf":
        raise ValueError("must be numbers, or the path of a .npy file")
    return numbers
