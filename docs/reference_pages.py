"""The reference pages of the site, written from signatures and docstrings: settings, choices, commands, Python API.

Types and default values are in words, as a person writes them in an experiment file.
"""

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from pkgutil import resolve_name
from textwrap import dedent
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import typer
from latex2mathml.converter import convert
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.cli import get_docs_for_click

from rollcall import algorithms
from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.choice import KINDS, Choice, options
from rollcall.benchmark.config.experiment import Experiment, Variant
from rollcall.benchmark.config.trial import Trial
from rollcall.cli.app import app
from rollcall.leaderboard.names import method_name
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.site.parts import equations

ROOTS: dict[str, type[BaseModel]] = {
    "experiment": Experiment,
    "trial": Trial,
    "analysis": Analysis,
    "claims": PaperExperiment,
}
API = {
    "Runs": "rollcall:simulate rollcall:Result rollcall:load rollcall:tune rollcall:RayOptions rollcall:SettingError",
    "Algorithms": "rollcall.algorithms:Algorithm rollcall.algorithms:Memoryless rollcall.algorithms:Round "
    "rollcall.algorithms:LocalWork rollcall.algorithms:local_steps rollcall.algorithms:Rows "
    "rollcall.algorithms:Properties rollcall.algorithms:TrainingSetup rollcall.algorithms:Traffic",
    "Participation": "rollcall.participation:Participation rollcall.participation:Population "
    "rollcall.participation:Chain",
    "Tasks": "rollcall.tasks:supervised rollcall.tasks:Task rollcall.tasks:ClientData",
}
"""The public names of the Python API, by heading."""

PLAIN = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    type(None): "`null`",
    Any: "any value",
    np.ndarray: "array (in the file, or the path of a `.npy` or `.npz` file)",
}
WRITTEN = {"None": "null", "True": "true", "False": "false"}
BOUNDS = (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most"))

SECTIONS = ("Args", "Attributes", "Raises", "Returns", "Yields")
PROSE = ("Cost", "When to use", "References", "Differences from the paper")
"""Sections of a method's file that hold sentences."""
NEXT = ".\n"
"""The end of a docstring's first line."""
FORMULA = re.compile(r"^Formula:\n((?: {4}.+\n?)+)", re.MULTILINE)
"""The section with a method's equations in LaTeX."""
CODE = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[A-Z][^*]*\w\*(?!\w))", re.DOTALL)
"""Text that is not escaped: code, bold text, and titles of papers in italics."""


class Docstring(NamedTuple):
    """A docstring in parts.

    Attributes:
        body: the text before the first section.
        meanings: the text about each parameter or attribute.
        ends: the text of the sections about results and errors, by title.
    """

    body: str
    meanings: dict[str, str]
    ends: dict[str, str]


def parse(text: str | None) -> Docstring:
    """Split a docstring, as `inspect.getdoc` returns it."""
    body: list[str] = []
    meanings: dict[str, str] = {}
    ends: dict[str, str] = {}
    section, names = "", []
    for line in (text or "").splitlines():
        if line.endswith(":") and line.removesuffix(":") in SECTIONS:
            section = line.removesuffix(":")
        elif not section:
            body.append(line)
        elif section not in ("Args", "Attributes"):
            ends[section] = f"{ends.get(section, '')} {line.strip()}".strip()
        elif entry := re.match(r" {4}(\w+(?:, \w+)*): (.*)", line):
            names = entry[1].split(", ")
            meanings |= dict.fromkeys(names, entry[2])
        elif line.strip():
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return Docstring("\n".join(body).strip(), meanings, ends)


def markdown(text: str) -> str:
    """Plain text as Markdown: indented blocks are literal, and signs of Markdown are escaped."""
    text = FORMULA.sub(_mathematics, text)
    lines: list[str] = []
    prose = False
    for line in text.split("\n"):
        if line.removesuffix(":") in PROSE:
            lines += [f"**{line.removesuffix(':')}**", ""]
            prose = True
            continue
        prose = prose and (not line or line.startswith("    "))
        lines.append(line.removeprefix("    ") if prose else line.removesuffix(":") if line.endswith("::") else line)
    blocks = []
    for block in re.split(r"\n{2,}", "\n".join(lines)):
        if block and all(line.startswith("    ") for line in block.splitlines()):
            blocks.append(f"```text\n{block}\n```")
        elif block.startswith("```"):
            blocks.append(block)
        else:
            parts = CODE.split(block)
            parts[::2] = [re.sub(r"[\\*_<\[\]{}$|]", r"\\\g<0>", part) for part in parts[::2]]
            blocks.append("".join(parts))
    return "\n\n".join(blocks)


def _mathematics(found: re.Match[str]) -> str:
    """Equations as MathML, which browsers show without a script."""
    blocks = [f"```{{raw}} html\n{convert(one, display='block')}\n```" for one in equations(dedent(found[1]))]
    return "\n\n".join(["**Formula**", *blocks]) + "\n"


def pages() -> dict[str, str]:
    """All pages: file name to text. A page of settings has the keys of its root, then those of the models it names."""
    written: set[type[BaseModel]] = set()
    result = {}
    for name, root in ROOTS.items():
        models = [model for model in reachable(root) if model not in written]
        written |= set(models)
        result[f"settings/{name}.md"] = "\n".join(model_section(model, first=model is root) for model in models)
    result |= {f"choices/{slug(kind)}.md": choices_page(kind) for kind in KINDS}
    result |= {f"methods/{slug(name)}.md": method_page(name) for name in KINDS["algorithm"].known}
    return result | {"commands.md": command_page(), "api.md": api_page()}


