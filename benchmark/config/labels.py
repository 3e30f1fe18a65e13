"""Labels of the values on an axis: what tables show, and what `--only` selects."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmark.config.errors import SettingError


def labelled(values: Any) -> Any:
    """An axis as a mapping of labels to values.

    In a list, the label of a choice is its name and the label of a number is the number; the second `bernoulli` of a
    list is called `bernoulli#2`. What is neither a list nor a mapping is returned as it is, for pydantic to refuse.
    """
    if not isinstance(values, Iterable) or isinstance(values, str):
        return values
    if isinstance(values, Mapping):
        return {str(label): value for label, value in values.items()}
    axis: dict[str, Any] = {}
    for value in values:
        name = label = label_of(value)
        count = 1
        while label in axis:
            count += 1
            label = f"{name}#{count}"
        axis[label] = value
    return axis


def named(choice: Any) -> Any:
    """A choice as a mapping; a bare name, or a callable, is its `name`. Anything else is returned as it is."""
    return {"name": choice} if isinstance(choice, str) or callable(choice) else choice


def not_empty(axis: dict[str, Any]) -> dict[str, Any]:
    """Refuse an axis without values, since no trial would be run."""
    if not axis:
        raise ValueError("must have at least one value")
    return axis


def folder_name(name: str) -> str:
    """Refuse a name that leads out of the store."""
    if name.startswith("/") or "\\" in name or not name.isprintable() or {".", ".."} & set(name.split("/")):
        raise ValueError("must be a relative path without . or .., such as mine or paper/table1")
    return name


def file_name(name: str) -> str:
    """Refuse a name that cannot be part of the name of a file."""
    if "/" in folder_name(name):
        raise ValueError("must be a name without /, such as as_released")
    return name


def label_of(value: Any) -> str:
    """The label of one value: a choice's name, the class of a user's file, or the value as text."""
    name = value.get("name", value) if isinstance(value, Mapping) else value
    return name.rpartition(":")[2] if isinstance(name, str) else getattr(name, "__name__", str(name))


def is_default(label: str, value: Any) -> bool:
    """Whether a label is the one that `labelled` gives to this value in a list."""
    return label.partition("#")[0] == label_of(value)


def selected(axis: str, values: Mapping[str, Any], wanted: Iterable[Any]) -> dict[str, Any]:
    """The wanted part of an axis, in the order of the axis; `bernoulli` also selects `bernoulli#2`.

    Args:
        axis: its name, for the error.
        values: the axis, by label.
        wanted: values, or choices' names.

    Raises:
        SettingError: the axis has no such label.
    """
    labels: set[str] = set()
    for value in wanted:
        matching = {label for label in values if label_of(value) in (label, label.rpartition("#")[0])}
        if not matching:
            raise SettingError(f"only {axis}: {value!r} is not allowed; must be one of {', '.join(values)}")
        labels |= matching
    return {label: value for label, value in values.items() if label in labels}


def is_number(label: str) -> bool:
    """Whether a label is a number."""
    try:
        float(label)
    except ValueError:
        return False
    return True
