"""Checks the shapes and types of arrays while tests run, in every function that annotates one.

mypy checks all other annotations; checking these too, at every call, would make the tests twice as slow. Of a function
the first calls in each test are checked: long runs would take two to three times as long.
"""

import dataclasses
import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping._import_hook import _JaxtypingLoader, _optimized_cache_from_source

typechecked = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""Passes an int for a float, as static checkers do."""

CHECKED = 100
"""How many calls of a function are checked in a test."""

calls: Counter[FunctionType] = Counter()
"""The calls in this test so far, up to CHECKED."""

check = jaxtyping.jaxtyped


def where_arrays_are(*, typechecker: Any) -> Callable[[Any], Any]:
    """`jaxtyping.jaxtyped`, but for functions and dataclasses without an array it does nothing."""
    decorate = check(typechecker=typechecker)

    def decorated(item: Any) -> Any:
        if not _annotates_an_array(item):
            return item
        return _first_calls(item, decorate(item)) if isinstance(item, FunctionType) else decorate(item)

    return decorated


def _first_calls(plain: FunctionType, checked: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def call(*arguments: Any, **options: Any) -> Any:
        if calls[plain] == CHECKED:
            return plain(*arguments, **options)
        calls[plain] += 1
        return checked(*arguments, **options)

    return call


def _annotates_an_array(decorated: Any) -> bool:
    if isinstance(decorated, property):
        return _annotates_an_array(decorated.fget)
    if inspect.isclass(decorated) and not dataclasses.is_dataclass(decorated):
        return False
    annotations = getattr(getattr(decorated, "__func__", decorated), "__annotations__", {})
    return any("jaxtyping." in repr(annotation) for annotation in annotations.values())


jaxtyping.jaxtyped = where_arrays_are


def exec_module(loader: _JaxtypingLoader, module: ModuleType) -> None:
    """Load a module of the suite with its checks.

    jaxtyping keeps compiled modules under names of its own. Its loader uses these names for all that the module imports
    too, such as torch, so that Python compiles it anew. Here only the module itself has such a name.
    """
    names = partial(_optimized_cache_from_source, loader._typechecker.get_hash())
    with patch("importlib._bootstrap_external.cache_from_source", names):
        code = loader.get_code(module.__name__)
    assert code is not None
    exec(code, module.__dict__)


_JaxtypingLoader.exec_module = exec_module
