"""The answer of a search: `tuned.yaml`, with the best settings of each cell, and the overrides that it stands for."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, Override, Search
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.text import dumped
from rollcall.benchmark.federation.run_folder import replacing

E = TypeVar("E", bound=Experiment)


class How(Search):
    """How a search was made: the block of an experiment file that repeats it, and the names of Tune's objects."""

    date: str
    mode: str
    search: str
    scheduler: str = "none"  # type: ignore[assignment]


class Best(Settings):
    """The best sample of a cell.

    Attributes:
        when: the labels of the cell by axis.
        settings: by dotted name; `at_edge` has those whose value lies at the edge of the space.
        score, spread: mean and standard deviation over the seeds of the search; no spread for one seed. The score is
            optimistic, because the sample was selected by it; the spread does not say by how much.
        rounds: of a sample that is never stopped.
        samples, failed: the samples of the cell, and those of them that failed or diverged.
        gradients: that the clients computed for all samples of the cell.
        points: the settings of all samples.
    """

    when: dict[str, str]
    settings: dict[str, Any]
    score: float
    spread: float | None = None
    rounds: int
    samples: int
    failed: int = 0
    gradients: float
    at_edge: tuple[str, ...] = ()
    points: tuple[dict[str, Any], ...] = ()
    how: How


class Tuned(Settings):
    """The answers of searches: the content of `tuned.yaml`, or of `tuned-VARIANT.yaml`.

    Attributes:
        experiment, variant: what was searched; no variant: the experiment as the paper states it.
        best: the answer of each cell, those of the last search at the end.
    """

    experiment: str
    variant: str = ""
    best: dict[str, Best]

    @classmethod
    def read(cls, file: Path) -> "Tuned":
        """The content of a file that `rollcall tune` wrote; anything else is refused."""
        content = load_yaml(file)
        if not isinstance(content, dict):
            raise SettingError(f"{file}: holds no settings; must be a file that rollcall tune wrote")
        try:
            return validated(cls, content)
        except SettingError as error:
            raise SettingError(f"{file}: {error}") from None

    def write(self, file: Path) -> None:
        """Write the content to a file, which is replaced as a whole."""
        file.parent.mkdir(parents=True, exist_ok=True)
        text = dumped(self.model_dump(mode="json"), allow_unicode=True)
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")

    def after(self, earlier: "Tuned") -> "Tuned":
        """These answers after those of earlier searches, without the cells that these cover."""
        kept = {
            name: one
            for name, one in earlier.best.items()
            if name not in self.best and not any(new.when.items() <= one.when.items() for new in self.best.values())
        }
        return self.model_copy(update={"best": kept | self.best})

    def overrides(self, experiment: Experiment, known: Collection[str] = ()) -> tuple[Override, ...]:
        """The settings of each cell as overrides of an experiment. Axes that it does not have are left out.

        Two cells that differ only in such an axis are refused. `known` are axes that it will have.
        """
        axes = {"panel", *experiment.axes, *known}
        result: dict[tuple[tuple[str, str], ...], Override] = {}
        for name, one in self.best.items():
            when = {axis: label for axis, label in one.when.items() if axis in axes}
            if tuple(when.items()) in result:
                raise SettingError(f"tuned: {name} cannot be told from another cell by an axis of {experiment.name}")
            labels: dict[str, tuple[str, ...]] = {axis: (label,) for axis, label in when.items()}
            result[tuple(when.items())] = Override(
                when=labels, set=one.settings, searched=self.experiment, found=found([one])
            )
        return tuple(result.values())

    def applied(self, experiment: E, known: Collection[str] = ()) -> E:
        """The experiment with these settings; refused if the search was made for another one or another variant."""
        searched, asked = (
            f"{name} --variant {variant}" if variant else name
            for name, variant in ((self.experiment, self.variant), (experiment.home, experiment.variant))
        )
        if searched != asked:
            raise SettingError(f"tuned: the file is of {searched}; must be of {asked}")
        return experiment.model_copy(update={"overrides": experiment.overrides + self.overrides(experiment, known)})

    def check_cells(self, experiment: Experiment) -> int:
        """The number of grid points that no answer is for; refused if no point has one, as at other rounds."""
        overrides = self.overrides(experiment)
        having = [any(one.is_for(point.labels) for one in overrides) for point in grid_points(experiment)]
        if not any(having):
            raise SettingError(f"tuned: the file has settings of {', '.join(self.best)}; none of them is run")
        return having.count(False)

    def check_seeds(self, experiment: Experiment) -> None:
        """Refuse an experiment that has seeds of the search: the settings were chosen with them."""
        used = sorted({seed for seed in seeds_of(experiment) for one in self.best.values() if seed in one.how.seeds})
        if used:
            raise SettingError(
                f"seeds: {used[0]} is not allowed with --tuned; the settings were chosen with this seed. Use others"
            )


def seeds_of(experiment: Experiment) -> list[Any]:
    """All seeds of the trials of an experiment."""
    return list(dict.fromkeys(point.seed for point in grid_points(experiment)))


def found(answers: Sequence[Best]) -> str:
    """How the settings of cells of one search, at least one, were found, in a sentence."""
    how = answers[0].how
    counts = ([getattr(one, key) for one in answers] for key in ("samples", "rounds"))
    samples, rounds = (" to ".join(map(str, dict.fromkeys((min(own), max(own))))) for own in counts)
    stops = "" if how.scheduler == "none" else f", {how.scheduler}"
    return (
        f"rollcall tune, {how.date}: best of {samples} samples by {how.metric.name}, {how.search} search{stops}, "
        f"{rounds} rounds, seed{'s' if len(how.seeds) > 1 else ''} {', '.join(map(str, how.seeds))}"
    )
