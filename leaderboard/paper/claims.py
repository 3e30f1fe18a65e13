"""Whether the claims of a paper hold in the results."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import pandas as pd

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import Cell, after_equal_rounds
from rollcall.leaderboard.paper import quantities
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment, Size
from rollcall.leaderboard.paper.quantities import FEWEST, BestOf, Crossing, Estimate, Later, Quantity

Verdict = Literal[
    "holds", "contradicted", "erratum", "not testable", "no difference that matters", "undecided", "too short",
    "not run", "data missing",
]  # fmt: skip
"""A verdict of the results on a statement. See `weakest` for the verdict over several."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order in which tables list them."""

LEVELS = (
    "The verdict judges the direction that a sentence states, by Student's interval over seeds (of logarithms for "
    "ratios and for values of figures with a logarithmic y axis), of 95 %, or of 1 - 0.05/n where verdicts were looked "
    "at n times:"
)
"""What pages say before `MEANINGS`."""

MEANINGS: dict[Verdict, str] = {
    "holds": "the interval is within the bounds, at all places (cells of a table) whose data we have.",
    "contradicted": "the interval is outside the bounds at one place. With k places it has the level 1 - 0.05/(n k).",
    "erratum": "a formula, or a mathematical statement, is false as printed. The evidence says what remains true.",
    "not testable": (
        "the paper, or our copy of it, does not print a setting or its data: one reading holds and another contradicts "
        "(their number is not corrected for), or no reading comes near the printed number that identifies the data (to "
        "a quarter of it; a reading that was fitted to it decides nothing), at our other settings and whatever the "
        "readings say."
    ),
    "no difference that matters": (
        "the interval is within a margin of the bound: a quarter of the printed difference, unless the claim states "
        "another. Of several readings one is so, and none contradicts."
    ),
    "undecided": (
        "a part of the interval is within the bounds; or readings are open; or other rates that the search cannot tell "
        "from the best ones give another verdict; or a run diverged; or one of k places contradicts, but not at the "
        "level that k places need."
    ),
    "too short": "there are fewer rounds or seeds than decide it.",
    "not run": 'parts are not run yet. "holds, partly run" says what the other parts show, and counts as open.',
    "data missing": "we lack the data set.",
}
"""The verdicts in words."""

UNDECIDED: tuple[Verdict, ...] = ("undecided", "no difference that matters")

DECIDED: tuple[Verdict, ...] = ("holds", "contradicted", "no difference that matters")

SETTLED: tuple[Verdict, ...] = (*DECIDED, "erratum", "not testable")

OPEN: tuple[Verdict, ...] = ("too short", "not run", "data missing")
"""Verdicts on places for which runs are missing."""

ORDER: tuple[Verdict, ...] = (
    "erratum", "contradicted", "not run", "too short", "not testable", "undecided", "no difference that matters",
    "holds",
)  # fmt: skip
"""Of several verdicts the first one in this order counts."""

SizeVerdict = Literal["agrees", "differs", "not judged"]
"""Whether a printed number is within the interval of the measured one."""


