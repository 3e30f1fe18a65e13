"""Two runs under different global seeds, for checks that results do not depend on global generators."""

import random
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from benchmark.conformance.failure import CheckFailed

T = TypeVar("T")


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
