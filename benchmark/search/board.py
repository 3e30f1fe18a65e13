"""A board: methods that are tuned alike, several times over, before they are compared.

A board is an experiment whose `search` block has `finals`. Each seed of the block is an independent search: it draws
`samples` points, the same for all methods in the settings that they share, and runs each with this seed, in all rounds,
on data of which a fifth of the training samples is held out. The point with the best mean validation accuracy in the
last rounds is run with `finals` seeds of the grid: search s with the seeds finals * s, finals * s + 1, and so on. All
methods have the same draws and seeds, so all differences are paired by search.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.digest import RESULTS, digest, serialised
from rollcall.benchmark.config.dotted import put, put_all
from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.experiment import Experiment, Search, file_of, names
from rollcall.benchmark.config.grid import GridPoint, grid_points
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.search.cells import VALIDATION, refusal
from rollcall.benchmark.search.space import assignments, domain, draw_points

Spec = dict[str, Any]


RULED = ("rounds", "metric", "scheduler", "per")
"""What a board decides for all searches."""


class Board:
    """A board and its rule; see the module.

    Attributes:
        experiment, search: its file, and the `search` block of it.
        last: the number of last rounds over which scores and results are means.
        methods: by label, as an experiment file has them.
        patterns: the labels of all conditions, in the order of the file.
    """

    def __init__(self, experiment: Experiment, search: Search) -> None:
        self.experiment, self.search, self.name = experiment, search, experiment.name
        self.last = experiment.report.last_rounds
        self.methods: dict[str, Any] = dict(experiment.axes["algorithm"])
        self.patterns = list(self.conditions(next(iter(self.methods))))

    @classmethod
    def read(cls, name: str) -> "Board":
        """A board by its name, or by the path of its YAML file.

        Raises SettingError: there is no such board, or it lacks what its rule needs.
        """
        is_there = file_of(name).is_file() or name.endswith((".yaml", ".yml"))  # else it is no experiment
        experiment = Experiment.read(name) if is_there else None
        if experiment is None or experiment.search is None or experiment.search.finals is None:
            raise SettingError(f"board: {name!r} is not allowed; must be one of {listed(boards(), name)}")
        search, axes = experiment.search, experiment.axes
        if search.samples == "grid":
            raise SettingError(f"{name}: search.samples: grid is not allowed on a board; must be a number")
        if not axes.get("algorithm"):
            raise SettingError(f"{name}: grid.algorithm: is missing; must have the methods of the board")
        if named := [label for label in axes["algorithm"] if "/" in label]:
            raise SettingError(f"{name}: grid.algorithm: {named[0]!r} is not allowed; must be a name without /")
        fields = type(search).model_fields
        wrong = [f"search.{key}" for key in RULED if getattr(search, key) != fields[key].default]
        wrong += [f"search.space.{key}" for key, one in search.space.items() if isinstance(one, Mapping) or ":" in key]
        wrong += [] if experiment.report.metrics[0].name == "test/accuracy" else ["report.metrics"]
        if wrong:
            raise SettingError(
                f"{name}: {wrong[0]}: is not allowed on a board; searches are by validation accuracy over all rounds, "
                "results are test accuracies"
            )
        finals, need = len(axes.get("seed", ())), len(search.seeds) * experiment.search.finals
        if finals < need:
            must = f"must be at least {need}, {search.finals} for each search"
            raise SettingError(f"{name}: grid.seed: too few seeds, {finals}; {must}")
        board = cls(experiment, search)
        if any("rounds" not in spec for spec in board.conditions(next(iter(board.methods))).values()):
            raise SettingError(f"{name}: trial.rounds: is missing; it must be given")
        return board

    @cached_property
    def rule(self) -> str:
        """The digest of all that is the same for every method: settings, conditions, search, window of the mean."""
        experiment = self.experiment
        grid = {axis: values for axis, values in experiment.grid.items() if axis != "algorithm"}
        search = self.search.model_dump(mode="json")
        rule = {"trial": experiment.trial, "grid": grid, "search": search, "last": self.last, "is": RESULTS}
        # A new method has the conditions of the first panel. Without these entries an earlier rule stays what it was.
        first = next(iter(experiment.panels.values()))
        own = {axis: values for axis, values in first.grid.items() if axis != "algorithm"}
        rule |= {"panel": [first.trial, own]} if first.trial or own else {}
        rule |= {"overrides": [[one.when, one.set] for one in experiment.overrides]} if experiment.overrides else {}
        return digest(rule)

    def conditions(self, label: str, method: Any = None) -> dict[str, Spec]:
        """The settings of a method by condition. One that is not of the board has all conditions of the first panel."""
        return {name: point.spec for name, point in self.points(label, method).items()}

    def points(self, label: str, method: Any = None) -> dict[str, GridPoint]:
        """A point of the grid for each condition of a method."""
        experiment = self.experiment
        if method is not None and serialised(method) != serialised(self.methods.get(label)):
            first, panel = next(iter(experiment.panels.items()))
            experiment = experiment.model_copy(update={"panels": {first: panel}}).joined("algorithm", {label: method})
        points = grid_points(experiment.only({"algorithm": [label]}).varied({"seed": [0]}))
        # `only` also selects LABEL#2; another method of this label is the last one.
        wanted = label if experiment is self.experiment else points[-1].labels["algorithm"]
        return {
            "/".join(name for axis, name in point.labels.items() if axis not in ("panel", "algorithm")): point
            for point in points
            if point.labels["algorithm"] == wanted
        }

    def draws(self, space: Mapping[str, Any], search: int) -> list[dict[str, Any]]:
        """The points of a search, by dotted setting."""
        assert isinstance(self.search.samples, int)
        return draw_points(space, self.search.samples, self.search.seeds[search])

    def finals(self, search: int) -> list[int]:
        """The seeds of the final runs of a search."""
        count = self.search.finals or 0
        return [int(seed) for seed in self.experiment.axes["seed"].values()][count * search : count * (search + 1)]

    def sample(self, spec: Spec, point: Mapping[str, Any], search: int) -> Spec:
        """The settings of a sample's trial: it evaluates held-out training data, in the last rounds alone."""
        evaluation = {
            "every": spec["rounds"],
            "last": {"rounds": self.last, "every": validated(Evaluation, spec.get("evaluation", {})).step},
            "splits": ["validation"],
        }
        held = put(spec, "task.validation", VALIDATION)
        return put_all(held, point) | {"seed": self.search.seeds[search], "evaluation": evaluation}

    def final(self, spec: Spec, point: Mapping[str, Any], seed: int) -> Spec:
        """The settings of a final run's trial."""
        return put_all(spec, point) | {"seed": seed}

    def space(self, label: str, method: Any, text: str = "") -> dict[str, Any]:
        """The space of a method: the shared settings that it allows, and at most one option of its own.

        Args:
            label: of the method.
            method: as an experiment file has it.
            text: its option and the domain, `OPTION=DOMAIN`; by default its `search_space`.

        Raises SettingError: it has no such option, does not allow the values, or would search more than one.
        """
        spec = next(iter(self.conditions(label, method).values()))
        # A method with a server step of its own allows no server rate.
        shared = self.search.space
        allowed = {path: one for path, one in shared.items() if refusal(spec, path, domain(path, one)) is None}
        text = text or getattr(read("algorithm", method).build(), "search_space", "")
        own = {
            path if path.startswith("algorithm.") else f"algorithm.{path}": one
            for path, one in (assignments(text) if text else {}).items()
        }
        if len(own) > 1:
            raise SettingError(f"space: {', '.join(own)} is not allowed; must be at most one option of the method")
        for path, one in own.items():
            if path.endswith(".name"):
                raise SettingError(
                    f"space: {path} is not allowed; must be an option of the method, not the method itself"
                )
            if (name := path.removeprefix("algorithm.")) in shared:
                raise SettingError(f"space: {name} is not allowed; the board sets it for all methods, {shared[name]}")
            if (error := refusal(spec, path, domain(path, one))) is not None:
                raise error
        return allowed | own


def boards() -> list[str]:
    """The names of the suite's boards."""
    return [name for name in names() if Experiment.read(name).is_board]


def best(scores: Sequence[float | None]) -> int | None:
    """The number of the best sample, of equal ones the first; None if all diverged."""
    finite = {index: score for index, score in enumerate(scores) if score is not None}
    return max(finite, key=finite.__getitem__, default=None)
