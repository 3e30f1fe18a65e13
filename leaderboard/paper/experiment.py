"""An experiment of a paper: what runs, and what is claimed, printed and found.

What runs is in `<table>.yaml`, which `rollcall.benchmark.config.experiment` reads. The rest is in `<table>.claims.yaml`
beside it, which only this module reads. An experiment of the user's own may have both.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from rollcall.benchmark.config.axes import Labels, check_labels, is_number
from rollcall.benchmark.config.base import Settings, load_yaml
from rollcall.benchmark.config.errors import SettingError, check_one_of
from rollcall.benchmark.config.experiment import Experiment, FileName, Variant
from rollcall.benchmark.config.metric import Metric, MetricName

Tag = Literal["paper", "released code", "ours"]
"""Who states a claim: the paper's text, the authors' released code, or a check of our own."""


class Size(Settings):
    """The least size of the runs that decide a claim."""

    rounds: PositiveInt | None = Field(None, description="least number of rounds; by default the planned ones")
    seeds: PositiveInt | None = Field(None, description="least number of seeds; by default the planned ones")
    looks: PositiveInt = Field(1, description="looks at the verdicts with other seeds or rates: level 1 - 0.05 / looks")


class Cause(Settings):
    """Why a claim does not hold: what was shown, with the command that shows it, and what is supposed."""

    kind: Literal["the statement as printed", "the paper's code", "an unpublished setting", "unknown"]
    shown: str = Field("", description="what was shown, in words")
    command: str = Field("", description="the command that shows it")
    supposed: str = Field("", description="what is supposed, but not shown")


class Reading(Settings):
    """A way to read what the paper does not print about its data or settings."""

    says: str = Field(description="what is read, in words")
    variant: str = Field("", description="the variant that has its cells; by default the experiment itself")
    where: Labels = Field({}, description="its cells, besides the `where` of the claim")
    metric: MetricName | None = Field(None, description="by default that of the claim")
    fitted: bool = Field(False, description="chosen so that a printed number is met; it decides nothing")
    rates: bool = Field(False, description="no reading, but other rates that the search cannot tell from the best")


Over = Literal["final", "time-average", "maximum"]
"""Which number of a run's evaluations a claim is about: the last rounds, the mean of all, or the largest."""


class Claim(Settings):
    """A statement of the paper, and the quantity that decides it.

    The quantity is the final value of each cell in `of`. With `minus` it is the difference to the matching cell in
    `minus`, with `over` the ratio to the matching cell in `over`: the cell whose other labels are equal. With `along`
    it is the difference between neighbours on that axis. With `slope` it is the exponent of a power of that axis:
    the slope of the logarithm of the value over the logarithm of the axis, seed by seed. The claim holds if the
    quantity lies between `least` and `most` everywhere.

    With `readings` it is decided under each of them. If one decided reading holds and another contradicts, or if all
    readings miss the printed number that identifies the paper's data (`data`) by more than a quarter of it, it is not
    testable.
    """

    says: str = Field(description="the statement, in our words")
    tag: Tag = Field("paper", description="who states it: paper, released code, or ours")
    statement: Annotated[str, Field(pattern=r"^[A-Z]{3}-\d\d$")] | None = Field(
        None, description="the id of the paper's sentence, such as PBC-30"
    )
    section: str = Field("", description="section, figure or file in which it is stated")
    where: Labels = Field({}, description="the cells that the claim is about; by default all")
    of: Labels = Field({}, description="the cells whose value is compared; by default all of them")
    minus: Labels | None = Field(None, description="cells whose value is subtracted")
    over: Labels | None = Field(None, description="cells whose value is divided by")
    along: str | None = Field(None, description="axis whose neighbours are compared, in the order of the file")
    slope: str | None = Field(None, description="axis over which the value is a power; the quantity is the exponent")
    either: tuple[str, ...] = Field((), description="axes of `of`; one cell of them is enough, intervals allow for it")
    metric: MetricName | None = Field(None, description="by default the report's first")
    against: MetricName | None = Field(None, description="metric of `minus` or `over`; by default the same")
    at: PositiveInt | None = Field(None, description="the round to look at; by default the report's last rounds")
    quantity: Over = Field("final", description="the final value, or one over all evaluations")
    per: MetricName | None = Field(None, description="`at` is a value of this metric, such as `cost/floats_up`")
    over_round: PositiveInt | Literal["final"] | None = Field(
        None, description="the value is divided by the run's own value after this round, or by its final value"
    )
    least: float | None = Field(None, description="lower bound of the quantity")
    most: float | None = Field(None, description="upper bound of the quantity")
    printed: float | dict[str, float] | None = Field(None, description="as the paper prints it; or by label of an axis")
    margin: float | None = Field(
        None, gt=0, description="distance from the bound that does not matter; by default a quarter of `printed`"
    )
    size: Size | None = Field(None, description="size of runs that decides it; by default that of the experiment")
    readings: dict[str, Reading] = Field({}, description="ways to read what the paper does not print, by name")
    identifies: bool = Field(
        False,
        description="a reading that misses its printed number by more than a quarter has other data than the paper",
    )
    data: str = Field(
        "",
        description="the experiment whose claim with `identifies` tells whether these are its data; a reading `own, "
        "other` has those of its `own`",
    )
    erratum: str = Field("", description="the formula is false as printed: what remains true; the verdict is erratum")
    since: str = Field("", description="date on which it was reworded after a result had been seen")
    before: str = Field("", description="its wording before that date")
    cause: Cause | None = Field(None, description="why it does not hold, if that is known")

    @property
    def last_round(self) -> int | None:
        """The round at which the quantity is known; None if it needs all rounds."""
        return None if self.over_round == "final" or self.per is not None else self.at

    @property
    def joined(self) -> tuple[str, ...]:
        """The axes whose cells have one quantity together."""
        return self.either or ((self.slope,) if self.slope else ())

    @property
    def of_paper(self) -> dict[str, Reading]:
        """The readings of the paper, without other rates; if there are none, the experiment's own cells, named ""."""
        found = {name: reading for name, reading in self.readings.items() if not reading.rates}
        return found or {"": Reading(says="")}

    @model_validator(mode="after")
    def _is_decidable(self) -> "Claim":
        if self.least is None and self.most is None:
            raise SettingError("least: is missing; a claim must have least, most or both")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise SettingError(f"least: {self.least:g} is not allowed; must be at most `most`, {self.most:g}")
        if sum(option is not None for option in (self.minus, self.over, self.along)) > 1:
            raise SettingError("minus: is not allowed beside over or along; must be one of the three")
        if self.against is not None and self.minus is None and self.over is None:
            raise SettingError("against: is not allowed without minus or over")
        if self.margin is not None and self.least is not None and self.most is not None:
            raise SettingError("margin: is not allowed beside least and most; two bounds have it in them")
        if self.per is not None and self.at is None:
            raise SettingError("per: is not allowed without at")
        if self.at is not None and self.quantity != "final":
            raise SettingError("at: is not allowed beside a time-average or a maximum")
        if self.over_round is not None and self.quantity != "final":
            raise SettingError("over_round: is not allowed beside a time-average or a maximum")
        if self.tag != "ours" and not self.section:
            raise SettingError(f"section: is missing; a claim of the {self.tag} must say where it is stated")
        if self.tag == "paper" and self.statement is None:
            raise SettingError("statement: is missing; a claim of the paper must have the id of its sentence")
        return self


