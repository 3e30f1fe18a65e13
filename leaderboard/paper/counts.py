"""How many claims there are by verdict. README, REPRODUCTION.md and the site count with these functions alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rollcall.leaderboard.paper.claims import DECIDED, VERDICTS, ClaimResult, Verdict
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment

PAPERS = {"PBC": "FedPBC", "SUN": "Debiased FedAvg", "FOC": "FOCUS", "CAF": "CA-Fed", "HAR": "Spatial correlation"}
"""The papers by the first part of their statements' ids."""

FOLDERS = {"fedpbc": "PBC", "sun": "SUN", "focus": "FOC", "ca_fed": "CAF", "harrak": "HAR"}
"""The first parts by the papers' folders of experiments."""

Kind = Literal["of the papers", "of the papers, by the released code", "about released code", "own checks"]
"""Who states a claim, and with what it was run."""

RELEASED = "as_released"
"""Variants with this beginning run what the authors' released code does."""


@dataclass(frozen=True)
class Told:
    """A result, its experiment, the variant that the claim is of (or an empty text), and its number there, from 1."""

    experiment: PaperExperiment
    variant: str
    number: int
    result: ClaimResult

    @property
    def kind(self) -> Kind:
        """What is judged again under released code counts apart, so that a sentence counts once."""
        tag = self.result.claim.tag
        if tag == "ours":
            return "own checks"
        if tag == "released code":
            return "about released code"
        return "of the papers, by the released code" if self.variant.startswith(RELEASED) else "of the papers"

    @property
    def paper(self) -> str:
        """The paper, by the statement or else the folder of the experiment; empty if it is none of the five."""
        prefix = FOLDERS.get(self.experiment.name.partition("/")[0], "")
        return PAPERS.get((self.result.claim.statement or prefix)[:3], "")


def of_papers(told: Iterable[Told]) -> list[Told]:
    """The claims of the papers: what pages count, and lists of a count open."""
    return [one for one in told if one.kind == "of the papers"]


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


def claim_counts(told: Sequence[Told]) -> list[list[int | str]]:
    """Rows of claims by verdict: of each paper, of all, apart for trained figures and theory, and of other kinds."""
    own = of_papers(told)
    by_training = [(is_trained(one.experiment, one.result.claim), one) for one in own]
    rows = {paper: [one for one in own if one.paper == paper] for paper in PAPERS.values()}
    rows["all of the papers"] = own
    rows["- figures and tables with training"] = [one for trained, one in by_training if trained]
    rows["- theory"] = [one for trained, one in by_training if not trained]
    rows |= {kind: [one for one in told if one.kind == kind] for kind in get_args(Kind)[1:]}
    return [[title, *tally(one.result.verdict for one in listed)] for title, listed in rows.items()]


def decided(told: Iterable[Told]) -> tuple[int, int, int]:
    """How many claims of the papers are decided, how many of these were reworded after a result, or are by an interval.

    A claim that an interval over seeds decides has a false verdict with a probability of at most 5 %; an exact one has
    none by chance.
    """
    results = [one.result for one in of_papers(told) if one.result.verdict in DECIDED]
    quantities = [[place.quantity for place in result.places if place.quantity] for result in results]
    spans = [[quantity.interval() for quantity in of] for of in quantities]
    by_interval = sum(any(low < high for low, high in of) for of in spans)
    return len(results), sum(bool(result.claim.since) for result in results), by_interval
