"""The base of all settings, and reading YAML files."""

import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from rollcall.benchmark.config.errors import SettingError, from_pydantic, in_yaml, listed
from rollcall.benchmark.config.text import parsed

TABLES = tuple(
    ending + packed for ending in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".bz2", ".xz", ".zst", ".zip")
)
DATA_FILES = (".npy", ".npz", ".parquet", ".feather", ".xlsx", ".json", *TABLES)
"""The endings of data files that an experiment file may name."""


class Settings(BaseModel):
    """A validated mapping. Unknown keys are refused, and fields cannot be changed.

    A number must be written as a number, and a truth value as `true` or `false`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        for key, value in data.items() if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                raise SettingError(f"{key}: is not a setting; allowed: {listed(cls.model_fields, key)}")
            check_kind(cls, key, value)
        return data


S = TypeVar("S", bound=Settings)


def validated(kind: type[S], data: Any) -> S:
    """Validate plain data as settings of this kind.

    Raises:
        SettingError: names the field, the value and what is allowed.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise from_pydantic(error) from None


def load_yaml(path: Path, edited: Callable[[str], str] = str) -> Any:
    """The content of a YAML file, whose text is edited first. Data files that it names are relative to its folder.

    Raises:
        SettingError: the file does not exist, is not YAML, or is refused by `parsed`.
    """
    try:
        content = parsed(edited(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingError(f"{path}: cannot be read ({error.strerror})") from None
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingError(f"{path}: is not YAML ({' '.join(str(error).split())})") from None

    def beside(leaf: Any) -> Any:
        is_file = isinstance(leaf, str) and leaf.endswith(DATA_FILES) and ":" not in leaf  # else PACKAGE:PATH
        return str(path.parent / leaf) if is_file else leaf

    return mapped(content, beside)


def check_kind(model: type[BaseModel], key: str, value: Any) -> None:
    """Check the value of a field as it is written, before pydantic converts `true` or a text to a number.

    Raises:
        SettingError: names the field, the value and what is allowed.
    """
    kinds = _kinds(model)[key]
    wants_number, wants_bool = bool(kinds & {int, float}), bool in kinds
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, bool) and wants_number and not wants_bool:
            allowed = "a number"
        elif isinstance(item, str) and str not in kinds and (wants_number or wants_bool):
            allowed = "a number" if wants_number else "true or false"
        elif isinstance(item, int | float) and wants_bool and not (wants_number or isinstance(item, bool)):
            allowed = "true or false"
        else:
            continue
        raise SettingError(f"{key}: {in_yaml(item)} is not allowed; must be {allowed}")


@cache
def _kinds(model: type[BaseModel]) -> dict[str, frozenset[Any]]:
    """The types in the annotation of each field; none of a mapping."""
    return {name: frozenset(_leaves(field.annotation)) for name, field in model.model_fields.items()}


def _leaves(annotation: Any) -> set[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _leaves(arguments[0])
    if origin is Literal:
        return {type(value) for value in arguments}
    if origin in (Union, types.UnionType, tuple, list):
        return set().union(*(_leaves(argument) for argument in arguments))
    return set() if origin is not None else {annotation}


def mapped(settings: Any, leaf: Callable[[Any], Any]) -> Any:
    """Plain settings with each leaf converted."""
    if isinstance(settings, dict):
        return {key: mapped(one, leaf) for key, one in settings.items()}
    return [mapped(one, leaf) for one in settings] if isinstance(settings, list) else leaf(settings)