def weakest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several: of a claim over its places, of a statement over its claims.

    The first of them in `ORDER`; `data missing` only if nothing else is known, `not run` if there is none.
    """
    among = set(verdicts)
    return next((verdict for verdict in ORDER if verdict in among), "data missing" if among else "not run")


@dataclass(frozen=True)
class PlaceResult:
    """The result of a claim in one cell or pair of cells, with the labels that not all places of the claim share.

    `verdict` is on the direction that the statement says, `size` on the printed number. `reached` are the rounds, and
    how many are planned; `short` is the reason of a verdict `too short`. `searched`: it compares searched rates, whose
    uncertainty is not in the interval. The quantity is None if a cell was not run, diverged or lacks evaluations.
    """

    labels: dict[str, str]
    quantity: Quantity | None
    verdict: Verdict
    size: SizeVerdict = "not judged"
    printed: float | None = None
    diverged: int = 0
    seeds: int = 0
    reached: tuple[int, int] = (0, 0)
    short: str = ""
    reading: str = ""
    searched: bool = False


@dataclass(frozen=True)
class ClaimResult:
    """The result of a claim about a metric over its places, each a cell or a pair of cells, and under its readings.

    `level` is that of the intervals that decide it. No run measured the `unmeasured` metrics of the claim. `misses` are
    the readings whose data are not the paper's, by the printed number that identifies them.
    """

    claim: Claim
    metric: Metric
    places: tuple[PlaceResult, ...]
    level: float = 0.95
    unmeasured: tuple[Metric, ...] = ()
    readings: dict[str, "ClaimResult"] = field(default_factory=dict)
    misses: frozenset[str] = frozenset()

    @property
    def verdict(self) -> Verdict:
        """The verdict over all readings, or over all places; of a false formula `erratum`."""
        found = self._over_readings if self.readings else self._over(self.places)
        return "erratum" if self.claim.erratum and found == "contradicted" else found

    @property
    def word(self) -> str:
        """The verdict as lists show it: of a claim whose places were run in part, what these say, `, partly run`."""
        ran = [place for place in self.places if place.verdict not in OPEN]
        return f"{self._over(ran)}, partly run" if ran and not self.readings and self.verdict in OPEN else self.verdict

    @property
    def _over_readings(self) -> Verdict:
        """The verdict over the readings of the paper.

        `not testable` if one holds and another contradicts, or if the data of all that were run are not the paper's. If
        all decided ones agree, theirs; `undecided` while others are open, or if it is another at rates as good. A
        reading that was fitted to a printed number decides nothing.
        """
        of_paper = {name: self.readings[name].verdict for name, one in self.claim.of_paper.items() if not one.fitted}
        decided = {verdict for verdict in of_paper.values() if verdict in DECIDED}
        ran = {name for name, verdict in of_paper.items() if verdict not in ("not run", "data missing")}
        if decided >= {"holds", "contradicted"} or (ran and ran <= self.misses):
            return "not testable"
        if not decided:
            return weakest(verdict for name, verdict in of_paper.items() if name in ran or not ran)
        at_rates = {result.verdict for name, result in self.readings.items() if name not in self.claim.of_paper}
        differ = "contradicted" in decided and len(decided | at_rates.intersection(DECIDED)) > 1
        differ |= "contradicted" in at_rates and "contradicted" not in decided
        is_open = any(verdict not in DECIDED for verdict in of_paper.values())
        return "undecided" if differ or is_open else weakest(decided)

    def _over(self, places: Sequence[PlaceResult]) -> Verdict:
        """The verdict over places, of those whose data exist.

        Of k places one is more likely to be contradicted by chance. So for this their intervals have a higher level,
        1 - (1 - level) / k instead of `level` (Bonferroni).
        """
        contradicted = [place.quantity for place in places if place.verdict == "contradicted"]
        if any(quantity and within(self.claim, quantity, self.strict) == "contradicted" for quantity in contradicted):
            return "contradicted"
        return weakest("undecided" if place.verdict == "contradicted" else place.verdict for place in places)

    @property
    def strict(self) -> float:
        """The level at which one of the places contradicts the statement."""
        decided = sum(place.verdict in ("holds", "contradicted", *UNDECIDED) for place in self.places)
        return 1 - (1 - self.level) / max(1, decided)


Results = tuple[PaperExperiment, Sequence[Cell]]
"""An experiment, or one with the changes of a variant, and its cells."""


def check_claim(
    claim: Claim, experiment: PaperExperiment, cells: Sequence[Cell], variant: Callable[[str], Results] | None = None,
    identified: ClaimResult | None = None,
) -> ClaimResult:  # fmt: skip
    """Decide a claim of an experiment, or of its variant, by its cells, under each of its readings if it has some.

    `variant` gives a variant of the experiment by name; it is needed if a reading names one. `identified` is the result
    of the claim whose printed number identifies the paper's data, if it is another one; without it no reading is known
    to have other data.
    """
    if not (claim.readings or claim.data or claim.identifies):
        return _decide(claim, experiment, cells)
    readings: dict[str, ClaimResult] = {}
    for name, reading in {**claim.of_paper, **claim.readings}.items():
        own, its_cells = variant(reading.variant) if reading.variant and variant else (experiment, cells)
        read = {"where": claim.where | reading.where, "metric": reading.metric or claim.metric}
        under = claim.model_copy(update={**read, "erratum": ""})
        readings[name] = _decide(under, own, its_cells)
    by_number = readings if claim.identifies else identified.readings if identified else {}
    far = {name for name, of in by_number.items() if any(map(_is_far, of.places))}
    places = [replace(place, reading=name) for name, result in readings.items() for place in result.places]
    first = next(iter(readings.values()))
    unmeasured = tuple(dict.fromkeys(metric for result in readings.values() for metric in result.unmeasured))
    misses = frozenset(name for name in readings if name.partition(", ")[0] in far)
    return ClaimResult(claim, first.metric, tuple(places), first.level, unmeasured, readings, misses)


def _is_far(place: PlaceResult) -> bool:
    """Whether the printed number is outside the interval by more than a quarter of itself."""
    if place.size != "differs" or place.quantity is None or place.printed is None:
        return False
    low, high = place.quantity.interval()
    return max(low - place.printed, place.printed - high) > abs(place.printed) / 4


Pair = tuple[Cell, Cell | None]


def _decide(claim: Claim, experiment: PaperExperiment, cells: Sequence[Cell]) -> ClaimResult:
    metric = claim.metric or experiment.report.metrics[0]
    pairs = list(pairs_of(claim, metric, cells))
    level = 1 - 0.05 / max(experiment.decides.looks, claim.size.looks if claim.size else 1)
    places = [_place(claim, metric, experiment, group, level) for group in _groups(claim, pairs)]
    ran = [cell for pair in pairs for cell in pair if cell is not None and len(cell.runs) > cell.diverged]
    named = [one for one in (metric, claim.against, claim.per) if one]
    unmeasured = tuple(one for one in named if ran and not any(cell.measured(one) for cell in ran))
    first = places[0].labels if places else {}
    shared = {axis for axis in first if len({place.labels.get(axis) for place in places}) == 1}
    told = [{axis: label for axis, label in place.labels.items() if axis not in shared} for place in places]
    places = [replace(place, labels=labels) for place, labels in zip(places, told, strict=True)]
    return ClaimResult(claim, metric, tuple(places), level, unmeasured)


def _groups(claim: Claim, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs of each place: one, or with `either` or `slope` those that differ on these axes only."""
    groups: dict[tuple[tuple[str, str], ...], list[Pair]] = {}
    named = {**(claim.minus or {}), **(claim.over or {})}
    joined = claim.joined
    for cell, other in pairs:
        labels = {axis: label for axis, label in cell.labels.items() if axis not in joined}
        of_other = other.labels.items() if other else ()
        beside = [(axis, label) for axis, label in of_other if axis not in joined or axis in named]
        labels |= {f"{axis} against": label for axis, label in beside}
        groups.setdefault(tuple(labels.items()), []).append((cell, other))
    return list(groups.values())


