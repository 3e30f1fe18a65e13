"""Former names of keys. Files and results that use them are still read."""

import re
from collections.abc import Mapping
from typing import Any

KEYS = {"each": "overrides", "keep": "subset"}
"""Keys of an experiment and of its variants: former name to current name."""

SETTINGS = {"study": "analysis"}
"""The first part of a dotted setting: former name to current name."""

FORMER = {new: old for old, new in SETTINGS.items()}
"""Digests use the former names, so that finished runs keep their names."""


def current(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted settings with the current names."""
    return {_setting(path): value for path, value in settings.items()}


def current_experiment(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an experiment file, its variants and its panels with the current names."""
    renamed: dict[str, Any] = _dotted({KEYS.get(key, key): value for key, value in content.items()})
    for section, names in (("variants", KEYS), ("panels", SETTINGS)):
        if isinstance(renamed.get(section), Mapping):
            renamed[section] = {
                name: {names.get(key, key): value for key, value in part.items()} if isinstance(part, Mapping) else part
                for name, part in renamed[section].items()
            }
    return renamed


def _dotted(value: Any) -> Any:
    """Rename dotted settings such as `study.bins`, both in keys and in values (`along: study.bins`)."""
    if isinstance(value, Mapping):
        return {
            _setting(key) if isinstance(key, str) and "." in key else key: _dotted(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_dotted(item) for item in value]
    return _setting(value) if isinstance(value, str) and re.fullmatch(r"\w+(\.\w+)+", value) else value


def _setting(path: str) -> str:
    first, dot, rest = path.partition(".")
    return SETTINGS.get(first, first) + dot + rest
