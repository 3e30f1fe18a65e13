"""Schedulers: which samples of a cell get more rounds. They compare samples of one cell after equal numbers of rounds.

`asha` is successive halving: of the samples that reached a rung, the best third goes on to the next one. A rung is
finished before samples are promoted from it (synchronous), so the answer does not depend on which trial ends first.
`median` lets a sample go on unless it is worse than the median of its rung. `none` runs every sample to the end.
"""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Literal

ETA = 3
"""A rung has so many times the rounds of the rung below, and `asha` promotes one of so many samples."""

RUNGS = 3
"""The number of rungs."""

Scheduler = Literal["none", "asha", "median"]


def rungs(rounds: int, scheduler: Scheduler) -> list[int]:
    """The numbers of rounds after which samples are compared; the last is the number of rounds of the search."""
    if scheduler == "none":
        return [rounds]
    return sorted({max(1, -(-rounds // ETA**k)) for k in range(RUNGS)})


def best_third(scores: Mapping[int, float]) -> list[int]:
    """The best third of the samples, at least one."""
    return ranked(scores)[: max(1, len(scores) // ETA)]


def upper_half(scores: Mapping[int, float]) -> list[int]:
    """The samples that are not worse than the median."""
    middle = median(scores.values()) if scores else 0.0
    return [index for index in ranked(scores) if scores[index] >= middle]


def ranked(scores: Mapping[int, float]) -> list[int]:
    """The samples from the best to the worst; of equal ones, the first drawn comes first."""
    return sorted(scores, key=lambda index: (-scores[index], index))


PROMOTED: dict[str, Callable[[Mapping[int, float]], list[int]]] = {
    "none": ranked,
    "asha": best_third,
    "median": upper_half,
}
"""For each scheduler, the samples of a rung that go on. Higher scores are better; failed samples are left out."""
