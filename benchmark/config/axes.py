"""The axes of a grid: values by label, and which label a value of a command line means."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from rollcall.benchmark.config.errors import SettingError, check_one_of, in_yaml, listed


def labelled(values: Any) -> Any:
    """An axis as a mapping of labels to values.

    In a list, the label of a choice is its name and the label of a number is the number; the second `bernoulli` of a
    list is called `bernoulli#2`. A single value is a list of one. None is returned as it is, for pydantic to refuse.
    """
    if values is None:
        return values
    is_choice = isinstance(values, Mapping) and isinstance(values.get("name"), str)
    if is_choice or not isinstance(values, Iterable) or isinstance(values, str):
        values = [values]
    if isinstance(values, Mapping):
        texts = [*map(str, values)]
        if twice := next((label for label in texts if texts.count(label) > 1), ""):
            raise ValueError(f"must have labels that differ as text, unlike the two {twice!r}")
        return dict(zip(texts, values.values(), strict=True))
    axis: dict[str, Any] = {}
    for value in values:
        axis[next(label for label in numbered(label_of(value)) if label not in axis)] = value
    return axis


def numbered(label: str) -> Iterator[str]:
    """The label, then `LABEL#2`, `LABEL#3` and so on, of which the first free one is taken."""
    return chain([label], (f"{label}#{number}" for number in count(2)))


def label_of(value: Any) -> str:
    """The label of one value: a choice's name, the class of a user's file, or the value as text."""
    name = value.get("name", value) if isinstance(value, Mapping) else value
    return name.rpartition(":")[2] if isinstance(name, str) else getattr(name, "__name__", str(name))


def is_label(label: str, value: Any) -> bool:
    """Whether a value of a command line means a label; `bernoulli` also means `bernoulli#2`, and 1e3 1000."""
    if isinstance(value, int | float) and not isinstance(value, bool) and is_number(label):
        return float(label) == value
    return in_yaml(value) == label or label_of(value) in (label, label.rpartition("#")[0] or label)


def is_default(label: str, value: Any) -> bool:
    """Whether a label is the one that `labelled` gives to this value in a list."""
    return label.partition("#")[0] == label_of(value)


def selected(field: str, values: Mapping[str, Any], wanted: Iterable[Any]) -> dict[str, Any]:
    """The wanted part of an axis, in the order of the axis; `bernoulli` also selects `bernoulli#2`.

    Raises SettingError: the axis has no such label; begins with the field.
    """
    labels: set[str] = set()
    for value in wanted:
        matching = {label for label in values if is_label(label, value)}
        if not matching:
            raise SettingError(f"{field}: {value!r} is not allowed; must be one of {listed(values, value)}")
        labels |= matching
    return {label: value for label, value in values.items() if label in labels}


def is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


Axis = Annotated[
    dict[str, Any],
    BeforeValidator(labelled),
    Field(
        min_length=1,
        description="a list of values, or a mapping of labels to values; in a list, a choice has its name as label",
    ),
]

Grid: TypeAlias = dict[str, dict[str, Any]]
"""The axes by dotted setting, each with its values by label."""


def _labels(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


Labels = Annotated[
    dict[str, Annotated[tuple[str, ...], BeforeValidator(_labels)]],
    Field(description="labels by axis of the grid, or by `panel`"),
]


def union(*grids: Grid) -> Grid:
    """The axes of several grids; of a label with several values, the last one."""
    axes: Grid = {}
    for axis, values in chain.from_iterable(grid.items() for grid in grids):
        axes[axis] = axes.get(axis, {}) | values
    return axes


def check_labels(path: str, labels: Labels, axes: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise unless the grid has all of these axes and labels."""
    for axis, names in labels.items():
        check_one_of(path, axis, [axis for axis, known in axes.items() if any(known)])  # `panel` may have no label
        for name in names:
            check_one_of(f"{path}.{axis}", name, axes[axis])
