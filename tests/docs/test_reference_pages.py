"""The generated reference: small models and docstrings with the text written out, and nothing missing of the real ones."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import pytest
import reference_pages as reference
from annotated_types import Ge, Lt
from pydantic import BaseModel, Field, PositiveInt
from reference_pages import markdown

from rollcall.benchmark.config.choice import KINDS, options
from rollcall.benchmark.config.described import parse, type_in_words

DOCSTRING = """What x_i* is, for `a_b`.

    x_i = y*

Args:
    x, y: [m, d], two lines
        of text.
    z: one.

Raises:
    ValueError: no part of a meaning.
"""


class Inner(BaseModel):
    """Some."""

    depth: PositiveInt = Field(2, description="of the network")


def test_docstring_is_split():
    said = parse(DOCSTRING)
    assert said.body == "What x_i* is, for `a_b`.\n\n    x_i = y*"
    assert said.meanings == {"x": "[m, d], two lines of text.", "y": "[m, d], two lines of text.", "z": "one."}
    assert said.sections == {"Raises": "ValueError: no part of a meaning."}
    assert parse(None).meanings == {}
    assert markdown("*Fast Learning*. " + said.body) == (
        "*Fast Learning*. What x\\_i\\* is, for `a_b`.\n\n```text\n    x_i = y*\n```"
    )


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int | None, "int | None"),
        (Annotated[float, Ge(0), Lt(1)], "float >= 0 and < 1"),
        (Literal["a", "b", "c"], "'a' | 'b' | 'c'"),
        (tuple[str, ...], "tuple[str, ...]"),
        (Sequence[int] | None, "Sequence[int] | None"),
        (float | np.ndarray, "float | ndarray"),
        (Inner, "Inner"),
    ],
)
def test_type_in_words(annotation, words):
    assert type_in_words(annotation) == words


def test_every_choice_and_option_is_listed():
    pages = reference.pages()
    for kind, of_kind in KINDS.items():
        page = pages[f"choices/{reference.slug(kind)}.md"]
        for name, factory in of_kind.known.items():
            section = page.split(f"## `{name}`\n")[1].split("\n## ")[0]
            for option in options(factory, len(of_kind.parameters)):
                assert f"\n`{option}`\n: " in section


def test_every_command_and_public_name_is_listed():
    commands = reference.command_page()
    assert "## `rollcall leaderboard`" in commands
    assert "* [`check`](#rollcall-check): Run the conformance checks on parts, and explain each failure" in commands
    assert "…" not in commands
    page = reference.api_page()
    assert "simulate(trial: Trial | dict[str, Any] | str | Path, *, folder: Path | str | None = None" in page
    # Methods with their arguments, results and errors.
    assert "### `rollcall.algorithms.LocalWork`" in page
    assert "`correct`\n: \\[a, d\\], added to each client's gradients." in page
    assert "**Returns**: x\\_i(K) \\[a, d\\]." in page


def test_a_method_has_the_papers_algorithm_and_sections():
    page = reference.choices_page("algorithm")
    assert "    x  += eta_g * (1/m) sum over A of D_i   divided by m, not by a" in page
    assert "**When to use**\n\nAs a baseline." in page
