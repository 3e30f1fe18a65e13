"""Docstrings as Markdown and as reStructuredText. They are plain text with Google's sections."""

import re
from dataclasses import dataclass

SECTIONS = ("Args", "Attributes", "Raises", "Returns", "Yields")
PROSE = ("References", "Differences from the paper")
"""Sections of a method's file that hold sentences."""
CODE = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*]+\*\*)", re.DOTALL)
TITLE = re.compile(r"(?<![\w*])\*[A-Z][^*]*\w\*(?!\w)")
"""A title in italics, which is the only emphasis in docstrings."""


@dataclass(frozen=True)
class Docstring:
    """A docstring in parts.

    Attributes:
        body: the text before the first section.
        meanings: the text about each parameter or attribute.
    """

    body: str
    meanings: dict[str, str]


def parse(text: str | None) -> Docstring:
    """Split a docstring (as `inspect.getdoc` gives it) into its body and the meanings of its parameters."""
    body: list[str] = []
    meanings: dict[str, str] = {}
    section, names = "", []
    for line in (text or "").splitlines():
        title = line.removesuffix(":")
        if line.endswith(":") and title in SECTIONS:
            section = title
        elif not section:
            body.append(line)
        elif section in ("Args", "Attributes"):
            entry = re.match(r" {4}(\w+(?:, \w+)*): (.*)", line)
            if entry:
                names = entry[1].split(", ")
                meanings |= dict.fromkeys(names, entry[2])
            elif line.strip():
                meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return Docstring("\n".join(body).strip(), meanings)


def summary(text: str) -> str:
    """The first paragraph of a body, on one line."""
    return " ".join(text.split("\n\n")[0].split())


def markdown(text: str) -> str:
    """Plain text as Markdown: an indented block is literal, and signs that Markdown would read are escaped."""
    blocks = []
    for block in re.split(r"\n{2,}", "\n".join(_unfolded(text.split("\n")))):
        if block and all(line.startswith("    ") for line in block.splitlines()):
            blocks.append(f"```text\n{block}\n```")
        else:
            blocks.append(escaped(block, r"[\\*_<\[\]{}$|]"))
    return "\n\n".join(blocks)


def restructured(lines: list[str]) -> list[str]:
    """Lines of a docstring as reStructuredText: an indented block of the body is literal, the rest is escaped."""
    result: list[str] = []
    section = literal = False
    for line in _escaped_text(_unfolded(lines)):
        indented = line.startswith("    ")
        section = section or line.removesuffix(":") in SECTIONS
        if not section and indented and not literal and (not result or not result[-1]):
            result += ["::", ""]
            literal = True
        elif line and not indented:
            literal = False
        result.append(re.sub(r"\\(?=[*_|\\])", "", line) if literal else line)
    return result


def _unfolded(lines: list[str]) -> list[str]:
    """Lines with the `PROSE` sections below bold titles, and one colon instead of two before a literal block."""
    result: list[str] = []
    prose = False
    for line in lines:
        if line.endswith(":") and line.removesuffix(":") in PROSE:
            result += [f"**{line.removesuffix(':')}**", ""]
            prose = True
            continue
        prose = prose and (not line or line.startswith("    "))
        result.append(line.removeprefix("    ") if prose else line.removesuffix(":") if line.endswith("::") else line)
    return result


def escaped(text: str, signs: str) -> str:
    """Text with a backslash before each of the signs (a pattern), outside code and titles."""
    parts = CODE.split(text)
    for i in range(0, len(parts), 2):
        kept = TITLE.findall(parts[i])
        plain = [re.sub(signs, r"\\\g<0>", part) for part in TITLE.split(parts[i])]
        parts[i] = plain[0] + "".join(title + part for title, part in zip(kept, plain[1:], strict=True))
    return "".join(parts)


def _escaped_text(lines: list[str]) -> list[str]:
    return escaped("\n".join(lines), r"[\\*|]|_(?!\w)").split("\n")
