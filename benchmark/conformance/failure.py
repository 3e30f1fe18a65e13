"""A check that fails, where in the code of a part it does, and the check that nothing draws from a global generator."""

import inspect
import random
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from rollcall.benchmark.config.source import definition, plain, shown

T = TypeVar("T")


class CheckFailed(Exception):
    """A check that failed.

    Attributes:
        expected: by the check.
        seen: instead.
    """

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = seen


def location(part: Any, error: Exception) -> str:
    """`FILE:LINE` of the line that raised the error; otherwise of the method that does the work, or the definition.

    Args:
        part: what is checked: a function, a class, or an instance.
        error: of the check; its attribute `method` names the method that is wrong, where that is known.
    """
    thing = plain(part)
    methods = (getattr(error, "method", ""), "round", "active", "loss")
    work = next((vars(thing)[name] for name in methods if name in vars(thing)), None)
    try:
        file = inspect.getfile(thing)
    except TypeError:  # a class that is not in a file
        return ""
    inherited = inspect.unwrap(getattr(thing, "round", thing))
    files = {file, getattr(getattr(inherited, "__code__", None), "co_filename", file)}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return f"{shown(frame.filename)}:{frame.lineno}"
    if work is not None and hasattr(inspect.unwrap(work), "__code__"):
        return f"{shown(file)}:{inspect.unwrap(work).__code__.co_firstlineno}"
    return definition(thing)


def twice(make: Callable[[], T], instead: str) -> tuple[T, T]:
    """What a function makes under two states of the global generators of Python, NumPy and torch.

    Args:
        make: the function.
        instead: where random numbers should come from, for the error.

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
                before = _drawn()
                made.append(make())
                for name, one, other in zip(("random", "NumPy", "torch"), before, _drawn(), strict=True):
                    if one != other:
                        raise CheckFailed(f"random numbers from {instead}", f"numbers from {name}'s global generator")
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
    return made[0], made[1]


def _drawn() -> tuple[str, str, str]:
    """The states of the generators, as text."""
    return (
        str(random.getstate()),
        str(tuple(np.random.get_state(legacy=True))[1:3]),  # noqa: NPY002
        str(torch.get_rng_state().tolist()),
    )
