"""How many claims there are by verdict. README, REPRODUCTION.md and the site count with these functions alone."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from rollcall.leaderboard.paper.claims import DECIDED, VERDICTS, ClaimResult, Verdict
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment
from rollcall.leaderboard.paper.quantities import Quantity

Kind = Literal["of the papers", "of the papers, by the released code", "about released code", "own checks"]
"""Who states a claim, and with what it was run."""

RELEASED = "as_released"
"""Variants with this beginning run what the authors' released code does."""

LEVEL = 0.95
"""Of the intervals that decide claims."""

Told = tuple[PaperExperiment, str, ClaimResult]
"""A result, its experiment, and the variant that the claim is of; empty for the experiment's own."""


def kind_of(variant: str, claim: Claim) -> Kind:
    """The kind of a claim. What is judged again under released code counts apart, so that a sentence counts once."""
    if claim.tag == "ours":
        return "own checks"
    if claim.tag == "released code":
        return "about released code"
    return "of the papers, by the released code" if variant.startswith(RELEASED) else "of the papers"


def of_papers(told: Iterable[Told]) -> list[Told]:
    """The claims of the papers: what pages count, and lists of a count open."""
    return [one for one in told if kind_of(one[1], one[2].claim) == "of the papers"]


def is_trained(experiment: PaperExperiment, claim: Claim) -> bool:
    """Whether a claim is about a figure or table of the paper for which methods are trained; else it is theory."""
    if not any(word in claim.section for word in ("Fig", "Table")):
        return False
    chosen = claim.where.get("panel") or claim.of.get("panel") or tuple(experiment.panels)
    return any(experiment.panels[name].analysis is None for name in chosen)


def tally(verdicts: Iterable[Verdict]) -> list[int | str]:
    """The number of each verdict, in the order of `VERDICTS`; empty instead of 0."""
    counts = Counter(verdicts)
    return [counts[verdict] or "" for verdict in VERDICTS]


def reworded(told: Iterable[Told]) -> tuple[int, int]:
    """How many decided claims of the papers were reworded after a result had been seen, and how many are decided."""
    decided = [result for _, _, result in of_papers(told) if result.verdict in DECIDED]
    return sum(bool(result.claim.since) for result in decided), len(decided)


def by_chance(told: Iterable[Told]) -> tuple[float, int]:
    """How many false verdicts intervals of 95 % let pass at most, on average, and of how many claims.

    Counted are claims that an interval over seeds decided; exact ones cannot be false by chance. A claim at its bound
    has a false verdict with probability 0.05 (in either direction), all others less often.
    """
    by_interval = [
        result
        for _, _, result in of_papers(told)
        if result.verdict in DECIDED and any(place.quantity and _is_wide(place.quantity) for place in result.places)
    ]
    return (1 - LEVEL) * len(by_interval), len(by_interval)


def _is_wide(quantity: Quantity) -> bool:
    low, high = quantity.interval()
    return low < high