class Reported(Settings):
    """Numbers that the paper prints, from a file in `leaderboard/reported`."""

    file: str = Field(description="name of the file, without .csv")
    axes: dict[str, str] = Field(description="the file's column of labels, by axis of the grid or by `panel`")
    metric: str = Field(description="the metric of a row; {column} stands for the row's entry in that column")
    value: str = Field(description="column of the number")
    spread: str | None = Field(None, description="column of its standard deviation")
    scale: float = Field(1.0, description="factor that converts the numbers; 0.01 for percent")


class PaperVariant(Variant):
    """A variant with claims about its results."""

    claims: tuple[Claim, ...] = Field((), description="claims about the results of this variant")


class PaperExperiment(Experiment):
    """An experiment with what is claimed of it: the keys of `<table>.claims.yaml`, besides those of `<table>.yaml`."""

    choices: dict[str, str] = Field({}, description="settings that the paper does not state, and why they are as here")
    variants: Mapping[FileName, PaperVariant] = Field({}, description="of each variant that has claims, `claims`")
    reported: tuple[Reported, ...] = Field((), description="numbers that the paper prints")
    decides: Size = Field(Size(), description="size of runs that decides a claim; by default the planned one")
    data_missing: tuple[Labels, ...] = Field((), description="parts of the grid whose data set the maintainers lack")
    claims: tuple[Claim, ...] = Field((), description="claims of the paper that are checked")
    findings: tuple[str, ...] = Field((), description="what the results show besides the claims, with the evidence")

    @classmethod
    def _content(cls, path: Path) -> Any:
        """The content of its file and of the file of claims beside it."""
        content, beside = load_yaml(path), path.with_suffix(".claims.yaml")
        if not isinstance(content, dict) or not beside.is_file():
            return content
        told = load_yaml(beside) or {}
        if not isinstance(told, dict):
            raise SettingError(f"{beside.name}: {told!r} is not allowed; must be a mapping, such as `claims: [...]`")
        of_variants = told.pop("variants", None) or {}
        allowed = cls.model_fields.keys() - Experiment.model_fields.keys()
        for key in told.keys() - allowed:
            raise SettingError(f"{beside.name}: {key} is not allowed; must be one of {', '.join(sorted(allowed))}")
        variants = content.get("variants", {})
        for name, own in of_variants.items():
            variants[name] = (variants.get(name) or {}) | own  # one of the base has its settings there
        return content | told | ({"variants": variants} if variants else {})

    @model_validator(mode="after")
    def _claims_mention_known_labels(self) -> Self:
        shown = self.shown
        numeric = [axis for axis, labels in shown.items() if all(map(is_number, labels))]
        parts: dict[str, PaperExperiment | PaperVariant] = {"": self}
        parts |= {f"variants.{name}.": variant for name, variant in self.variants.items()}
        for path, part in parts.items():
            for number, claim in enumerate(part.claims):
                at = f"{path}claims.{number}"
                named = [claim.metric or self.report.metrics[0], *(one.metric for one in claim.readings.values())]
                if any(one is not None and one.threshold is not None for one in named):  # a round is their quantity
                    for key in ("over", "slope", "at", "per", "against", "over_round"):
                        if getattr(claim, key) is not None:
                            raise SettingError(f"{at}.{key}: is not allowed beside a threshold")
                    if claim.quantity != "final":
                        raise SettingError(f"{at}.quantity: is not allowed beside a threshold")
                for label in claim.printed if isinstance(claim.printed, dict) else ():
                    check_one_of(f"{at}.printed", label, [one for labels in shown.values() for one in labels])
                for key in ("where", "of", "minus", "over"):
                    check_labels(f"{at}.{key}", getattr(claim, key) or {}, shown)
                chosen: list[tuple[str, str | None, Iterable[str]]] = [
                    *(("either", axis, claim.of) for axis in claim.either),
                    ("along", claim.along, shown),
                    ("slope", claim.slope, numeric),
                ]
                for name, reading in claim.readings.items():
                    check_labels(f"{at}.readings.{name}.where", reading.where, shown)
                    chosen.append((f"readings.{name}.variant", reading.variant or None, self.variants))
                for key, text, allowed in chosen:
                    if text is not None:
                        check_one_of(f"{at}.{key}", text, allowed)
        for number, labels in enumerate(self.data_missing):
            check_labels(f"data_missing.{number}", labels, shown)
        return self

    @property
    def judged(self) -> tuple[Claim, ...]:
        """The claims about its results: of a variant its own."""
        return self.variants[self.variant].claims if self.variant else self.claims

    def named_metrics(self) -> dict[str, Sequence[Metric]]:
        """The metrics of the report and of all claims, also those of variants, by the setting that names them."""
        claims = [*self.claims, *(claim for variant in self.variants.values() for claim in variant.claims)]
        of_claims = {name: [getattr(claim, name) for claim in claims] for name in ("metric", "against", "per")}
        of_claims["readings"] = [reading.metric for claim in claims for reading in claim.readings.values()]
        return super().named_metrics() | {f"claims: {name}": [*filter(None, of)] for name, of in of_claims.items()}