def _place(
    claim: Claim, metric: Metric, experiment: PaperExperiment, group: Sequence[Pair], level: float
) -> PlaceResult:
    cells = [cell for pair in group for cell in pair if cell is not None]
    quantity = _of_group(claim, metric, experiment, group)
    diverged = sum(cell.diverged for cell in cells)
    rounds, planned = min(cell.rounds_run for cell in cells), claim.last_round or min(cell.rounds for cell in cells)
    rounds = planned if all(cell.is_analysis and cell.runs for cell in cells) else rounds
    size: SizeVerdict = "not judged"
    printed, short = claim.printed, ""
    if isinstance(printed, dict):
        labels = {label for cell in cells for label in cell.labels.values()}
        printed = next((number for label, number in printed.items() if label in labels), None)
    if not all(cell.runs for cell in cells):
        missing = any(_matches(cell, part) for cell in cells for part in experiment.data_missing)
        verdict: Verdict = "data missing" if missing else "not run"
    elif not all(_is_measured(claim, metric, cell) for cell in cells):
        verdict = "not run"
    elif short := next(filter(None, (_too_short(claim, experiment, *pair) for pair in group)), ""):
        verdict = "too short"
    elif diverged or quantity is None:
        verdict = "undecided"
    else:
        is_difference = claim.minus is not None or claim.along is not None
        quarter = abs(printed) / 4 if is_difference and printed is not None and math.isfinite(printed) else 0.0
        verdict = within(claim, quantity, level, quarter if claim.margin is None else claim.margin)
        if printed is not None and rounds >= planned and (quantity.seeds >= FEWEST or cells[0].exact):
            low, high = quantity.interval()  # of 95 %, also where the verdict was looked at before
            size = "agrees" if low <= printed <= high else "differs"
    searched = any(cell.searched or other.searched for cell, other in group if other is not None)
    where = _pair_labels(*group[0], claim.joined)
    seeds = quantity.seeds if quantity else min(len(cell.runs) for cell in cells)
    reached = (rounds, planned)
    return PlaceResult(where, quantity, verdict, size, printed, diverged, seeds, reached, short, searched=searched)


