"""A table and its forms."""

import io
import math
import re

import pytest
from rich.console import Console

from rollcall.leaderboard import render
from rollcall.leaderboard.render import Column, Number, Table

COLUMNS = [
    Column("method", words=True),
    Column("lr", words=True),
    Column("accuracy %", arrow="↑"),
    Column("diff"),
    Column("seeds"),
]
ROWS = [
    ["a_1", "0.1", Number(0.5, 0.25, "50.0", "25.0", best=True), Number(-0.1, math.nan, "-10.0"), 2],
    ["b", "", Number(math.inf, math.nan, "inf"), "", 1],
]
TABLE = Table(COLUMNS, ROWS, "how")
PLAIN = Table(COLUMNS[2:], [[Number(0.5, 0.25, "50.0", "25.0"), "", 2]], "how")


def test_markdown():
    assert render.markdown(TABLE) == (
        "| method | lr | accuracy % | diff | seeds |\n"
        "| --- | --- | ---: | ---: | ---: |\n"
        "| a_1 | 0.1 | **50.0 ± 25.0** | -10.0 | 2 |\n"
        "| b |  | inf |  | 1 |\n"
        "\nhow; bold: best\n"
    )
    assert render.markdown(PLAIN).endswith("| 50.0 ± 25.0 |  | 2 |\n\nhow\n")


HARD = render.Table(
    [render.Column("méthode | a_1 ≥ 10 %", words=True), render.Column("minus b ↓")],
    [
        ["a\\b~c^d{e}$f#2&", render.Number(1.5e-9, 2e-9, "-1.5e-9", "2e-9", best=True)],
        ["[x] <b> y-2", "+1.2 [-0.3, 2.1]†"],
        ["[also] at the start of a row", "→ 0"],
        ["p π λ", "≤ 2 × 3"],
    ],
    "of 100 %\nin two lines",
)


def test_latex_of_hard_characters():
    """A row that begins with a bracket would be an option of the line break before it."""
    head, *rows = (line for line in render.latex(HARD).splitlines() if line.endswith(r"\\"))
    assert head == r"méthode \textbar{} a\_1 $\geq$ 10 \% & minus b $\downarrow$ \\"
    assert rows[0].endswith(r"& \textbf{$-$1.5$\cdot10^{-9}$ $\pm$ 2$\cdot10^{-9}$} \\")
    assert rows[1] == r"{[}x] \textless{}b\textgreater{} y-2 & +1.2 [$-$0.3, 2.1]\dag{} \\"
    assert rows[3] == r"p $\pi$ $\lambda$ & $\leq$ 2 $\times$ 3 \\"


def shown(table, width):
    """The lines of a table in a terminal, split into words."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render.terminal(table, "Title", width))
    return [line.split() for line in console.export_text().splitlines() if line.strip()]


def test_terminal_marks_the_best():
    lines = shown(TABLE, 100)
    assert lines[0] == ["Title"]
    assert ["a_1", "0.1", "50.0", "±", "25.0", "*", "-10.0", "2"] in lines
    assert ["b", "inf", "1"] in lines
    assert lines[-1] == ["how;", "*", "best"]


def test_a_wide_table_is_cut_between_schemes_and_within_one_only_if_it_must():
    """Entries of 10 letters, 2 between columns, 1 at the edge: in 45 there is room for the method and three of them."""
    heads = [Column("m", words=True)]
    heads += [Column(f"{above}{n}", group=f"{above}{n}", above=above) for above in "ab" for n in (1, 2)]
    table = Table([*heads, Column("n", group="size")], [["x", *["0123456789"] * 4, "3"]], "")

    def parts(width):
        return [line[1:] for line in shown(table, width) if line[0] == "m"]

    assert parts(100) == [["a1", "a2", "b1", "b2", "n"]]
    assert parts(45) == [["a1", "a2"], ["b1", "b2", "n"]]
    assert parts(20) == [["a1"], ["a2"], ["b1"], ["b2", "n"]]


HOSTILE = [r"\input{/etc/passwd}", "=cmd|'/C calc'!A0", "<script>alert(1)</script>", "[/] [red]x"]


@pytest.mark.fault
def test_a_hostile_label_is_text_in_every_form():
    table = Table([Column("[/]", words=True)], [[label] for label in HOSTILE], "[/]")
    assert [line for line in shown(table, 100) if line[0].startswith(("[/]", "<script"))] == [
        ["[/]"], ["<script>alert(1)</script>"], ["[/]", "[red]x"], ["[/]"],
    ]  # fmt: skip
    tex = render.latex(table)
    assert r"\input" not in tex
    assert r"\textbackslash{}input\{/etc/passwd\}" in tex
    rows = [line for line in render.markdown(table).splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 2 for row in rows)
    assert "&lt;script>" in rows[4]
    csv = render.comma_separated([{"labels": {"algorithm": label}, "mean": -0.5} for label in HOSTILE])
    assert csv.splitlines()[2] == "'=cmd|'/C calc'!A0,-0.5"


def test_a_label_that_is_a_number_is_no_formula():
    csv = render.comma_separated([{"labels": {"s": label}, "mean": 0.5} for label in ("-0.4", "-1e-3", "-x", "-1+2")])
    assert csv.splitlines()[1:] == ["-0.4,0.5", "-1e-3,0.5", "'-x,0.5", "'-1+2,0.5"]
