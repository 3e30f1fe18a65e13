"""The tools of checks: expectations, where in the code of a part one fails, and draws from global generators."""

import inspect
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rollcall.benchmark.config.source import definition, plain, shown

T = TypeVar("T")


class CheckFailed(Exception):
    """A check that failed.

    Attributes:
        expected: by the check.
        seen: instead.
    """

    def __init__(self, expected: str, seen: object) -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = str(seen)


def expect(holds: object, expected: str, seen: object) -> None:
    """Raise `CheckFailed` unless the condition holds."""
    if not holds:
        raise CheckFailed(expected, seen)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, entry by entry; in tensors and tables, NaN equals NaN."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, Tensor):
        return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    return np.array_equal(one, other)


@contextmanager
def unchanged(expected: str, *values: Any, seen: str = "they were modified") -> Iterator[None]:
    """A context that fails if one of the values is modified in place."""
    before = deepcopy(values)
    yield
    expect(alike(before, values), expected, seen)


def twice(make: Callable[[], T], source: str, differ: str = "") -> tuple[T, T]:
    """The results of a function under two states of the global generators of Python, NumPy and torch.

    Args:
        make: the function.
        source: where random numbers should come from, for the error.
        differ: the failure if the two results are not equal; by default they are not compared.

    Raises:
        CheckFailed: it drew from a global generator.
    """
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    made = []
    try:
        with torch.random.fork_rng(devices=[]):
            for seed in (1, 2):
                random.seed(seed)
                np.random.seed(seed)  # noqa: NPY002
                torch.manual_seed(seed)
                before = _generators()
                made.append(make())
                for name, state in _generators().items():
                    seen = f"numbers from {name}'s global generator"
                    expect(state == before[name], f"random numbers from {source}", seen)
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
    expect(not differ or alike(*made), f"random numbers from {source}", differ)
    return made[0], made[1]


def _generators() -> dict[str, str]:
    """The states of the global generators, as text."""
    numpy = np.random.get_state(legacy=True)  # noqa: NPY002
    states = {"random": random.getstate(), "NumPy": tuple(numpy)[1:3], "torch": torch.get_rng_state().tolist()}
    return {name: str(state) for name, state in states.items()}


def location(part: Any, error: Exception) -> str:
    """`FILE:LINE` of the line that raised the error; otherwise of the method that does the work, or the definition.

    Args:
        part: a function, a class, or an instance.
        error: of the check; its attribute `method` names the method that is wrong, where that is known.
    """
    thing = plain(part)
    try:
        file = inspect.getfile(thing)
    except TypeError:  # a class that is not in a file
        return ""
    inherited = inspect.unwrap(getattr(thing, "round", thing))
    files = {file, getattr(getattr(inherited, "__code__", None), "co_filename", file)}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return f"{shown(frame.filename)}:{frame.lineno}"
    methods = (getattr(error, "method", ""), "round", "active", "loss")
    work = next((vars(thing)[name] for name in methods if name in vars(thing)), None)
    if work is not None and hasattr(inspect.unwrap(work), "__code__"):
        return f"{shown(file)}:{inspect.unwrap(work).__code__.co_firstlineno}"
    return definition(thing)