def _is_measured(claim: Claim, metric: Metric, cell: Cell) -> bool:
    """Whether a cell has the claim's metric, and the cost at which it is read."""
    of_value = cell.measured(metric) or bool(claim.against and cell.measured(claim.against))
    return of_value and (claim.per is None or cell.measured(claim.per))


def _too_short(claim: Claim, experiment: PaperExperiment, cell: Cell, other: Cell | None) -> str:
    """How far a cell, or a pair of cells, is from the size that decides the claim; empty if it has it."""
    own, size, both = claim.size or Size(), experiment.decides, [cell] if other is None else [cell, other]
    for one in both:
        rounds = min(own.rounds or claim.last_round or size.rounds or one.rounds, one.rounds)
        if not one.is_analysis and one.rounds_run < rounds:
            return f"{one.rounds_run:,} of {rounds:,} rounds"
    needed = [min(own.seeds or size.seeds or one.seeds, one.seeds) for one in both]
    counts = [(len(one.runs), least) for one, least in zip(both, needed, strict=True)]
    if other is not None and not cell.exact and not other.exact:
        counts.append((len(cell.runs.keys() & other.runs.keys()), min(needed)))
    return next((f"{run} of {least} seeds" for run, least in counts if run < least), "")


def pairs_of(claim: Claim, metric: Metric, cells: Sequence[Cell]) -> Iterator[Pair]:
    """The cells that the claim is about, each with the cell that it is compared with.

    They are compared after equal rounds. A round that reaches a value does not depend on later ones, so there the
    cells keep all rounds.
    """
    subjects = [cell for cell in cells if _matches(cell, claim.where) and _matches(cell, claim.of)]
    if claim.slope is not None:
        subjects = [cell for cell in subjects if claim.slope in cell.labels]
    paired = after_equal_rounds if metric.threshold is None else lambda cell, other: (cell, other)
    baseline = claim.minus if claim.minus is not None else claim.over
    if baseline is None and claim.along is None:
        yield from ((cell, None) for cell in subjects)
    for index, cell in enumerate(subjects):
        if baseline is not None:
            for other in cells:
                same = other is cell and claim.against is None
                if not same and _matches(other, baseline) and _alike(cell, other, baseline):
                    yield paired(cell, other)
        elif claim.along is not None:  # with the next one on the axis
            later = (one for one in subjects[index + 1 :] if _alike(cell, one, (claim.along,)))
            following = next((one for one in later if one.labels.get(claim.along) != cell.labels[claim.along]), None)
            if following is not None:
                yield paired(following, cell)


