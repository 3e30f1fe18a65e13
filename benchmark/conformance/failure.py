"""The tools of checks: expectations, where in the code of a part one fails, and draws from global generators."""

import inspect
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rollcall.benchmark.config.source import contributed_line, definition, plain, told


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


def called(function: Callable[..., Any], *inputs: Any) -> Any:
    """The result of a function.

    Raises:
        CheckFailed: it changed an input in place.
    """
    before = deepcopy(inputs)
    result = function(*inputs)
    expect(alike(before, inputs), "inputs that do not change; work on a copy", "one of them was modified in place")
    return result


def twice(make: Callable[[], Any], source: str) -> None:
    """Compare the results of a function under two states of the global generators of Python, NumPy and torch.

    Args:
        make: the function.
        source: where random numbers should come from, for the error.

    Raises:
        CheckFailed: it drew from a global generator, or the results differ.
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
                try:
                    made.append(make())
                except Exception as error:  # the failure of another check, unless it is a matter of chance
                    made.append(told(error))
                for name, state in _generators().items():
                    seen = f"numbers from {name}'s global generator"
                    expect(state == before[name], f"random numbers from {source}", seen)
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
    seen = f"the results of two uses differ: {_short(made[0])} and {_short(made[1])}"
    expect(alike(*made), f"random numbers from {source}, and memory only where it is declared", seen)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else f"{text[:120]}..."


def _generators() -> dict[str, str]:
    """The states of the global generators, as text."""
    numpy = np.random.get_state(legacy=True)  # noqa: NPY002
    states = {"random": random.getstate(), "NumPy": tuple(numpy)[1:3], "torch": torch.get_rng_state().tolist()}
    return {name: str(state) for name, state in states.items()}


def location(part: Any, error: Exception) -> str:
    """`FILE:LINE` of a contributed line that raised the error; otherwise of the method that does the work, or the part.

    Args:
        part: a function, a class, or an instance.
        error: of the check; its attribute `method` names the method that is wrong, where that is known.
    """
    if line := contributed_line(error):
        return line.removesuffix(": ")
    thing = plain(part)
    methods = (getattr(error, "method", ""), "round", "active", "loss")
    return definition(inspect.unwrap(next((vars(thing)[name] for name in methods if name in vars(thing)), thing)))
