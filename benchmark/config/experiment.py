"""An experiment: the grids of trials behind one table or figure, read from a YAML file."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, model_validator

from benchmark.config.base import Settings, load_yaml, validated
from benchmark.config.errors import SettingError
from benchmark.config.renamed import current_experiment
from benchmark.config.report import Claim, Labels, Report, Reported

LIBRARY = Path(__file__).parents[1] / "experiments"

Axis = Annotated[
    dict[str, Any],
    BeforeValidator(lambda given: labelled(given)),
    Field(description="a list of values, or a mapping of labels to values; choices are labelled with their names"),
]


class Panel(Settings):
    """A part of a table or figure: trials, or an analysis, that differ from the experiment's in these settings."""

    title: str = ""
    trial: dict[str, Any] = Field({}, description="laid over the experiment's")
    analysis: dict[str, Any] | None = Field(None, description="what is computed where nothing is learnt")
    grid: dict[str, Axis] = Field({}, description="axes beside, or instead of, the experiment's")


class Override(Settings):
    """Settings that follow from where in the grid a trial stands, such as a method's rate."""

    when: Labels
    set: dict[str, Any] = Field(description="values by dotted setting")
    found: str = Field("", description="how these values were found")


class Variant(Settings):
    """Another reading of the experiment: what it changes."""

    about: str
    trial: dict[str, Any] = Field({}, description="laid over the experiment's")
    grid: dict[str, Axis] = Field({}, description="labels of axes that mean something else; new ones are added")
    overrides: tuple[Override, ...] = ()
    claims: tuple[Claim, ...] = Field((), description="what is claimed of this reading")


