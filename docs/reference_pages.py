"""Writes the reference pages of the site from the code: experiment files, choices, commands and modules.

Types and default values are in words, as a person writes them in an experiment file.
"""

import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Literal

import annotated_types
import numpy as np
import typer
from docstrings import markdown, parse, summary
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.cli import get_docs_for_click
from typer.core import TyperGroup

from rollcall import algorithms
from rollcall.benchmark.cli.app import COMMANDS, app, imported
from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.choice import KINDS, Choice, options
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.trial import Trial

ROOTS: dict[str, type[BaseModel]] = {"experiment": Experiment, "trial": Trial, "analysis": Analysis}


ABOUT = {
    "task": "What is learned: the data, the model and how samples are split among clients. The key `task` of a trial.",
    "model": "The network. An option of the image tasks.",
    "partition": "How samples are split among clients. An option of the image tasks.",
    "augmentation": "How training images are changed before each step. An option of the image tasks.",
    "participation": "Which clients are available in each round. The key `participation` of a trial.",
    "probability": "Where the probabilities of the clients come from. An option of most participation models.",
    "variation": "How the probabilities change over time. An option of some participation models.",
    "function": "A roll call of your own as a function of (t, rng). An option of the participation model `function`.",
    "algorithm": "The federated method. The key `algorithm` of a trial.",
    "metric": "What is measured besides the metrics of the task. The key `metrics` of `evaluation`.",
    "schedule": "How the local learning rate changes over rounds. The key `schedule` of `local`.",
    "local_optimizer": "What takes the local steps of a client. The key `optimizer` of `local`.",
    "server_optimizer": "What applies the update of a method to the server's model. The key `optimizer` of `server`.",
    "analysis": "A computation without training. The key `analysis` of a panel.",
}
PACKAGES = {
    "rollcall.participation": "Which clients are available in each round",
    "rollcall.algorithms": "The methods, and what they are made of",
    "rollcall.tasks": "Data, models, partitions",
    "rollcall.benchmark": "Settings, engines, the federated loop, sweeps",
    "rollcall.leaderboard": "Tables and figures from results",
}
LEFT_OUT = ("rollcall.benchmark.cli", "rollcall.leaderboard.cli")
"""The command line has a page of its own."""

OPTIONS = [":members:", ":show-inheritance:", ":ignore-module-all:", ":member-order: bysource"]
PLAIN = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    type(None): "`null`",
    Any: "any value",
    np.ndarray: "array (in the file, or the path of a `.npy` file)",
}
WRITTEN = {"None": "null", "True": "true", "False": "false"}
BOUNDS = {
    annotated_types.Gt: ("gt", "above"),
    annotated_types.Ge: ("ge", "at least"),
    annotated_types.Lt: ("lt", "below"),
    annotated_types.Le: ("le", "at most"),
}


def pages() -> dict[str, str]:
    """All pages: file name to text. A page of settings has the keys of its root, then those of the models it names."""
    written: set[type[BaseModel]] = set()
    result = {}
    for name, root in ROOTS.items():
        models = [model for model in reachable(root) if model not in written]
        written |= set(models)
        result[f"settings/{name}.md"] = "\n".join(model_section(model, first=model is root) for model in models)
    result |= {f"choices/{slug(kind)}.md": choices_page(kind) for kind in KINDS}
    return result | command_pages() | module_pages()


