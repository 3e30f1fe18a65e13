"""An experiment: the grid of trials behind one table or figure, read from a YAML file.

`Experiment.read` validates the file. `grid_points` of `grid.py` gives the trials of its grid with their labels.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeInt, PositiveInt, PrivateAttr, model_validator

from rollcall.benchmark.config.axes import Axis, Grid, Labels, check_labels, labelled, numbered, selected, union
from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.digest import serialised
from rollcall.benchmark.config.dotted import in_long_form, merged
from rollcall.benchmark.config.errors import SettingError, check_one_of, listed, near
from rollcall.benchmark.config.metric import OVER, Metric, MetricName, Metrics
from rollcall.benchmark.config.trial import Analysis, Trial

LIBRARY = Path(__file__).parents[1] / "experiments"


def is_setting(axis: str) -> bool:
    """Whether an axis is a setting, `algorithm.beta`; else, as `p2`, its values map dotted settings to values."""
    first = axis.partition(".")[0]
    return first in Trial.model_fields or first in Analysis.model_fields


def folder_name(name: str) -> str:
    """Raise if a name leads out of the store."""
    if name.startswith("/") or "\\" in name or not name.isprintable() or {".", ".."} & set(name.split("/")):
        raise ValueError("must be a relative path without . or .., such as mine or paper/table1")
    return name


def file_name(name: str) -> str:
    """Raise if a name cannot be part of the name of a file."""
    if "/" in folder_name(name):
        raise ValueError("must be a name without /, such as as_released")
    return name


FolderName = Annotated[str, AfterValidator(folder_name)]
FileName = Annotated[str, AfterValidator(file_name)]


class Report(Settings):
    """What the leaderboard shows: a table of final values and a figure of curves."""

    metrics: Metrics = Field(
        {"test/accuracy": "max"},
        validate_default=True,
        min_length=1,
        description="metrics that have a column each, and which values are better: max, min or zero; the first ranks. "
        "Accuracies, losses and biases may be a list of names",
    )
    last_rounds: PositiveInt = Field(
        1, description="a final value is the mean over the evaluations of this many last rounds"
    )
    columns: tuple[str, ...] = Field((), description="axes whose labels head the columns; by default none")
    pictures: tuple[str, ...] = Field(
        (), description="axes besides the panel with a plot for each label; by default those of `columns`"
    )
    overlay: bool = Field(False, description="draw all panels into the same plots")
    drawn: tuple[MetricName, ...] = Field(
        (),
        description="metrics that have a plot each; by default the first metric that a panel measured. Another model's "
        "metric, such as test/accuracy/server, has a line in the plot of test/accuracy",
    )
    against: tuple[MetricName, ...] = Field(
        (), description="metrics on the x axis of a plot each, which has a point for each cell instead of curves"
    )
    x: str = Field(
        "round", description="the x axis of the curves: `round`, `gradients`, `floats`, `seconds`, or an axis"
    )
    log: tuple[Literal["x", "y"], ...] = Field(
        (),
        description="axes of the figure with a logarithmic scale; with y, claims about a single cell are judged by "
        "geometric means",
    )


Scheduler = Literal["none", "asha", "median", "hyperband"]


class Search(Settings):
    """A search of an experiment's hyper-parameters. It is part of no digest: runs do not depend on it."""

    space: dict[str, Any] = Field(
        min_length=1,
        description="domains by dotted setting, such as `local.lr: loguniform(1e-3,1)`; below the name of a method, "
        "those of this method alone",
    )
    samples: PositiveInt | Literal["grid"] = Field(30, description="samples of each cell; `grid`: all combinations")
    rounds: PositiveInt | None = Field(None, description="rounds of a sample; by default those of its cell")
    seeds: tuple[NonNegativeInt, ...] = Field((1000,), min_length=1, description="seeds; none of the experiment's")
    metric: MetricName = Field(Metric("validation/accuracy"), description="metric that judges samples")
    scheduler: Scheduler = Field("none", description="which of Tune's schedulers stops bad samples early")
    per: tuple[str, ...] = Field((), description="axes with a search of their own; by default all")
    finals: PositiveInt | None = Field(
        None,
        description="makes the experiment a board: each of `seeds` is an independent search, and its answer runs with "
        "so many further seeds of the grid",
    )


