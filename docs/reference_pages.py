"""The reference pages of the site, written from signatures and docstrings: settings, choices, commands, Python API."""

import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from pkgutil import resolve_name
from typing import Any

import typer
from pydantic import BaseModel
from typer.cli import get_docs_for_click

from rollcall.benchmark.config.choice import KINDS
from rollcall.benchmark.config.described import options_in_words, parse, slug, text_of, type_in_words, value_in_words
from rollcall.benchmark.config.experiment import Experiment, Variant
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.cli.app import app
from rollcall.leaderboard.paper.experiment import PaperExperiment

ROOTS: dict[str, type[BaseModel]] = {
    "experiment": Experiment,
    "trial": Trial,
    "analysis": Analysis,
    "claims": PaperExperiment,
}
API = {
    "Runs": "rollcall:simulate rollcall:Result rollcall:load rollcall:run rollcall:tune "
    "rollcall:Execution rollcall:SettingError",
    "Algorithms": "rollcall.algorithms:Algorithm rollcall.algorithms:Memoryless rollcall.algorithms:Round "
    "rollcall.algorithms:LocalWork rollcall.algorithms:local_steps rollcall.algorithms:Rows "
    "rollcall.algorithms:Properties rollcall.algorithms:TrainingSetup rollcall.algorithms:Traffic",
    "Participation": "rollcall.participation:Participation rollcall.participation:Population "
    "rollcall.participation:Chain rollcall.participation:stream",
    "Tasks": "rollcall.tasks:supervised rollcall.tasks:Task rollcall.tasks:ClientData",
    "Results": "rollcall.leaderboard.frames:runs rollcall.leaderboard.frames:history "
    "rollcall.leaderboard.figures:curves rollcall.leaderboard.figures:searched rollcall.leaderboard.figures:save",
    "Ray": "rollcall.ray:trainable",
}
"""The public names of the Python API, by heading."""

NEXT = ".\n"
"""The end of a docstring's first line."""
CODE = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[A-Z][^*]*\w\*(?!\w))", re.DOTALL)
"""Text that is not escaped: code, bold text, and titles of papers in italics."""


def markdown(text: str) -> str:
    """The text of a docstring as Markdown: its sections follow, indented blocks are literal, signs are escaped."""
    said = parse(text)
    blocks = []
    for block in re.split(r"\n{2,}", said.body):
        lines = block.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            blocks.append(f"```text\n{block}\n```")
        else:
            blocks.append(escaped(re.sub(r"::$", "", block, flags=re.MULTILINE)))
    for title, content in said.sections.items():
        blocks += [f"**{title}**", escaped(content)]
    return "\n\n".join(blocks)


def escaped(text: str) -> str:
    parts = CODE.split(text)
    parts[::2] = [re.sub(r"[\\*_<\[\]{}$|]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def pages() -> dict[str, str]:
    """All pages: file name to text. A page of settings has the keys of its root, then those of the models it names."""
    written: set[type[BaseModel]] = set()
    result = {}
    for name, root in ROOTS.items():
        models = [model for model in reachable(root) if model not in written]
        written |= set(models)
        result[f"settings/{name}.md"] = "\n".join(model_section(model, first=model is root) for model in models)
    result |= {f"choices/{slug(kind)}.md": choices_page(kind) for kind in KINDS}
    return result | {"commands.md": command_page(), "api.md": api_page()}


def reachable(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and all models in its fields, in the order in which they are met."""
    models = [model]
    for one in models:  # grows while it is gone through
        for field in one.model_fields.values():
            models += [inner for inner in dict.fromkeys(models_of(field.annotation)) if inner not in models]
    return models


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
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
            default = "optional" if any(models_of(field.annotation)) and value else f"default {value_in_words(value)}"
        meaning = field.description or said.meanings.get(key, "")
        text += entry(key, meaning, f"{type_in_words(field, key)}; {default}")
    return "\n".join(text)


def entry(key: str, meaning: str, values: str = "") -> list[str]:
    """A key as an item of a definition list: its values, then its meaning."""
    return [f"`{key}`", *([f": `{values}`"] if values else []), *([f": {markdown(meaning)}"] if meaning else []), ""]


def choices_page(kind: str) -> str:
    """All choices of a kind: the text about each, and an entry for each option."""
    text = [f"(choices-{slug(kind)})=", f"# {kind.replace('_', ' ').capitalize()}", "", KINDS[kind].about, ""]
    for name, factory in KINDS[kind].known.items():
        offered = options_in_words(kind, factory)
        text += [f"(choice-{slug(kind)}-{slug(name)})=", f"## `{name}`", "", markdown(text_of(factory)), ""]
        text += ["**Options**", ""] if offered else []
        for key, (values, meaning) in offered.items():
            text += entry(key, meaning, values)
    return "\n".join(text)


def command_page() -> str:
    command = typer.main.get_command(app)
    page = get_docs_for_click(obj=command, ctx=typer.Context(command), name="rollcall", title="Commands")
    for name, one in command.commands.items():  # Typer cuts the summaries of its list
        line = f"* [`{name}`](#rollcall-{name}): {(one.help or '').partition(NEXT)[0]}"
        page = re.sub(rf"^\* `{name}`: .*$", line, page, count=1, flags=re.MULTILINE)
    return page


def api_page() -> str:
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
    return text + [f"**{title}**: {escaped(' '.join(content.split()))}\n" for title, content in said.sections.items()]
