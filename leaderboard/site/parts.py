"""What a page of a method or of a participation model says, read from its source file without importing it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from latex2mathml.converter import convert
from markupsafe import Markup, escape

from rollcall.benchmark.config.choice import KINDS
from rollcall.benchmark.config.summaries import Definition, definition, definitions, first_sentence, source

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

SECTION = re.compile(r"^([A-Z][\w ]+):\n((?: {4}.*(?:\n|$)|\n)+)", re.MULTILINE)
"""A section of a docstring: a title, and an indented text."""

CITATION = re.compile(
    r"(?:(?P<authors>[^*]+), )?\*(?P<title>[^*]+)\*(?:.*?\((?:[^()]*; )?(?P<venue>[^()]*) ?(?P<year>\d{4})\))?"
)
"""`A, B, *Title* (Venue 2024)`."""


@dataclass(frozen=True)
class Part:
    """A method or a participation model.

    Attributes:
        name: as experiment files have it.
        text: the docstring that explains it.
        code: the source of its class or function.
        trees: the syntax trees of its class and of that class's bases.
        states: the docstring of each dataclass beside it: what it keeps between rounds.
    """

    name: str
    text: str
    code: str
    trees: tuple[Definition, ...] = ()
    states: dict[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """One sentence."""
        return first_sentence(self.text)

    @property
    def citation(self) -> str:
        """The paragraph that names its paper; empty if there is none."""
        paragraphs = self.text.split("\n\n")[1:]
        return next((one for one in paragraphs if not one.startswith(" ") and re.search(r"\*[A-Z]", one)), "")

    @property
    def sections(self) -> dict[str, str]:
        """The text of each section by its title."""
        return {title: re.sub(r"^ {4}", "", text, flags=re.M).strip() for title, text in SECTION.findall(self.text)}

    @property
    def body(self) -> str:
        """The text without the first paragraph, the citation and the sections of its own."""
        text = SECTION.sub(lambda found: found[0] if found[1] in ("Args", "Attributes") else "", self.text)
        _, *others = text.strip().split("\n\n")
        return "\n\n".join(one for one in others if one != self.citation)

    @property
    def formula(self) -> list[Markup]:
        """Its equations as MathML."""
        return [Markup(convert(line, display="block")) for line in equations(self.sections.get("Formula", ""))]

    @cached_property
    def knows(self) -> list[str]:
        """The oracle knowledge that it may need, in words."""
        members = (node for tree in self.trees for node in tree.body if isinstance(node, ast.FunctionDef))
        first = next((node for node in members if node.name == "requires"), None)
        texts = [node.value for node in ast.walk(first) if isinstance(node, ast.Constant)] if first else []
        return [words for name, words in KNOWLEDGE.items() if name in texts]

    @cached_property
    def limit(self) -> str:
        """Where it converges, as it declares."""
        for tree in self.trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Properties":
                    given = {one.arg: one.value for one in node.keywords}.get("limit")
                    return str(given.value) if isinstance(given, ast.Constant) else "optimum on average"
        return "optimum on average"

    @property
    def bibtex(self) -> str:
        """An entry for its paper; empty if its docstring names none."""
        found = CITATION.search(" ".join(self.citation.split()))
        if found is None:
            return ""
        fields = {
            "author": " and ".join((found["authors"] or "").split(", ")),
            "title": f"{{{found['title']}}}",
            "howpublished": (found["venue"] or "").strip(),
            "year": found["year"],
        }
        lines = [f"  {key} = {{{value}}}," for key, value in fields.items() if value]
        return "\n".join([f"@misc{{{self.name},", *lines, "}"])


def parts(kind: str) -> dict[str, Part]:
    """The suite's methods or participation models by name.

    Args:
        kind: `algorithm` or `participation`.
    """
    return {name: _part(name, *where) for name, where in definitions(KINDS[kind].address).items()}


def own_part(name: str) -> Part:
    """A method of the user's own, `file.py:Mine`; without text and code if its file is not here."""
    file, _, wanted = name.rpartition(":")
    text = Path(file).read_text(encoding="utf-8") if file.endswith(".py") and Path(file).is_file() else ""
    for node in ast.parse(text).body:
        if isinstance(node, Definition) and node.name == wanted:
            return Part(name, ast.get_docstring(node) or "", ast.get_source_segment(text, node) or "", (node,))
    return Part(name, "", "")


def equations(text: str) -> list[str]:
    """The lines of a formula section; a line that is indented further belongs to the line before."""
    return re.sub(r"\n +", " ", text).splitlines()


def prose(text: str) -> Markup:
    """The text of a docstring as HTML: paragraphs, indented blocks as they are, and lists of parameters."""
    blocks = []
    for block in filter(None, re.split(r"\n{2,}", text.strip("\n"))):
        if block.startswith(("Args:", "Attributes:")):
            lines = re.sub(r"\n {5,}", " ", block).splitlines()[1:]
            entries = (line.strip().partition(": ") for line in lines)
            listed = "".join(f"<li><code>{escape(name)}</code>: {words(meaning)}</li>" for name, _, meaning in entries)
            blocks.append(f"<ul>{listed}</ul>")
        elif block.startswith("    "):
            blocks.append(f"<pre>{escape(block)}</pre>")
        else:
            blocks.append(f"<p>{words(block.removesuffix('::'))}</p>")
    return Markup("\n".join(blocks))


def words(text: str) -> Markup:
    """One paragraph with `code`, **bold words** and *Titles of papers*."""
    text = str(escape(text))
    for pattern, tag in ((r"`+([^`]+)`+", "code"), (r"\*\*([^*]+)\*\*", "b"), (r"\*([A-Z][^*]+)\*", "cite")):
        text = re.sub(pattern, rf"<{tag}>\1</{tag}>", text)
    return Markup(text)


def _part(name: str, module: str, node: Definition) -> Part:
    text, tree = source(module), ast.parse(source(module))
    states = {
        one.name: ast.get_docstring(one) or ""
        for one in tree.body
        if isinstance(one, ast.ClassDef) and one.name != node.name and one.decorator_list and not one.bases
    }
    code = text.splitlines()[min(one.lineno for one in (node, *node.decorator_list)) - 1 : node.end_lineno]
    told = ast.get_docstring(tree) if module.startswith("rollcall.algorithms.") else ast.get_docstring(node)
    return Part(name, told or "", "\n".join(code), tuple(_with_bases(module, node)), states)


def _with_bases(module: str, node: Definition) -> Iterator[Definition]:
    yield node
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        inner = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(inner, ast.Name) and inner.id not in ("Algorithm", "Generic", "ABC"):
            yield from _with_bases(*definition(module, inner))