class Experiment(Settings):
    """What an experiment file holds.

    `trial` has the settings that all trials share; `grid` maps dotted settings (`algorithm`, `seed`, `local.lr`) to the
    values each takes, and the trials are their product, in every panel anew. An axis that is no setting (`p2`) has a
    mapping of dotted settings for each value: panels that set different things can so share it.
    """

    name: str
    title: str
    about: str = ""
    source: str = Field("", description="paper, and its table or figure")
    base: str = Field("", description="another experiment, of whose trials this one is made; all else is as there")
    subset: Labels = Field({}, description="axes of the base, cut down to these labels")
    trial: dict[str, Any] = Field({}, description="settings that all trials share")
    grid: dict[str, Axis] = Field({}, description="values by dotted setting")
    panels: dict[str, Panel] = Field({"": Panel()}, min_length=1)
    overrides: tuple[Override, ...] = ()
    choices: dict[str, str] = Field({}, description="settings on which the paper is silent, and why they are as here")
    variants: dict[str, Variant] = Field({}, description="other readings of the experiment, such as `as_released`")
    report: Report = Report()
    reported: tuple[Reported, ...] = ()
    claims: tuple[Claim, ...] = ()
    findings: tuple[str, ...] = Field((), description="what its results show beside the claims, with the evidence")

    @model_validator(mode="after")
    def _names_what_is_there(self) -> "Experiment":
        if not self.trial and not any(panel.analysis or panel.trial for panel in self.panels.values()):
            raise SettingError("trial: is missing; it must be given")
        axes = {"panel": dict.fromkeys(self.panels)}
        for grid in (self.grid, *(panel.grid for panel in self.panels.values())):
            for axis, values in grid.items():
                axes[axis] = axes.get(axis, {}) | values
        for variant in self.variants.values():
            for axis, values in variant.grid.items():
                axes[axis] = axes.get(axis, {}) | values
        spoken = [override.when for override in self.overrides]
        claims = [*self.claims, *(claim for variant in self.variants.values() for claim in variant.claims)]
        for claim in claims:
            spoken += [labels for labels in (claim.where, claim.of, claim.minus, claim.over) if labels]
        for labels in spoken:
            for axis, names in labels.items():
                for name in names:
                    if name not in axes.get(axis, {}):
                        raise SettingError(
                            f"{axis}: {name!r} is not allowed; must be of {', '.join(axes.get(axis, axes))}"
                        )
        return self

    @classmethod
    def read(cls, name: str) -> "Experiment":
        """One of the suite's experiments by its name, or any by the path of its YAML file.

        Raises:
            SettingError: there is none, or a key of it is not allowed.
        """
        path = Path(name) if name.endswith((".yaml", ".yml")) else LIBRARY / f"{name}.yaml"
        if not path.is_file():
            raise SettingError(
                f"experiment: {name!r} is not known; must be one of {', '.join(names())}, or a .yaml file"
            )
        content = load_yaml(path)
        if not isinstance(content, dict):
            raise SettingError(f"{path}: holds no mapping; must have title, trial and grid")
        content = current_experiment(content)
        own = {"name": path.stem if path == Path(name) else name} | content
        try:
            given = cls.read(content["base"]).model_dump() | own if "base" in content else own
            found = validated(cls, given)
            return found.only({axis: list(labels) for axis, labels in found.subset.items()})
        except SettingError as error:
            raise SettingError(f"{path.name}: {error}") from None

    @property
    def home(self) -> str:
        """The name under which its runs are kept."""
        return self.base or self.name

    @property
    def metrics(self) -> list[str]:
        """The columns of a run's history that its report and its claims read."""
        metrics = [*self.report.metrics, *(claim.metric for claim in self.claims if claim.metric)]
        return list(dict.fromkeys(metric.column for metric in metrics))

    def as_(self, variant: str) -> "Experiment":
        """The experiment as a variant of it reads.

        Raises:
            SettingError: it has no such variant.
        """
        if variant not in self.variants:
            allowed = ", ".join(self.variants) or "left out, the experiment has none"
            raise SettingError(f"variant: {variant!r} is not allowed; must be {allowed}")
        other = self.variants[variant]

        def changed(grid: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
            return {axis: values | other.grid.get(axis, {}) for axis, values in grid.items()}

        panels = {
            name: panel.model_copy(update={"trial": merged(panel.trial, other.trial), "grid": changed(panel.grid)})
            for name, panel in self.panels.items()
        }
        overrides = self.overrides + other.overrides
        return self.model_copy(update={"grid": changed(self.grid), "panels": panels, "overrides": overrides})

    def joined(self, axis: str, values: Iterable[Any]) -> "Experiment":
        """With more values on an axis, wherever it stands; where it stands nowhere, beside the trial's own."""
        more = labelled(values)
        panels = {
            name: panel.model_copy(update={"grid": panel.grid | {axis: panel.grid[axis] | more}})
            if axis in panel.grid
            else panel
            for name, panel in self.panels.items()
        }
        grid = self.grid
        if axis in grid or panels == self.panels:
            there = grid.get(axis) or labelled([self.trial[axis]] if axis in self.trial else [])
            grid = grid | {axis: there | more}
        return self.model_copy(update={"grid": grid, "panels": panels})

    def varied(self, settings: Mapping[str, Any]) -> "Experiment":
        """With these dotted settings taking these values; axes of the grid keep their place, new ones run fastest."""
        axes = {path: labelled(values) for path, values in settings.items()}
        panels = {
            name: panel.model_copy(update={"grid": {path: axes.get(path, axis) for path, axis in panel.grid.items()}})
            for name, panel in self.panels.items()
        }
        overrides = tuple(
            one.model_copy(update={"set": {path: value for path, value in one.set.items() if path not in axes}})
            for one in self.overrides
        )
        return self.model_copy(update={"grid": {**self.grid, **axes}, "panels": panels, "overrides": overrides})

    def only(self, conditions: Mapping[str, list[Any]]) -> "Experiment":
        """With some values of its axes alone, called by their labels; `panel` is an axis too.

        Raises:
            SettingError: no such axis, or no such value on it.
        """
        grids = {"": self.grid} | {f"panel {name}": panel.grid for name, panel in self.panels.items()}
        panels = dict(self.panels)
        for axis, wanted in conditions.items():
            if axis == "panel":
                panels = _kept("panel", panels, wanted)
                continue
            there = {label: None for grid in grids.values() for label in grid.get(axis, {})}
            if not there:
                axes = dict.fromkeys(axis for grid in grids.values() for axis in grid)
                raise SettingError(f"only: {axis!r} is not allowed; must be an axis of the grid: {', '.join(axes)}")
            kept = _kept(axis, there, wanted)
            for grid_name, grid in grids.items():
                if axis in grid:
                    cut = {label: value for label, value in grid[axis].items() if label in kept}
                    grids[grid_name] = {**grid, axis: cut}
        return self.model_copy(
            update={
                "grid": grids[""],
                "panels": {
                    name: panel.model_copy(update={"grid": grids[f"panel {name}"]}) for name, panel in panels.items()
                },
            }
        )


def names(of: str = "") -> list[str]:
    """Those of the suite's own experiments; of one paper alone, which is a folder, if asked."""
    found = sorted(str(path.relative_to(LIBRARY).with_suffix("")) for path in LIBRARY.rglob("*.yaml"))
    return [name for name in found if name.startswith(f"{of}/")] if of else found


def labelled(given: Any) -> Any:
    """An axis as labels to values: of a list, a choice is labelled with its name, a number with itself."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        return given  # for pydantic to refuse
    if isinstance(given, Mapping):
        return {str(label): value for label, value in given.items()}
    found: dict[str, Any] = {}
    for value in given:
        name = label = _name(value)
        count = 1
        while label in found:
            count += 1
            label = f"{name}#{count}"
        found[label] = value
    return found


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings laid over others; a choice of another name replaces the choice whole."""
    found = dict(base)
    for key, value in over.items():
        below = {"name": found[key]} if isinstance(found.get(key), str) else found.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and _same_choice(below, value):
            value = merged(below, value)
        found[key] = value
    return found


def put(spec: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of nested settings with one of them, named with dots, replaced.

    Raises:
        SettingError: the path leads through a value that holds no settings.
    """
    first, dot, rest = path.partition(".")
    if not dot:
        return {**spec, first: value}
    inner = spec.get(first, {})
    if isinstance(inner, str):  # a choice given by its name alone
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        raise SettingError(f"{path}: cannot be set; {first} is {inner!r}")
    return {**spec, first: put(inner, rest, value)}


def parse(assignment: str) -> tuple[str, list[Any]]:
    """`local.lr=0.1,0.05` as ("local.lr", [0.1, 0.05]); values are YAML.

    Raises:
        SettingError: not of that form.
    """
    path, equals, values = assignment.partition("=")
    try:
        parsed = yaml.safe_load(f"[{values}]")
    except yaml.YAMLError:
        parsed = []
    if not (path and equals and parsed):
        raise SettingError(f"{assignment!r} is not allowed; must be SETTING=VALUE or SETTING=VALUE,VALUE")
    return path, [_number(value) for value in parsed]


def _kept(axis: str, there: Mapping[str, Any], wanted: list[Any]) -> dict[str, Any]:
    """What is wanted of an axis; `bernoulli` means `bernoulli#2` too."""
    kept: dict[str, Any] = {}
    for value in wanted:
        found = {label: item for label, item in there.items() if _name(value) in (label, label.rpartition("#")[0])}
        if not found:
            raise SettingError(f"only {axis}: {value!r} is not allowed; must be of {', '.join(there)}")
        kept |= found
    return {label: item for label, item in there.items() if label in kept}


def _same_choice(below: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return value.get("name", below.get("name")) == below.get("name")


def _name(value: Any) -> str:
    name = value.get("name", value) if isinstance(value, Mapping) else value
    return name.rpartition(":")[2] if isinstance(name, str) else str(name)


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) else value  # to YAML, 1e-3 is a word
    except ValueError:
        return value
