"""The written forms of a table."""

import csv
import io
import json
from html.parser import HTMLParser

import pandas as pd
import pytest
from rich.console import Console

from leaderboard import Run, tabulate
from leaderboard.plots import curves as figures
from leaderboard.ranking import pages

METRICS = {"test/accuracy": "max"}


@pytest.fixture
def table():
    runs = [
        Run(
            {"algorithm": method, "seed": str(seed), "commit": "abc<1>", "version": "1"},
            {"algorithm": method, "seed": str(seed), "rounds": "10", "participation": where},
            pd.DataFrame({"test/accuracy": [0.1, accuracy + seed / 8]}, index=[0, 10]),
        )
        for method, accuracy in (("fedavg", 0.25), ("fedpbc", 0.5))
        for where in ("full", "trace")
        for seed in (0, 1)
    ]
    return tabulate(runs, METRICS, last_rounds=1)


def test_markdown(table):
    lines = pages.markdown(table).splitlines()
    assert lines[0].split() == [
        "|",
        "method",
        "|",
        "participation",
        "|",
        "test/accuracy",
        "|",
        "seeds",
        "|",
        "rounds",
        "|",
    ]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:6]]
    assert cells == [
        ["fedpbc", "full", "**0.5625 ± 0.0884**", "2", "10"],
        ["fedavg", "full", "0.3125 ± 0.0884", "2", "10"],
        ["fedpbc", "trace", "**0.5625 ± 0.0884**", "2", "10"],
        ["fedavg", "trace", "0.3125 ± 0.0884", "2", "10"],
    ]
    assert len({len(line) for line in lines[:6]}) == 1  # columns align in the source too


def test_csv_has_all_digits(table):
    rows = list(csv.DictReader(io.StringIO(pages.comma_separated(table))))
    assert rows[1]["method"] == "fedavg"
    assert float(rows[1]["test/accuracy mean"]) == 0.3125
    assert float(rows[1]["test/accuracy sd"]) == pytest.approx(0.125 / 2**0.5, rel=1e-15)


def test_json(table):
    rows = json.loads(pages.as_json(table))
    assert rows[0]["test/accuracy"]["mean"] == 0.5625
    assert rows[0]["participation"] == "full"


def test_terminal_marks_the_best(table):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(pages.terminal(table, "Title"))
    lines = [line for line in console.export_text().splitlines() if "fed" in line]
    assert [("*" in line) for line in lines] == [True, False, True, False]


def test_html_is_whole_and_escaped(table):
    page = pages.html(table, "A <title>", "about & more", figures.svg(figures.curves(table)))
    assert "A &lt;title&gt;" in page
    assert "about &amp; more" in page
    assert "abc&lt;1&gt;" in page
    assert page.count('class="best"') == 2
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://creativecommons", "").replace(
        "http://purl", ""
    )

    class Cells(HTMLParser):
        rows = 0

        def handle_starttag(self, tag, attributes):
            self.rows += tag == "tr"

    parser = Cells()
    parser.feed(page)
    assert parser.rows == 5


def test_curves_have_a_panel_for_each_arena_and_a_line_for_each_method(table):
    figure = figures.curves(table)
    assert [axes.get_title() for axes in figure.axes] == ["participation=full", "participation=trace"]
    for axes in figure.axes:
        lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
        assert lines == {"fedpbc": [0.1, 0.5625], "fedavg": [0.1, 0.3125]}
