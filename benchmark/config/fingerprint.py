"""A digest of a Python object by its content, the same in every process."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:
    """The SHA-256 of numbers, text, arrays, tensors, containers, functions, and of objects by their attributes."""
    digest = hashlib.sha256()
    _feed(digest, value, set())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, above: set[int]) -> None:
    """Add a value to a digest. An object inside itself is added once."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif id(value) in above:
        digest.update(b"again;")
    else:
        digest.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
        for part in _parts_of(value):
            _feed(digest, part, above | {id(value)})
        digest.update(b");")


def _parts_of(value: Any) -> list[Any]:
    """What an object consists of, in an order that does not change."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), *value.shape, np.ascontiguousarray(value).tobytes()]
    if type(value).__module__.startswith("torch") and hasattr(value, "detach") and hasattr(value, "cpu"):
        return [value.detach().cpu().numpy()]
    if isinstance(value, Mapping):
        return [part for key in sorted(value, key=repr) for part in (key, value[key])]
    if isinstance(value, set | frozenset):
        return sorted(fingerprint(part) for part in value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, type):
        return [value.__module__, value.__qualname__]
    code = getattr(value, "__code__", None)
    if code is not None:
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        return [value.__qualname__, code.co_code, code.co_names, _constants(code), value.__defaults__, cells]
    return [vars(value)] if hasattr(value, "__dict__") else [type(value).__qualname__]


def _constants(code: Any) -> list[Any]:
    return [_constants(one) if hasattr(one, "co_code") else one for one in code.co_consts]
