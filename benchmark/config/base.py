"""The base of all settings, and reading YAML files."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from benchmark.config.errors import SettingError, from_pydantic


class Settings(BaseModel):
    """A validated mapping. Unknown keys are refused, and fields cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        for key in data if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                raise SettingError(f"{key}: is not a setting; allowed: {', '.join(cls.model_fields)}")
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


def load_yaml(path: Path) -> Any:
    """The content of a YAML file. Data files that it names are relative to its folder.

    Raises:
        SettingError: the file does not exist or is not YAML.
    """
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise SettingError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise SettingError(f"{path}: is not YAML ({' '.join(str(error).split())})") from None
    return _beside(content, path.parent)


def _beside(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {key: _beside(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_beside(item, folder) for item in value]
    if isinstance(value, str) and value.endswith((".npy", ".npz", ".csv", ".parquet")):
        return str(folder / value)
    return value
