"""Choices: a name out of one of the suite's dictionaries, with its options, such as `{name: dirichlet, alpha: 0.1}`.

What can be chosen is a callable. The suite supplies its first parameters when it is built; the others are its options.
Their annotations and defaults are the only description of the options, so that nothing has to be kept in agreement.
"""

import hashlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, create_model

from benchmark.config.errors import SettingError, from_pydantic


@dataclass(frozen=True)
class Kind:
    """A kind of choice.

    Attributes:
        address: of the dictionary that lists the choices; it is imported when a choice is read, since that takes long.
        supplied: the number of parameters that the suite supplies.
    """

    address: str
    supplied: int

    @cached_property
    def known(self) -> Mapping[str, Callable[..., Any]]:
        """The choices by name."""
        return typing.cast(Mapping[str, Callable[..., Any]], resolve_name(self.address))


KINDS = {
    "task": Kind("tasks:TASKS", supplied=1),
    "model": Kind("tasks.models:MODELS", supplied=2),
    "partition": Kind("tasks.partitions:PARTITIONS", supplied=3),
    "augmentation": Kind("tasks.augmentation:AUGMENTATIONS", supplied=1),
    "participation": Kind("participation:MODELS", supplied=1),
    "probability": Kind("participation.probabilities:PROBABILITIES", supplied=1),
    "variation": Kind("participation.variations:VARIATIONS", supplied=2),
    "function": Kind("participation.function:FUNCTIONS", supplied=2),
    "algorithm": Kind("algorithms:ALGORITHMS", supplied=0),
    "metric": Kind("tasks.metrics:METRICS", supplied=0),
    "schedule": Kind("benchmark.config.schedules:SCHEDULES", supplied=1),
    "local_optimizer": Kind("benchmark.engines.local_optimizers:OPTIMIZERS", supplied=2),
    "server_optimizer": Kind("benchmark.federation.server_optimizers:OPTIMIZERS", supplied=2),
    "analysis": Kind("benchmark.config.analyses:ANALYSES", supplied=1),
}


@dataclass(frozen=True)
class Choice:
    """A validated choice.

    Attributes:
        name: as in the experiment file.
        options: complete, defaults included; an option that is itself a choice is a `Choice`.
        factory: the callable that was chosen.
        source: the SHA-256 of the file that a user's class comes from; None for what the suite has.
    """

    name: str
    options: dict[str, Any]
    factory: Callable[..., Any]
    source: str | None = None

    def build(self, *supplied: Any) -> Any:
        """The chosen thing, made from what the suite supplies and from the options."""
        return self.bound()(*supplied)

    def bound(self) -> Callable[..., Any]:
        """The callable with its options filled in."""
        options = {key: value.bound() if isinstance(value, Choice) else value for key, value in self.options.items()}
        return partial(self.factory, **options)

    @property
    def label(self) -> str:
        """The name in tables: for a class of a user's file, the name of the class."""
        return self.name.rpartition(":")[2]


def read(kind: str, value: Any) -> Choice:
    """A choice from a name, or from a mapping with a name and options.

    Raises:
        SettingError: unknown name, unknown option, or a value that the option does not allow.
    """
    if isinstance(value, Choice):
        return value
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise SettingError(f"name: is missing in {value!r}; must be one of {_names(kind)}")
    name, source = value["name"], None
    if ".py:" in name:
        name, factory, source = _contributed(name)
    elif name in KINDS[kind].known:
        factory = KINDS[kind].known[name]
    else:
        raise SettingError(f"name: {name!r} is not allowed; must be one of {_names(kind)}")
    options = {key: option for key, option in value.items() if key != "name"}
    model = _model(factory, KINDS[kind].supplied)
    for key in options:
        if key not in model.model_fields:
            raise SettingError(f"{key}: is not an option of {name}; allowed: {', '.join(model.model_fields) or 'none'}")
    try:
        return Choice(name, dict(model.model_validate(options)), factory, source)
    except ValidationError as error:
        raise from_pydantic(error) from None


def options(factory: Callable[..., Any], supplied: int) -> dict[str, inspect.Parameter]:
    """The parameters of a callable that an experiment file sets."""
    parameters = inspect.signature(factory, eval_str=True).parameters
    return dict(list(parameters.items())[supplied:])


def _names(kind: str) -> str:
    return ", ".join(KINDS[kind].known)


@cache
def _model(factory: Callable[..., Any], supplied: int) -> type[BaseModel]:
    """A pydantic model with the options of a choice as fields."""
    settings = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    types: dict[str, Any] = {}
    for key, field in options(factory, supplied).items():
        default = ... if field.default is inspect.Parameter.empty else field.default
        if callable(default):  # a default such as model=mlp: the choice of that name, without options
            default = read(key, default.__name__)
        types[key] = (_annotation(key, field.annotation), default)
    return create_model("options", __config__=settings, **types)


def _annotation(key: str, annotation: Any) -> Any:
    """The type as which pydantic validates an option. Choices and arrays get a validator of ours."""
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    members = typing.get_args(annotation) if union else (annotation,)
    if _has_choice(members) or np.ndarray in members:
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
    if _has_choice(members) and _names_choice(key, value):
        return read(key, value)
    if value is None and NoneType in members:
        return None
    if isinstance(value, int | float) and float in members:
        return float(value)
    if isinstance(value, int) and int in members:
        return value
    if isinstance(value, str) and str in members and Path(value).is_file():
        from participation import recording

        return recording.load(value)
    if np.ndarray in members:
        return _array(value)
    raise ValueError(f"must be one of {_names(key)}")


def _names_choice(kind: str, value: Any) -> bool:
    return isinstance(value, Mapping | Choice) or (isinstance(value, str) and value in KINDS[kind].known)


def _array(value: Any) -> np.ndarray:
    """Numbers in the file itself, or the path of a .npy file."""
    if isinstance(value, str | Path):
        if not Path(value).is_file():
            raise ValueError("must be numbers, or the path of a file that exists")
        return typing.cast(np.ndarray, np.load(value, allow_pickle=False))
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise ValueError("must be numbers in rows of equal length") from None
    if numbers.dtype.kind not in "biuf":
        raise ValueError("must be numbers, or the path of a .npy file")
    return numbers


def _contributed(name: str) -> tuple[str, Callable[..., Any], str]:
    """A user's algorithm, `my_file.py:MyMethod`: its full name, its class, and the SHA-256 of its file."""
    from algorithms import Algorithm

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
    if not (isinstance(method, type) and issubclass(method, Algorithm)):
        raise SettingError(
            f"name: {name!r} is not allowed; {file.name} must define {cls}, a subclass of algorithms.Algorithm"
        )
    return f"{file}:{cls}", method, hashlib.sha256(file.read_bytes()).hexdigest()
