"""The tools of checks: expectations, where in the code of a part one fails, and draws from global generators."""

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rollcall.benchmark.config.source import contributed_line, definition, fingerprint, plain, told


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


def called(function: Callable[..., Any], *inputs: Any) -> Any:
    """The result of a function. Raises CheckFailed: it changed an input in place."""
    before = fingerprint(inputs)
    result = function(*inputs)
    same = fingerprint(inputs) == before
    expect(same, "inputs that do not change; work on a copy", "one of them was modified in place")
    return result


def twice(make: Callable[[], Any], source: str) -> None:
    """Compare the results of a function under two states of the global generators of Python, NumPy and torch.

    Args:
        make: the function.
        source: where random numbers should come from, for the error.

    Raises CheckFailed: the results differ.
    """
    states = _generators()
    made = []
    with torch.random.fork_rng(devices=[]):
        for seed in (1, 2):
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            torch.manual_seed(seed)
            before = fingerprint(_generators())
            try:
                made.append(make())
            except Exception as error:  # the failure of another check, unless it is a matter of chance
                made.append(told(error))
            if fingerprint(_generators()) != before:
                made = ["a global generator was used"]
                break
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    said = " and ".join(" ".join(str(value).split())[:120] for value in made)
    expected = f"random numbers from {source}, and memory only where it is declared"
    expect(len(made) == 2 and fingerprint(made[0]) == fingerprint(made[1]), expected, f"two uses differ: {said}")


def _generators() -> tuple[Any, ...]:
    return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002


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
