"""Samples that hold NaN or infinite values."""

import torch

from tasks.base import Samples, Task

TRIED = 100
"""The number of such samples whose loss is computed."""


def not_finite(task: Task, split: str, samples: Samples) -> str:
    """How many samples of a split hold values that are not finite, in words; empty if none does.

    Empty, too, if the task computes finite losses from such samples, as it does if NaN stands for a missing value.

    Args:
        task: in evaluation mode.
        split: its name.
        samples: all of the split.
    """
    bad = torch.zeros(len(samples[0]), dtype=torch.bool)
    for column in samples:
        bad |= ~column.isfinite().flatten(start_dim=1).all(dim=1) if column.ndim > 1 else ~column.isfinite()
    rows = bad.nonzero()[:, 0]
    if len(rows) == 0:
        return ""
    with torch.no_grad():
        loss = task.loss(tuple(column[rows[:TRIED]] for column in samples))
    if loss.isfinite():
        return ""
    return f"NaN or infinite values in {len(rows)} of {len(bad)} samples of {split}; the first is sample {rows[0]}"