def _matches(cell: Cell, labels: Mapping[str, tuple[str, ...]]) -> bool:
    return all(cell.labels.get(axis) in allowed for axis, allowed in labels.items())


def _alike(cell: Cell, other: Cell, except_axes: Collection[str]) -> bool:
    """Whether two cells agree on the axes that both have, apart from some."""
    both = (cell.labels.keys() & other.labels.keys()) - {*except_axes}
    return all(cell.labels[axis] == other.labels[axis] for axis in both)


def _of_group(claim: Claim, metric: Metric, experiment: PaperExperiment, group: Sequence[Pair]) -> Quantity | None:
    """The claim's quantity over the pairs of a place; None if it is not known."""
    cells = [cell for pair in group for cell in pair if cell is not None]
    if claim.slope is not None:
        if len(group) < 2 or any(cell.diverged for cell in cells):
            return None
        columns = [values_of(claim, metric, experiment, *pair) for pair in group]
        values = pd.concat(columns, axis=1, join="inner").to_numpy()
        x = [float(cell.labels[claim.slope]) for cell, _ in group]
        return quantities.power(x, values, all(cell.exact for cell in cells)) if len(values) else None
    found = [_quantity(claim, metric, experiment, *pair) for pair in group]
    known = tuple(quantity for quantity in found if quantity is not None)
    if claim.either:
        return BestOf(known, -1 if claim.least is None else 1) if len(known) == len(group) else None
    return known[0] if known else None


def _quantity(
    claim: Claim, metric: Metric, experiment: PaperExperiment, cell: Cell, other: Cell | None
) -> Estimate | Crossing | Later | None:
    """The claim's quantity at a place, seed by seed; None if a run diverged or no seed has a value in both cells."""
    if cell.diverged or (other is not None and other.diverged):
        return None
    if metric.threshold is not None:
        return round_reached(metric, cell, other)
    values = values_of(claim, metric, experiment, cell, other).to_numpy()
    exact = cell.exact and (other is None or other.exact)
    logarithmic = claim.over is not None or (other is None and "y" in experiment.report.log)
    return (quantities.geometric if logarithmic else quantities.estimate)(values, exact) if len(values) else None


def values_of(claim: Claim, metric: Metric, experiment: PaperExperiment, cell: Cell, other: Cell | None) -> pd.Series:
    """The values of a cell, or their differences or ratios to those of another one, by seed."""

    def of(cell: Cell, metric: Metric) -> pd.Series:
        last_rounds = experiment.report.last_rounds
        if claim.quantity != "final":
            return cell.over_time(metric, claim.quantity)
        read = cell.finals(metric, last_rounds, claim.at, claim.per)
        own = claim.over_round
        return read if own is None else read / cell.finals(metric, last_rounds, None if own == "final" else own)

    values = of(cell, metric)
    if other is None:
        return values
    baseline = of(other, claim.against or metric)
    if other.exact and len(baseline):  # it depends on no seed, so it is compared with every seed
        baseline = pd.Series(baseline.iloc[0], index=values.index)
    elif cell.exact and len(values):
        values = pd.Series(values.iloc[0], index=baseline.index)
    values, baseline = values.align(baseline, join="inner")
    return values / baseline if claim.over is not None else values - baseline


def round_reached(metric: Metric, cell: Cell, other: Cell | None) -> Crossing | Later | None:
    """The first round at which the mean curve over seeds reaches a threshold, or the difference of two such rounds.

    Of two cells over the seeds that both have.
    """
    if not cell.measured(metric) or (other is not None and not other.measured(metric)):
        return None
    seeds = [seed for seed in cell.runs if other is None or seed in other.runs]
    if not seeds:
        return None
    own, *others = (one.of(seeds).crossing(metric) for one in (cell, other) if one is not None)
    return Later(own, *others) if others else own


