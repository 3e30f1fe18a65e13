"""Settings as people write them: strict models, and YAML files."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from benchmark.config.errors import SettingError, from_pydantic


class Settings(BaseModel):
    """Unknown keys are refused; what was validated does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        for key in given if isinstance(given, dict) else ():
            if key not in cls.model_fields:
                raise SettingError(f"{key}: is not a setting; allowed: {', '.join(cls.model_fields)}")
        return given


S = TypeVar("S", bound=Settings)


def validated(kind: type[S], given: Any) -> S:
    """Settings of a kind from plain data.

    Raises:
        SettingError: naming the field, the value and what is allowed.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise from_pydantic(error) from None


def load_yaml(path: Path) -> Any:
    """The content of a YAML file; the files of numbers it names are sought beside it.

    Raises:
        SettingError: no such file, or not YAML.
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
