"""How the local learning rate falls: a factor for round t. Keyword arguments are the options of an experiment file."""

from collections.abc import Callable
from math import sqrt
from typing import Annotated

from annotated_types import Gt


def constant(t: int) -> float:
    """1 in every round."""
    return 1.0


def inverse_sqrt(t: int, *, period: Annotated[float, Gt(0)] = 10.0) -> float:
    """1 / sqrt(t / period + 1), t in rounds: the FedPBC paper's schedule, with its period of 10."""
    return 1 / sqrt(t / period + 1)


SCHEDULES: dict[str, Callable[..., float]] = {"constant": constant, "inverse_sqrt": inverse_sqrt}
