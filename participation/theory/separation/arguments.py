"""Checks of the arguments that all functions of minimum separation share."""

import numpy as np

from participation.theory.checks import check_least


def check_draw(p: np.ndarray, B: int) -> None:
    """Refuse weights that are negative, not finite or all 0, and B below 1."""
    check_least("B", B, 1)
    if not np.isfinite(p).all() or (p < 0).any() or not (p > 0).any():
        raise ValueError("p: must be finite, at least 0 and not all 0")


def check_enough(units: int, R: int, B: int) -> None:
    """Refuse an R that could leave fewer than B of the units of positive weight available."""
    if units < B * (R + 1):
        raise ValueError(
            f"R: {R} is not allowed for {units} units of positive weight and B = {B}; "
            f"must be at most {units // B - 1}, so that every round finds {B} available"
        )
