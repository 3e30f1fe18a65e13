"""What a page of a method or of a participation model says, from its docstrings and declarations."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from rollcall.benchmark.config.choice import KINDS
from rollcall.benchmark.config.described import parse
from rollcall.benchmark.config.text import first_sentence

KNOWLEDGE = {
    "probability": "p, the probability that each client is active in the round",
    "stationary": "π, the long-run share of rounds in which each client is active",
    "correlation": "λ, the lag-1 autocorrelation of each client",
    "share": "c, the expected weight of each client in the mean over the active ones",
    "least_loss": "the least training loss of each client",
}
"""The oracle knowledge that a method's `requires` may name, in words."""

LIMITS = {
    "optimum": "converges to the optimum, whatever the probabilities",
    "optimum on average": "is at the optimum on average over rounds",
    "shares": "converges to the optimum of an objective in which clients weigh as often as they answer",
    "probabilities": "converges to the optimum of an objective in which clients weigh by their probability",
    "elsewhere": "has no declared limit",
}
"""`Properties.limit` in words; `rollcall check` tests it."""


@dataclass(frozen=True)
class Part:
    """A method or a participation model.

    Attributes:
        name: as experiment files have it.
        text: the docstring that explains it.
        code: the source of its class or function.
        states: the docstring of each dataclass beside it: what it keeps between rounds.
        knows: the oracle knowledge that it may need, in words.
        limit: where it converges, as it declares.
    """

    name: str
    text: str
    code: str
    states: dict[str, str] = field(default_factory=dict)
    knows: list[str] = field(default_factory=list)
    limit: str = "elsewhere"

    @property
    def summary(self) -> str:
        return first_sentence(self.text)

    @property
    def sections(self) -> dict[str, str]:
        return parse(self.text).sections

    @property
    def body(self) -> Markup:
        """The text without the first paragraph and the sections, as HTML."""
        said = parse(self.text)
        return _html(said.body.split("\n\n")[1:], said.meanings)


def parts(kind: str) -> dict[str, Part]:
    """The suite's methods or participation models by name.

    Args:
        kind: `algorithm` or `participation`.
    """
    return {name: _part(name, kind, thing) for name, thing in KINDS[kind].known.items()}


def own_part(name: str) -> Part:
    """A method of the user's own, `file.py:Mine`; without text and code if its file is not here. It is not run."""
    file, _, wanted = name.rpartition(":")
    text = Path(file).read_text(encoding="utf-8") if file.endswith(".py") and Path(file).is_file() else ""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            return Part(name, ast.get_docstring(node) or "", ast.get_source_segment(text, node) or "")
    return Part(name, "", "")


def prose(text: str) -> Markup:
    """The text of a docstring as HTML: paragraphs, indented blocks as they are, and a list of its parameters."""
    said = parse(text)
    return _html(re.split(r"\n{2,}", said.body), said.meanings)


def _html(paragraphs: Iterable[str], meanings: Mapping[str, str]) -> Markup:
    blocks = [
        f"<pre>{escape(block)}</pre>" if block.startswith("    ") else f"<p>{words(block.removesuffix('::'))}</p>"
        for block in filter(None, paragraphs)
    ]
    listed = [f"<li><code>{escape(name)}</code>: {words(meaning)}</li>" for name, meaning in meanings.items()]
    return Markup("\n".join([*blocks, *([f"<ul>{''.join(listed)}</ul>"] if listed else [])]))


def words(text: str) -> Markup:
    """One paragraph with `code`, **bold words** and *Titles of papers*."""
    text = str(escape(text))
    for pattern, tag in ((r"`+([^`]+)`+", "code"), (r"\*\*([^*]+)\*\*", "b"), (r"\*([A-Z][^*]+)\*", "cite")):
        text = re.sub(pattern, rf"<{tag}>\1</{tag}>", text)
    return Markup(text)


def _part(name: str, kind: str, thing: Callable[..., Any]) -> Part:
    module, code = sys.modules[thing.__module__], inspect.getsource(thing).rstrip()
    if kind != "algorithm":
        return Part(name, inspect.cleandoc(thing.__doc__ or ""), code)
    beside = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    states = {
        one.__name__: inspect.getdoc(one) or "" for one in beside if is_dataclass(one) and one.__bases__ == (object,)
    }
    requires: Any = inspect.getattr_static(thing, "requires")  # names, or a property that returns names
    named = inspect.getsource(requires.fget) if getattr(requires, "fget", None) else str(requires)
    knows = [words for key, words in KNOWLEDGE.items() if re.search(rf"['\"]{key}['\"]", named)]
    return Part(name, inspect.cleandoc(module.__doc__ or ""), code, states, knows, thing().properties.limit)
