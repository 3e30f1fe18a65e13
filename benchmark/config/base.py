"""The base of all settings, and reading YAML files."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from rollcall.benchmark.config.errors import SettingError, from_pydantic, listed
from rollcall.benchmark.config.text import parsed

TABLES = tuple(
    ending + packed for ending in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".bz2", ".xz", ".zst", ".zip")
)
DATA_FILES = (".npy", ".npz", ".parquet", ".feather", ".xlsx", ".json", *TABLES)
"""The endings of data files that an experiment file may name."""

PROSE = ("title", "about", "found")
"""Keys of an experiment file whose texts name no file, whatever their ending."""


class Settings(BaseModel):
    """A validated mapping. Unknown keys are refused, and fields cannot be changed.

    A number must be written as a number, and a truth value as `true` or `false`.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        return for_pydantic(data, cls, "a setting") if isinstance(data, Mapping) else data


S = TypeVar("S", bound=Settings)


def validated(kind: type[S], data: Any) -> S:
    """Validate plain data as settings of this kind.

    Raises SettingError: names the field, the value and what is allowed.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise from_pydantic(error) from None


def load_yaml(path: Path, edited: Callable[[str], str] = str) -> Any:
    """The content of a YAML file, whose text is edited first. Data files that it names are relative to its folder.

    Raises SettingError: the file does not exist, is not YAML, or is refused by `parsed`.
    """

    def beside(leaf: Any) -> Any:
        is_file = isinstance(leaf, str) and leaf.endswith(DATA_FILES) and ":" not in leaf  # else PACKAGE:PATH
        return str(path.parent / leaf) if is_file else leaf

    try:
        return mapped(parsed(edited(path.read_text(encoding="utf-8"))), beside, PROSE)
    except OSError as error:
        raise SettingError(f"{path}: cannot be read ({error.strerror})") from None
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None
    except RecursionError:
        raise SettingError(f"{path}: is nested too deeply, or an alias holds itself") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingError(f"{path}: is not YAML ({' '.join(str(error).split())})") from None


def for_pydantic(settings: Mapping[str, Any], model: type[BaseModel], what: str) -> dict[str, Any]:
    """Settings in the types that pydantic's strict mode takes: lists as tuples, and whole numbers without a point.

    Raises SettingError: the model has no such field.
    """
    for key in settings:
        if key not in model.model_fields:
            raise SettingError(f"{key}: is not {what}; allowed: {listed(model.model_fields, key)}")
    return {key: _strict(value) for key, value in settings.items()}


def _strict(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_strict, value))
    if getattr(value, "ndim", None) == 0:  # a number of NumPy or torch
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def mapped(settings: Any, leaf: Callable[[Any], Any], but: Collection[str] = ()) -> Any:
    """Mappings and lists with a function of each leaf; the values of the keys `but` stay as they are."""
    if isinstance(settings, dict):
        return {key: one if key in but else mapped(one, leaf, but) for key, one in settings.items()}
    return [mapped(one, leaf, but) for one in settings] if isinstance(settings, list) else leaf(settings)