class Panel(Settings):
    """A part of a table or figure, with settings and axes of its own."""

    title: str = Field("", description="heading of the panel")
    trial: dict[str, Any] = Field({}, description="settings that replace or extend those of the experiment's `trial`")
    analysis: Annotated[dict[str, Any] | None, BeforeValidator(in_long_form)] = Field(
        None, description="an analysis to compute instead of training: its name, or a mapping of `name` and options"
    )
    grid: dict[str, Axis] = Field({}, description="axes that replace or extend those of the experiment's `grid`")


class Override(Settings):
    """Settings for a part of the grid, such as the learning rate of one method."""

    when: Labels = Field(
        description="the part of the grid: for each axis except `seed`, or for `panel`, the labels it applies to"
    )
    set: dict[str, Any] = Field(description="the new values, by dotted setting")
    searched: str = Field(
        "", description="the experiment whose results the values are the best of; comparisons then say so"
    )
    found: str = Field("", description="how the values were found")

    def meets(self, panel: str, grid: Grid) -> bool:
        """Whether it applies to a point of the panel with this grid."""
        axes = {**grid, "panel": {panel: None}}
        return all(not set(labels).isdisjoint(axes.get(axis, ())) for axis, labels in self.when.items())

    def is_for(self, labels: Mapping[str, str]) -> bool:
        """Whether it applies to the grid point with these labels."""
        return all(labels.get(axis) in names for axis, names in self.when.items())


class Variant(Settings):
    """A named variant of the experiment, such as `as_released`: what it changes."""

    about: str = Field(description="what the variant changes, and why")
    trial: dict[str, Any] = Field({}, description="settings that replace or extend those of the experiment's `trial`")
    grid: dict[str, Axis] = Field({}, description="new values of labels on the axes; new labels are added")
    overrides: tuple[Override, ...] = Field((), description="overrides that apply after those of the experiment")