def reachable(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and all models in its fields, in the order in which they are met."""
    found = [model]
    for one in found:  # grows while it is gone through
        for field in one.model_fields.values():
            found += [inner for inner in dict.fromkeys(_models(field.annotation)) if inner not in found]
    return found


def model_section(model: type[BaseModel], first: bool = False) -> str:
    """A heading, the docstring, and an entry for each key."""
    said = parse(inspect.getdoc(model))
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


def choices_page(kind: str) -> str:
    """All choices of a kind: the text about each, and an entry for each option."""
    title = kind.replace("_", " ").capitalize()
    text = [f"(choices-{slug(kind)})=", f"# {title}", "", ABOUT.get(kind, f"Values of `{kind}`."), ""]
    for name, factory in KINDS[kind].known.items():
        # Where arguments are filled in already, the docstring of the function itself names the options.
        said = parse(inspect.getdoc(factory.func if isinstance(factory, partial) else factory))
        text += [f"(choice-{slug(kind)}-{slug(name)})=", f"## `{name}`", "", markdown(body(factory)), ""]
        for key, parameter in options(factory, KINDS[kind].supplied).items():
            default = "required" if parameter.default is parameter.empty else f"default {shown(parameter.default)}"
            text += entry(key, type_in_words(parameter.annotation, key), default, said.meanings.get(key, ""))
    return "\n".join(text)


def body(factory: Callable[..., Any]) -> str:
    """The text about a choice: of a method, its file's docstring; of a data set, that of the data set."""
    if isinstance(factory, partial):
        return summary(parse(inspect.getdoc(factory.args[0])).body)
    if isinstance(factory, type) and issubclass(factory, algorithms.Algorithm):
        return parse(sys.modules[factory.__module__].__doc__).body
    return parse(inspect.getdoc(factory)).body


def command_pages() -> dict[str, str]:
    """One page with all commands, their arguments and options."""
    command = TyperGroup(help=app.help, params=app.params, commands={name: imported(name) for name in COMMANDS})
    context = typer.Context(command, info_name="rollcall")
    return {"commands.md": get_docs_for_click(obj=command, ctx=context, name="rollcall", title="Commands")}


def module_pages() -> dict[str, str]:
    """A page for each package and one for each of its modules."""
    result = {}
    for package, about in PACKAGES.items():
        infos = pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
        names = [info.name for info in infos if not info.name.startswith(LEFT_OUT) and import_module(info.name).__doc__]
        listed = "\n".join(f"   {name}" for name in names)
        title = f"{package}: {about}"
        toctree = f".. toctree::\n   :maxdepth: 1\n\n{listed}\n"
        result[f"api/{package}.rst"] = f"{title}\n{'=' * len(title)}\n\n{toctree}"
        for name in names:
            parent, _, last = name.rpartition(".")
            # The package may have something else under the module's name, such as a function.
            is_module = isinstance(getattr(import_module(parent), last, None), types.ModuleType | None)
            lines = [f".. automodule:: {name}", *OPTIONS, *([] if is_module else [":no-index:"])]
            result[f"api/{name}.rst"] = f"{name}\n{'=' * len(name)}\n\n" + "\n   ".join(lines) + "\n"
    return result


def type_in_words(annotation: Any, key: str = "") -> str:
    """The values that a type allows, as Markdown.

    Args:
        annotation: the type.
        key: the setting's name, which is the kind where the type is a choice.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, FieldInfo):
        return (type_in_words(annotation.annotation, key) + _bounds(annotation.metadata)).strip()
    if origin is Annotated:
        return type_in_words(arguments[0], key) + _bounds(arguments[1:])
    if origin in (typing.Union, types.UnionType):
        members = sorted(arguments, key=lambda member: member is type(None))
        return " or ".join(dict.fromkeys(type_in_words(member, key) for member in members))
    if origin is Literal:
        return _listed([shown(value) for value in arguments])
    if annotation is Choice or origin is Callable:
        return f"[{key}](#choices-{slug(key)})" if key in KINDS else "a choice"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {type_in_words(arguments[0])} to {type_in_words(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if origin is tuple and Ellipsis not in arguments:
            return f"list of {len(arguments)}: {', '.join(type_in_words(one) for one in arguments)}"
        return f"list of {type_in_words(arguments[0])}"
    if getattr(annotation, "array_type", None) is np.ndarray:  # jaxtyping
        return PLAIN[np.ndarray]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#settings-{slug(annotation.__name__)})"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _listed([shown(one) for one in annotation])
    return PLAIN.get(annotation) or getattr(annotation, "__name__", str(annotation))


def shown(value: Any) -> str:
    """A value as it is written in a file."""
    if isinstance(value, Enum):
        value = value.value
    if value == "":
        return "empty"
    if isinstance(value, Choice):
        value = value.name
    if callable(value):  # a default such as model=mlp
        value = value.__name__
    if isinstance(value, tuple | list):
        value = f"[{', '.join(shown(one).strip('`') for one in value)}]"
    return f"`{WRITTEN.get(str(value), value)}`"


def slug(name: str) -> str:
    """A name as a part of a link's target."""
    return name.lower().replace("_", "-")


def _bounds(metadata: Any) -> str:
    limits = [
        f"{word} {getattr(mark, field):g}"
        for mark in metadata
        for kind, (field, word) in BOUNDS.items()
        if isinstance(mark, kind)
    ]
    return f" {' and '.join(limits)}" if limits else ""


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