def within(claim: Claim, quantity: Quantity, level: float, margin: float = 0.0) -> Verdict:
    """Whether the interval of a quantity, of this level, is within the claim's bounds, outside them, or both.

    An interval within the margin of the bound does not matter. A claim of two bounds has its margin in them.
    """
    low, high = quantity.interval(level)
    least = -math.inf if claim.least is None else claim.least
    most = math.inf if claim.most is None else claim.most
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    bound = [bound for bound in (least, most) if math.isfinite(bound)]
    if margin and len(bound) == 1 and bound[0] - margin <= low and high <= bound[0] + margin:
        return "no difference that matters"
    if least <= low and high <= most:
        return "holds"
    return "contradicted" if high < least or low > most else "undecided"


def _pair_labels(cell: Cell, other: Cell | None, joined: tuple[str, ...]) -> dict[str, str]:
    """The labels of a pair: `a against b` where the two differ, `best against b` on a joined axis."""
    labels = {axis: label for axis, label in cell.labels.items() if label and axis not in joined}
    against = {
        axis: f"{labels.get(axis, 'best')} against {label}"
        for axis, label in (other.labels if other else {}).items()
        if label and (cell.labels.get(axis) or label) != label
    }
    return labels | against


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
    """Whether a claim is about a figure or table of the paper that comes from runs; else it is from an analysis."""
    if not any(word in claim.section for word in ("Fig", "Table")):
        return False
    chosen = claim.where.get("panel") or claim.of.get("panel") or tuple(experiment.panels)
    return any(experiment.panels[name].analysis is None for name in chosen)


def tally(verdicts: Iterable[Verdict]) -> list[int | str]:
    """The number of each verdict, in the order of `VERDICTS`; empty instead of 0."""
    counts = Counter(verdicts)
    return [counts[verdict] or "" for verdict in VERDICTS]


def claim_counts(told: Sequence[Told]) -> list[list[int | str]]:
    """Rows of claims by verdict: of each paper, of all, then split by `is_trained`, and of other kinds."""
    own = of_papers(told)
    by_training = [(is_trained(one.experiment, one.result.claim), one) for one in own]
    rows = {paper: [one for one in own if one.paper == paper] for paper in PAPERS.values()}
    rows["all of the papers"] = own
    rows["- figures and tables, from runs"] = [one for trained, one in by_training if trained]
    rows["- theory, simulated participation, other analyses"] = [one for trained, one in by_training if not trained]
    rows |= {kind: [one for one in told if one.kind == kind] for kind in get_args(Kind)[1:]}
    return [[title, *tally(one.result.verdict for one in listed)] for title, listed in rows.items()]


def decided(told: Iterable[Told]) -> dict[str, int]:
    """Numbers of claims of the papers: `all` that are decided, those `tested` by an interval over seeds, those of them
    `by_interval`, which are decided, and how many of `all` and of these were reworded after a result.

    A claim that is tested by an interval has a false verdict with a probability of at most 5 %, whether it is then
    decided or not. An exact claim has none by chance.
    """
    results = [one.result for one in of_papers(told) if one.result.verdict not in OPEN]
    spans = [[place.quantity.interval() for place in result.places if place.quantity] for result in results]
    tested = [result for result, of in zip(results, spans, strict=True) if any(low < high for low, high in of)]
    by_interval = [result for result in tested if result.verdict in DECIDED]
    known = [result for result in results if result.verdict in DECIDED]
    counts = {"all": known, "tested": tested, "by_interval": by_interval}
    reworded = {f"{name}_reworded": [one for one in of if one.claim.since] for name, of in counts.items()}
    return {name: len(of) for name, of in (counts | reworded).items()}