class Experiment(Settings):
    """The content of an experiment file.

    `trial` holds the settings that all trials share. `grid` maps dotted settings (`algorithm`, `seed`, `local.lr`) to
    their values; each panel consists of the trials for all combinations. An axis that is not a setting (`p2`) maps each
    label to several dotted settings, so that panels with different settings can share the axis.
    """

    name: FolderName = Field(description="name of the experiment and of its folder; by default that of the file")
    title: str = Field(description="heading of its table and figure")
    about: str = Field("", description="what the experiment shows, in a few sentences")
    source: str = Field("", description="the paper, and its table or figure; empty for an experiment of your own")
    base: FolderName = Field(
        "",
        description="another experiment whose file this one starts from and whose runs it shares; keys of this file "
        "replace those of the base, those of `grid` axis by axis, those of `variants` only for the variants named",
    )
    subset: Labels = Field({}, description="for axes of the base, the labels to keep")
    trial: dict[str, Any] = Field({}, description="settings that all trials share")
    grid: dict[str, Axis] = Field({}, description="the axes: for each dotted setting, its values")
    panels: dict[str, Panel] = Field({"": Panel()}, min_length=1, description="parts of the table or figure, by name")
    overrides: tuple[Override, ...] = Field((), description="settings for a part of the grid")
    variants: Mapping[FileName, Variant] = Field({}, description="named variants, such as `as_released`")
    report: Report = Field(Report(), description="what the table and the figure show")
    search: Search | None = Field(None, description="what `rollcall tune` searches, and how")
    _variant: str = PrivateAttr("")

    @model_validator(mode="after")
    def _mentions_known_labels(self) -> Self:
        if not self.trial and not any(panel.analysis or panel.trial for panel in self.panels.values()):
            raise SettingError("trial: is missing; it must be given")
        if "panel" in self.axes:
            raise SettingError("grid: 'panel' is not allowed; must be another name, as panels have this one")
        shown = self.shown
        parts: dict[str, Experiment | Variant] = {"": self}
        parts |= {f"variants.{name}.": variant for name, variant in self.variants.items()}
        for path, part in parts.items():
            for axis in part.grid:
                check_one_of(f"{path}grid", axis, self.axes)
            for number, override in enumerate(part.overrides):
                check_labels(f"{path}overrides.{number}.when", override.when, shown)
                if not any(override.meets(name, self._grid_of(name)) for name in self.panels):
                    raise SettingError(f"{path}overrides.{number}.when: is met by no point of the grid")
        for field, axes in (("columns", self.report.columns), ("pictures", self.report.pictures)):
            for axis in axes:
                check_one_of(f"report.{field}", axis, shown)
        check_one_of("report.x", self.report.x, [*OVER, *shown])
        return self

    @classmethod
    def read(cls, name: str, derived: Sequence[Path] = ()) -> Self:
        """An experiment of the suite by its name, or any experiment by the path of its YAML file.

        `derived` are the files that have it as their base; none of them may be its own.

        Raises SettingError: the experiment does not exist, or one of its keys is not allowed.
        """
        path = file_of(name)
        if not path.is_file():
            allowed = f"must be a name of `rollcall list experiment`, or a .yaml file{near(names(), name)}"
            if Path(name).suffix in (".yaml", ".yml"):
                allowed = f"there is no file {path.resolve()}"
            raise SettingError(f"experiment: {name!r} is not allowed; {allowed}")
        content = cls._content(path)
        if not isinstance(content, dict):
            raise SettingError(f"{path}: holds no settings; must have title, trial and grid")
        own: dict[str, Any] = {"name": path.stem if path == Path(name) else name} | content
        try:
            spec = own
            if "base" in content:
                source, derived = content["base"], [*derived, path.resolve()]
                if not isinstance(source, str) or file_of(source).resolve() in derived:
                    raise SettingError(f"base: {source!r} is not allowed; must be another experiment's name or file")
                base = cls.read(source, derived).model_dump()
                if isinstance(own.get("grid"), dict):
                    base["subset"] = {axis: one for axis, one in base["subset"].items() if axis not in own["grid"]}
                    own["grid"] = base["grid"] | own["grid"]  # the other axes stay
                if isinstance(own.get("variants"), dict):  # those named stay, with what the base says of them
                    own["variants"] = {
                        name: base["variants"].get(name, {}) | change if isinstance(change, dict) else change
                        for name, change in own["variants"].items()
                    }
                spec = base | own | {"base": base["base"] or base["name"]}  # a path would be no name of a folder
            return validated(cls, spec)._of_subset()
        except SettingError as error:
            raise SettingError(f"{path.name}: {error}") from None

    @classmethod
    def _content(cls, path: Path) -> Any:
        return load_yaml(path)

    @property
    def home(self) -> str:
        """The name of the experiment that holds its runs: its own, or that of its base."""
        return self.base or self.name

    @property
    def is_board(self) -> bool:
        """Whether methods are entered on it: it has searches with final runs."""
        return self.search is not None and self.search.finals is not None

    @property
    def variant(self) -> str:
        """The variant that this is, by `as_`; empty for the experiment as the paper states it."""
        return self._variant

    def named_metrics(self) -> dict[str, Sequence[Metric]]:
        """The metrics of the report, by the setting that names them."""
        return {f"report.{field}": getattr(self.report, field) for field in ("metrics", "drawn", "against")}

    @property
    def metrics(self) -> list[str]:
        """The columns of a run's history that are read."""
        named = chain.from_iterable(self.named_metrics().values())
        columns = (column for metric in named for column in (metric.column, metric.over))
        return [column for column in dict.fromkeys([*columns, OVER.get(self.report.x, "round")]) if column != "round"]

    @property
    def shown(self) -> Grid:
        """The axes of a cell, which is a mean over seeds: the panel and those of all grids, variants included."""
        axes = union(self.axes, *(variant.grid for variant in self.variants.values()))
        return {"panel": dict.fromkeys(self.panels)} | {axis: axes[axis] for axis in axes if axis != "seed"}

    def _grid_of(self, panel: str) -> Grid:
        """The axes of a panel, variants included."""
        own = self.grid | self.panels[panel].grid
        every = union(own, *(variant.grid for variant in self.variants.values()))
        return {axis: every[axis] for axis in own}

    @property
    def axes(self) -> Grid:
        """The axes of all panels, each with its values by label; of a label with several values, the last one."""
        return union(self.grid, *(panel.grid for panel in self.panels.values()))

    def as_(self, variant: str) -> Self:
        """The experiment with the changes of a variant. Raises SettingError: the experiment has no such variant."""
        if variant not in self.variants:
            allowed = listed(self.variants, variant) if self.variants else "left out, the experiment has none"
            raise SettingError(f"variant: {variant!r} is not allowed; must be {allowed}")
        other = self.variants[variant]
        changed = self._with_grids(
            lambda grid: {axis: values | other.grid.get(axis, {}) for axis, values in grid.items()}
        )
        panels = {
            name: panel.model_copy(update={"trial": merged(panel.trial, other.trial)})
            for name, panel in changed.panels.items()
        }
        changed = changed.model_copy(update={"panels": panels, "overrides": self.overrides + other.overrides})
        changed = changed._of_subset()  # the variant's grid may name labels outside the subset
        changed._variant = variant
        return changed

    def _of_subset(self) -> Self:
        return self.only({axis: list(labels) for axis, labels in self.subset.items()})

    def joined(self, axis: str, values: Iterable[Any]) -> Self:
        """The experiment with more values on an axis. If no grid has the axis, it starts with the value in `trial`.

        A value whose label another one has becomes `LABEL#2`: it takes the place of none.
        """
        more = labelled(values)

        def beside(own: Mapping[str, Any]) -> dict[str, Any]:
            whole = dict(own)
            for label, value in more.items():
                same = serialised(value)
                free = (one for one in numbered(label) if one not in whole or serialised(whole[one]) == same)
                whole[next(free)] = value
            return whole

        joined = self._with_grids(lambda grid: grid | {axis: beside(grid[axis])} if axis in grid else grid)
        if axis in self.grid or joined.panels != self.panels:
            return joined
        start = labelled([self.trial[axis]] if axis in self.trial else [])
        return self.model_copy(update={"grid": self.grid | {axis: beside(start)}})

    def varied(self, settings: Mapping[str, Sequence[Any]]) -> Self:
        """The experiment with these values of these dotted settings; a new axis varies fastest.

        Raises SettingError: `METHOD:SETTING` names no method of the grid, or has several values.
        """
        own: list[Override] = []
        for path, values in settings.items():
            method, colon, setting = path.rpartition(":")
            if colon and len(values) > 1:
                raise SettingError(f"set {path}: several values are not allowed; must be one")
            if colon:
                labels = tuple(selected(f"set {path}", self.axes.get("algorithm", {}), [method]))
                own.append(Override(when={"algorithm": labels}, set={setting: values[0]}))
        axes = {path: labelled(values) for path, values in settings.items() if ":" not in path}
        of_parts = ((path, value) for path, values in axes.items() for value in values.values())
        parts = {f"{path}.{key}" for path, value in of_parts if isinstance(value, Mapping) for key in value}
        given = axes.keys() | parts

        def others(chosen: Any) -> Any:
            """Values by dotted setting without those that are varied."""
            whole = not isinstance(chosen, Mapping)
            return chosen if whole else {path: value for path, value in chosen.items() if path not in given}

        varied = self._with_grids(
            lambda grid: {
                axis: axes.get(axis, values if is_setting(axis) else {one: others(values[one]) for one in values})
                for axis, values in grid.items()
            }
        )
        overrides = tuple(one.model_copy(update={"set": others(one.set)}) for one in self.overrides)
        return varied.model_copy(update={"grid": self.grid | axes, "overrides": (*overrides, *own)})

    def only(self, conditions: Mapping[str, list[Any]]) -> Self:
        """The experiment with only these labels on these axes; `panel` counts as an axis.

        Raises SettingError: there is no such axis, or it has no such label.
        """
        axes = self.axes | ({"panel": dict(self.panels)} if any(self.panels) else {})
        kept: dict[str, dict[str, Any]] = {}
        for axis, wanted in conditions.items():
            if not axes.get(axis):
                raise SettingError(f"only: {axis!r} is not allowed; must be an axis of the grid: {listed(axes, axis)}")
            kept[axis] = selected(f"only {axis}", axes[axis], wanted)

        cut = self._with_grids(
            lambda grid: {
                axis: {one: values[one] for one in values if one in kept.get(axis, values)}
                for axis, values in grid.items()
            }
        )
        return cut.model_copy(update={"panels": {name: cut.panels[name] for name in kept.get("panel", cut.panels)}})

    def _with_grids(self, changed: Callable[[Grid], Grid]) -> Self:
        """The experiment with its grid and those of its panels changed."""
        panels = {name: panel.model_copy(update={"grid": changed(panel.grid)}) for name, panel in self.panels.items()}
        return self.model_copy(update={"grid": changed(self.grid), "panels": panels})


def file_of(name: str) -> Path:
    """The file of an experiment, which is named by a path or is one of the suite's."""
    return Path(name) if name.endswith((".yaml", ".yml")) else LIBRARY / f"{name}.yaml"


def names(of: str = "") -> list[str]:
    """The names of the suite's experiments; with `of`, those of one paper, which is a folder, or of a pattern."""
    files = (path for path in LIBRARY.rglob("*.yaml") if not path.stem.endswith(".claims"))  # theirs stand beside
    every = sorted(str(path.relative_to(LIBRARY).with_suffix("")) for path in files)
    return [name for name in every if name.startswith(f"{of}/") or fnmatch(name, of)] if of else every
