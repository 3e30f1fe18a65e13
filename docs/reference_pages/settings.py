"""Reference of experiment files: every key of the pydantic models."""

import typing
from collections.abc import Iterator
from inspect import getdoc
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from benchmark.config.analysis import Analysis
from benchmark.config.experiment import Experiment
from benchmark.config.trial import Trial
from reference_pages.docstrings import markdown, parse
from reference_pages.words import shown, slug, type_in_words

ROOTS: dict[str, type[BaseModel]] = {"experiment": Experiment, "trial": Trial, "analysis": Analysis}


def pages() -> dict[str, str]:
    """A page for each root: its own keys, then those of the models it names."""
    written: set[type[BaseModel]] = set()
    result = {}
    for name, root in ROOTS.items():
        models = [model for model in reachable(root) if model not in written]
        written |= set(models)
        result[f"settings/{name}.md"] = "\n".join(section(model, first=model is root) for model in models)
    return result


def reachable(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and all models in its fields, in the order in which they are met."""
    found = [model]
    for one in found:  # grows while it is gone through
        for field in one.model_fields.values():
            found += [inner for inner in dict.fromkeys(_models(field.annotation)) if inner not in found]
    return found


def section(model: type[BaseModel], first: bool = False) -> str:
    """A heading, the docstring, and an entry for each key."""
    said = parse(getdoc(model))
    heading = "#" if first else "##"
    text = [f"(settings-{slug(model.__name__)})=", f"{heading} {model.__name__}", "", markdown(said.body), ""]
    for key, field in model.model_fields.items():
        text += entry(key, type_in_words(field, key), default(field), field.description or said.meanings.get(key, ""))
    return "\n".join(text)


def entry(key: str, kind: str, default: str, meaning: str) -> list[str]:
    """One key as an item of a definition list."""
    return [f"`{key}`", f": {kind}; {default}", *([f": {markdown(meaning)}"] if meaning else []), ""]


def default(field: FieldInfo) -> str:
    """A field's default in words."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "optional" if next(_models(field.annotation), None) and value else f"default {shown(value)}"


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models(inner)