FOLDER = Path(__file__).parents[1] / "reported"


@dataclass(frozen=True)
class Printed:
    """A number in a paper's table, in our units. It belongs to the cells that have its labels, by axis.

    `sd` is the standard deviation over seeds, if it is printed. Where our copy of the paper prints one number for
    several methods, `value` is None, `shared` the number as it is printed, and `among` the labels.
    """

    labels: dict[str, str]
    metric: Metric
    value: float | None
    sd: float | None
    shared: str = ""
    among: tuple[str, ...] = ()

    def of(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(axis) == label for axis, label in self.labels.items())

    @property
    def note(self) -> str:
        return f"the copy prints {self.shared} once for {' or '.join(self.among)}" if self.among else ""


def printed(experiment: PaperExperiment) -> list[Printed]:
    """All printed numbers that an experiment is compared with.

    A label `this|that` in the file means that the copy prints one number for both, so that neither has one.
    """
    numbers = []
    for source in experiment.reported:
        with (FOLDER / f"{source.file}.csv").open(newline="") as file:
            numbers += [number for row in csv.DictReader(file) for number in _numbers(source, row)]
    return numbers


def printed_for(labels: Mapping[str, str], metric: Metric, numbers: Sequence[Printed]) -> Printed | None:
    return next((number for number in numbers if number.metric == metric and number.of(labels)), None)


def _numbers(source: Reported, row: Mapping[str, str]) -> list[Printed]:
    """The number of a row, if it has one; several without a value if it is shared by labels."""
    metric = Metric(source.metric.format(**row))
    never = row[source.value] == "-" and metric.threshold is not None  # the paper's sign for a value never reached
    if row[source.value] in ("", "-") and not never:
        return []
    value = math.inf if never else float(row[source.value]) * source.scale
    sd = float(row[source.spread]) * source.scale if source.spread and row[source.spread] else None
    names = [row[column].split("|") for column in source.axes.values()]  # on each axis
    alternatives = [dict(zip(source.axes, labels, strict=True)) for labels in product(*names)]
    if len(alternatives) == 1:
        return [Printed(alternatives[0], metric, value, sd)]
    shared = metric.text(value) if sd is None else f"{metric.text(value)} ± {metric.text(sd)}"
    among = next(tuple(labels) for labels in names if len(labels) > 1)
    return [Printed(labels, metric, None, None, shared, among) for labels in alternatives]