def reachable(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and all models in its fields, in the order in which they are met."""
    models = [model]
    for one in models:  # grows while it is gone through
        for field in one.model_fields.values():
            models += [inner for inner in dict.fromkeys(models_of(field.annotation)) if inner not in models]
    return models


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The pydantic models inside a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from models_of(inner)


def model_section(model: type[BaseModel], first: bool = False) -> str:
    """A heading, the docstring, and an entry for each key."""
    said = parse(inspect.getdoc(model))
    heading = "#" if first else "##"
    text = [f"(settings-{slug(model.__name__)})=", f"{heading} {model.__name__}", "", markdown(said.body), ""]
    above = {key for base in model.__mro__[1:] if base in (Experiment, Variant) for key in base.model_fields}
    for key, field in model.model_fields.items():
        if key in above and key not in model.__annotations__:
            continue  # has its entry there
        default = "required"
        if not field.is_required():
            value = field.get_default(call_default_factory=True)
            default = "optional" if any(models_of(field.annotation)) and value else f"default {shown(value)}"
        meaning = field.description or said.meanings.get(key, "")
        text += entry(key, meaning, f"{type_in_words(field, key)}; {default}")
    return "\n".join(text)


def entry(key: str, meaning: str, values: str = "") -> list[str]:
    """A key as an item of a definition list: its values, then its meaning."""
    return [f"`{key}`", *([f": {values}"] if values else []), *([f": {markdown(meaning)}"] if meaning else []), ""]


def choices_page(kind: str) -> str:
    """All choices of a kind: the text about each, and an entry for each option. Methods have pages of their own."""
    title = kind.replace("_", " ").capitalize()
    text = [f"(choices-{slug(kind)})=", f"# {title}", "", KINDS[kind].about, ""]
    for name, factory in KINDS[kind].known.items():
        if kind == "algorithm":
            text += [f"- [`{name}`](#choice-algorithm-{slug(name)}): {markdown(body(factory).partition(NEXT)[0])}"]
        else:
            text += [f"(choice-{slug(kind)}-{slug(name)})=", f"## `{name}`", "", *choice_text(kind, name)]
    return "\n".join(text)


def method_page(name: str) -> str:
    """The page of a method, outside the sidebar: the list of methods leads to it."""
    head = ["---", "orphan: true", "---", f"(choice-algorithm-{slug(name)})=", f"# {method_name(name)}", ""]
    call = f"`{name}` in an experiment file. [All methods](#choices-algorithm)."
    return "\n".join([*head, call, "", *choice_text("algorithm", name)])


def choice_text(kind: str, name: str) -> list[str]:
    """The text about a choice, and an entry for each of its options."""
    factory = KINDS[kind].known[name]
    # Where arguments are filled in already, the docstring of the function itself names the options.
    said = parse(inspect.getdoc(factory.func if isinstance(factory, partial) else factory))
    text = [markdown(body(factory)), ""]
    offered = options(factory, KINDS[kind].supplied)
    text += ["**Options**", ""] if offered else []
    for key, parameter in offered.items():
        default = "required" if parameter.default is parameter.empty else f"default {shown(parameter.default)}"
        text += entry(key, said.meanings.get(key, ""), f"{type_in_words(parameter.annotation, key)}; {default}")
    return text


def body(factory: Callable[..., Any]) -> str:
    """The text about a choice: of a method, its file's docstring; of a data set, that of the data set."""
    if isinstance(factory, partial):
        return " ".join(parse(inspect.getdoc(factory.args[0])).body.split("\n\n")[0].split())
    if isinstance(factory, type) and issubclass(factory, algorithms.Algorithm):
        return parse(sys.modules[factory.__module__].__doc__).body
    return parse(inspect.getdoc(factory)).body


def command_page() -> str:
    """All commands with their arguments and options."""
    command = typer.main.get_command(app)
    page = get_docs_for_click(obj=command, ctx=typer.Context(command), name="rollcall", title="Commands")
    for name, one in command.commands.items():  # Typer cuts the summaries of its list
        line = f"* [`{name}`](#rollcall-{name}): {(one.help or '').partition(NEXT)[0]}"
        page = re.sub(rf"^\* `{name}`: .*$", line, page, count=1, flags=re.MULTILINE)
    return page


def api_page() -> str:
    """The public names of the Python API."""
    text = ["# Python API", ""]
    for title, addresses in API.items():
        text += [f"## {title}", ""]
        for address in addresses.split():
            thing, name = resolve_name(address), address.replace(":", ".")
            text += [f"(api-{slug(thing.__name__)})=", f"### `{name}`", "", *described(thing.__name__, thing)]
            for key, member in vars(thing).items() if isinstance(thing, type) else ():
                member = getattr(member, "__func__", getattr(member, "fget", member))  # of a class method, a property
                if inspect.isfunction(member) and member.__doc__ and not key.startswith("_"):
                    text += [f"#### `{key}`", "", *described(key, member)]
    return "\n".join(text)


def described(name: str, thing: Any) -> list[str]:
    """The signature of a function or class without the modules of its types, and its docstring."""
    built = not isinstance(thing, type) or is_dataclass(thing) or "__init__" in vars(thing)
    signature = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[a-zA-Z])", "", str(inspect.signature(thing))) if built else ""
    said = parse(inspect.getdoc(thing))
    text = ["```python", f"{name}{signature}", "```", "", markdown(said.body), ""]
    for key, meaning in said.meanings.items():
        text += entry(key, meaning)
    return text + [f"**{title}**: {markdown(meaning)}\n" for title, meaning in said.ends.items()]


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
    return PLAIN.get(annotation) or getattr(annotation, "__name__", str(annotation))


def shown(value: Any) -> str:
    """A value as it is written in a file."""
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
    limits = [f"{word} {getattr(mark, field):g}" for mark in metadata for field, word in BOUNDS if hasattr(mark, field)]
    return f" {' and '.join(limits)}" if limits else ""


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
