"""The display names of what an experiment file names, and the style of each method in all figures. Imports no torch."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

from rollcall.benchmark.config.axes import is_number
from rollcall.benchmark.config.text import parsed

COLOURS = {
    "blue": "#0072b2",
    "vermilion": "#d55e00",
    "green": "#009e73",
    "pink": "#cc79a7",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "black": "#000000",
    "violet": "#a53cff",
}
"""For the methods of the suite: the palette of Okabe and Ito, and violet. Colour-blind people can tell them apart."""

OWN = ("#4b0082", "#a50f5e", "#8c510a")
"""For methods of one's own."""

DASHES: dict[str, tuple[int, ...]] = {"solid": (1, 0), "dashed": (8, 3), "dashdot": (8, 3, 2, 3), "dotted": (2, 2)}
"""Lengths of line and gap in pixels."""

SHAPES = ("triangle-right", "triangle-left", "circle", "square", "diamond", "cross", "triangle-up", "triangle-down")
"""Of points, as Vega names them."""


@dataclass(frozen=True)
class Style:
    """How a method looks: a hexadecimal colour, the lengths of line and gap, and the shape of its points."""

    colour: str
    dash: tuple[int, ...]
    shape: str


def method_name(label: str) -> str:
    """The display name of a method: `FedAvg, known p, beta=2` for `fedavg_known beta=2`, `Mine` for `file.py:Mine`."""
    return label_name("algorithm", label)


def labelled(method: str, label: str) -> str:
    """The display name of a method under a label of an experiment file, which may not name it: `CA-Fed, kappa2=1`."""
    name, shown = method_name(method), method_name(label)
    return shown if shown.startswith(name) else name if name.endswith(f" {shown}") else f"{name}, {shown}"


def label_name(axis: str, label: str) -> str:
    """The display text of a label on an axis: a kind such as `participation`, or a setting such as `task.model`.

    The second of two equal choices, `bernoulli#2`, is `Bernoulli (2)`. A label that the suite does not know stays as it
    is written, without the path of a user's file.
    """
    base, number, options = _parts(label)
    own = re.fullmatch(r".*[.]\w+:([^\W\d]\w*)", base)
    words = _entry(axis, base).get("name", own[1] if own else "")
    if not words:
        return label
    return ", ".join([f"{words} ({number})" if number else words, *options])


def label_text(axis: str, label: str, axes: Iterable[str] = ()) -> str:
    """A label beside those of other axes: numbers with the name of their setting, in full if two of them end alike."""
    end = axis.rpartition(".")[2]
    alike = sum(end == other.rpartition(".")[2] for other in axes) > 1
    if not all(map(is_number, label.split(", "))):
        return label_name(axis, label)
    return f"{(axis if alike else end).replace('_', ' ')} {label}"


def label_names(axis: str, labels: Iterable[str]) -> dict[str, str]:
    """The display texts of several labels of an axis; labels whose texts would be equal stay as they are."""
    names = {label: label_name(axis, label) for label in labels}
    often = Counter(names.values())
    return {label: name if often[name] == 1 else label for label, name in names.items()}


def paper_of(axis: str, label: str) -> str:
    """The short citation of what a label names; empty if there is none."""
    return _entry(axis, _parts(label)[0]).get("paper", "")


def style(method: str, methods_shown: Iterable[str] = ()) -> Style:
    """The style of a method in every figure.

    A method of the suite has one fixed style. Rows of it that differ in options share the colour. A method of one's own
    has a colour that no method of the suite has, which follows from its name. If two of the methods shown would look
    alike, the later one by name takes the next free style.
    """
    fixed, dashes = _fixed(method), list(DASHES.values())
    alike = sorted({method, *(label for label in methods_shown if _fixed(label) == fixed)})
    if fixed:
        later = alike.index(method)
        dash, shape = dashes.index(fixed.dash) + later, SHAPES.index(fixed.shape) + later
        return Style(fixed.colour, dashes[dash % len(dashes)], SHAPES[shape % len(SHAPES)])
    free = [Style(colour, dash, shape) for dash, shape in zip(dashes, SHAPES, strict=False) for colour in OWN]
    taken: dict[str, int] = {}
    for label in alike:
        slots = [(crc32(method_name(label).encode()) + step) % len(free) for step in range(len(free))]
        taken[label] = next((slot for slot in slots if slot not in taken.values()), slots[0])
    return free[taken[method]]


@cache
def _names() -> dict[str, dict[str, dict[str, str]]]:
    names: dict[str, dict[str, dict[str, str]]] = parsed(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return names


def _entry(axis: str, name: str) -> dict[str, str]:
    return _names().get(axis.rpartition(".")[2], {}).get(name, {})


def _parts(label: str) -> tuple[str, str, list[str]]:
    """The name, the number after `#`, and the options, such as `beta=2`, of a label."""
    name, *options = re.split(r" (?=[\w.]+=)", label)
    base, _, number = name.partition("#")
    return base, number, options


def _fixed(label: str) -> Style | None:
    words = _entry("algorithm", _parts(label)[0]).get("style")
    if words is None:
        return None
    colour, dash, shape = words.split()
    return Style(COLOURS[colour], DASHES[dash], shape)
