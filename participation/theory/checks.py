"""Checks of arguments that several functions of this package share."""

import numpy as np
from jaxtyping import Float


def check_probabilities(name: str, values: Float[np.ndarray, "..."]) -> None:
    """Refuse values outside [0, 1], including nan."""
    outside = values[~((values >= 0) & (values <= 1))]
    if outside.size:
        raise ValueError(f"{name}: {outside.flat[0]:g} is not allowed; must be in [0, 1]")


def check_least(name: str, value: int, least: int) -> None:
    """Refuse a number below the smallest allowed one."""
    if value < least:
        raise ValueError(f"{name}: {value} is not allowed; must be at least {least}")
