"""Schedules: the factor of the local learning rate in round t. Keyword arguments are options in experiment files."""

from collections.abc import Callable
from math import sqrt
from typing import Annotated

from annotated_types import Gt


def constant(t: int) -> float:
    """1 in every round."""
    return 1.0


def inverse_sqrt(t: int, *, period: Annotated[float, Gt(0)] = 10.0) -> float:
    """1 / sqrt(t / period + 1), with t in rounds. The FedPBC paper uses it with a period of 10."""
    return 1 / sqrt(t / period + 1)


SCHEDULES: dict[str, Callable[..., float]] = {"constant": constant, "inverse_sqrt": inverse_sqrt}
