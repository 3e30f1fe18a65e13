"""A choice is a name out of one of the houses' dictionaries, with its options: `{name: dirichlet, alpha: 0.1}`.

What can be chosen is a callable. Its first parameters are supplied by the suite when it is built; the others are its
options, and their annotations and defaults are all that is said about them anywhere.
"""

import hashlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, create_model

import algorithms
import participation
import tasks
from benchmark.config.analyses import ANALYSES
from benchmark.config.errors import SettingError, from_pydantic
from benchmark.config.schedules import SCHEDULES
from participation import recording


@dataclass(frozen=True)
class Kind:
    """Where choices of a kind are listed, and how many parameters the suite supplies to them."""

    known: Mapping[str, Callable[..., Any]]
    supplied: int


KINDS = {
    "task": Kind(tasks.TASKS, supplied=1),
    "model": Kind(tasks.MODELS, supplied=2),
    "partition": Kind(tasks.PARTITIONS, supplied=3),
    "augmentation": Kind(tasks.AUGMENTATIONS, supplied=1),
    "participation": Kind(participation.MODELS, supplied=1),
    "probability": Kind(participation.PROBABILITIES, supplied=1),
    "variation": Kind(participation.VARIATIONS, supplied=2),
    "algorithm": Kind(algorithms.ALGORITHMS, supplied=0),
    "schedule": Kind(SCHEDULES, supplied=1),
    "analysis": Kind(ANALYSES, supplied=1),
}


@dataclass(frozen=True)
class Choice:
    """A validated choice: options are complete, defaults included, and one that is itself a choice is a `Choice`."""

    name: str
    options: dict[str, Any]
    factory: Callable[..., Any]
    source: str | None = None
    """A digest of the file that a contributed class comes from; None for what the suite has."""

    def build(self, *supplied: Any) -> Any:
        """What was chosen, made from what the suite supplies and the options."""
        return self.bound()(*supplied)

    def bound(self) -> Callable[..., Any]:
        """The callable with its options filled in."""
        options = {key: value.bound() if isinstance(value, Choice) else value for key, value in self.options.items()}
        return partial(self.factory, **options)

    @property
    def label(self) -> str:
        """The name people read: that of the class where the name is a file's."""
        return self.name.rpartition(":")[2]


def read(kind: str, value: Any) -> Choice:
    """A choice from a name, or from a mapping of a name and options.

    Raises:
        SettingError: unknown name, unknown option, or an option's value that is not allowed.
    """
    if isinstance(value, Choice):
        return value
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise SettingError(f"name: is missing in {value!r}; must be one of {', '.join(KINDS[kind].known)}")
    name, source = value["name"], None
    if ".py:" in name:
        name, factory, source = _contributed(name)
    elif name in KINDS[kind].known:
        factory = KINDS[kind].known[name]
    else:
        raise SettingError(f"name: {name!r} is not allowed; must be one of {', '.join(KINDS[kind].known)}")
    given = {key: option for key, option in value.items() if key != "name"}
    model = _model(factory, KINDS[kind].supplied)
    for key in given:
        if key not in model.model_fields:
            raise SettingError(f"{key}: is not an option of {name}; allowed: {', '.join(model.model_fields) or 'none'}")
    try:
        return Choice(name, dict(model.model_validate(given)), factory, source)
    except ValidationError as error:
        raise from_pydantic(error) from None


def options(factory: Callable[..., Any], supplied: int) -> dict[str, inspect.Parameter]:
    """The parameters of a callable that an experiment file sets."""
    parameters = inspect.signature(factory, eval_str=True).parameters
    return dict(list(parameters.items())[supplied:])


@cache
def _model(factory: Callable[..., Any], supplied: int) -> type[BaseModel]:
    """A pydantic model with the options of a choice for fields."""
    settings = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    types: dict[str, Any] = {}
    for key, field in options(factory, supplied).items():
        default = ... if field.default is inspect.Parameter.empty else field.default
        if callable(default):  # a default such as model=mlp: the choice of that name, without options
            default = read(key, default.__name__)
        types[key] = (_annotation(key, field.annotation), default)
    return create_model("options", __config__=settings, **types)


def _annotation(key: str, annotation: Any) -> Any:
    """The type an option is validated as: choices and arrays are read here, all else is pydantic's."""
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    members = typing.get_args(annotation) if union else (annotation,)
    choice = any(typing.get_origin(member) is Callable for member in members)
    array = np.ndarray in members
    if not choice and not array:
        return annotation

    def validate(value: Any) -> Any:
        if choice and (isinstance(value, Mapping | Choice) or (isinstance(value, str) and value in KINDS[key].known)):
            return read(key, value)
        if value is None and type(None) in members:
            return None
        if float in members and isinstance(value, int | float):
            return float(value)
        if int in members and isinstance(value, int):
            return value
        if str in members and isinstance(value, str) and Path(value).is_file():
            return recording.load(value)
        if array:
            return _array(value)
        raise ValueError(f"must be one of {', '.join(KINDS[key].known)}")

    return Annotated[Any, PlainValidator(validate)]


def _array(value: Any) -> np.ndarray:
    """Numbers given in line or as the path of a .npy file."""
    if isinstance(value, str | Path):
        if not Path(value).is_file():
            raise ValueError("must be numbers, or the path of a file that exists")
        return np.load(value, allow_pickle=False)
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise ValueError("must be numbers in rows of equal length") from None
    if numbers.dtype.kind not in "biuf":
        raise ValueError("must be numbers, or the path of a .npy file")
    return numbers


def _contributed(name: str) -> tuple[str, Callable[..., Any], str]:
    """An algorithm's class out of a file of the user's, `my_file.py:MyMethod`: full name, class, digest of the file."""
    path, _, cls = name.rpartition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise SettingError(f"name: {name!r} is not allowed; there is no file {file}")
    module_name = f"rollcall_contributed_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    method = getattr(module, cls, None)
    if not (isinstance(method, type) and issubclass(method, algorithms.Algorithm)):
        raise SettingError(
            f"name: {name!r} is not allowed; {file.name} must define {cls}, a subclass of algorithms.Algorithm"
        )
    return f"{file}:{cls}", method, hashlib.sha256(file.read_bytes()).hexdigest()
