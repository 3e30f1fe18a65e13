"""A figure as a specification and as a file."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pandas as pd
import pytest

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.plots.curves import ranking_figure
from rollcall.leaderboard.plots.figure import plain, room, stretches
from rollcall.leaderboard.ranking import rank
from rollcall.leaderboard.runs import Run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def figure():
    made = [
        Run(
            {"algorithm": method, "seed": str(seed), "commit": "abc", "version": "1"},
            {"algorithm": method, "seed": str(seed), "rounds": 20},
            pd.DataFrame({"test/accuracy": [0.1, 0.4 + seed / 10, 0.5]}, index=[0, 10, 20]),
        )
        for method in ("mifa", "a.py:<script>", "fedavg")
        for seed in (0, 1)
    ]
    return ranking_figure(rank(made, [Metric("test/accuracy")], last_rounds=1))


def test_svg_has_real_text_a_title_and_a_description(figure):
    root = ElementTree.fromstring(figure.svg)
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert (root[0].text, root[1].tag) == ("test accuracy % against round", f"{SVG}desc")
    assert root[1].text == "Lines, with last values: MIFA 50; <script> 50; FedAvg 50."
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"MIFA", "FedAvg", "<script>", "round", "test accuracy %"} <= texts
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', figure.svg)]
    assert min(sizes) >= 11
    assert 'fill="white"' in figure.svg


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_the_ending_decides_the_format(ending, start, figure, tmp_path):
    figure.save(tmp_path / "new" / f"a.{ending}")
    assert (tmp_path / "new" / f"a.{ending}").read_bytes().startswith(start)


def test_a_browser_gets_tooltips_and_a_legend_that_toggles_and_a_file_gets_neither(figure):
    layers = {layer.get("name"): layer for layer in figure.spec["concat"][0]["layer"]}
    assert [one["title"] for one in layers["hover0"]["encoding"]["tooltip"]] == [
        "method", "round", "test accuracy %", "sd", "seeds"
    ]  # fmt: skip
    (toggled,) = figure.spec["params"]
    assert (toggled["bind"], toggled["views"]) == ("legend", ["curve0"])
    assert layers["curve0"]["encoding"]["opacity"]["condition"]["param"] == toggled["name"]
    (row,) = [row for row in figure.spec["datasets"]["long"] if (row["line"], row["x"]) == ("MIFA", 10)]
    assert (row["value"], row["seeds"]) == (45, 2)
    assert row["sd"] == pytest.approx(100 * 0.1 / 2**0.5, rel=1e-5)
    assert "hover0" not in figure.svg


def test_of_overlapping_lines_the_one_below_is_wider(figure):
    (width,) = [
        layer["encoding"]["strokeWidth"]["scale"]["range"]
        for layer in figure.spec["concat"][0]["layer"]
        if "strokeWidth" in layer["encoding"]
    ]
    assert width == sorted(width, reverse=True)
    assert width[0] >= 1.5 * width[-1]


def test_numbers_of_a_row_are_short_and_finite():
    assert plain({"a": 1 / 3, "b": float("nan"), "c": 2.0, "d": "x", "e": None, "f": -1e-9}) == {
        "a": 0.333333, "b": None, "c": 2, "d": "x", "e": None, "f": -1e-9
    }  # fmt: skip


def test_room_at_the_ends_of_an_axis():
    assert room([0.0, 100.0]) == [-3.0, 103.0]
    assert room([5.0]) == [4.5, 5.5]
    assert room([]) == [-0.03, 1.03]
    low, high = room([0.0, 1e-3, 1.0, float("nan")], log=True)  # 0 has no logarithm
    assert 0.8e-3 < low < 1e-3 < 1.0 < high < 1.2


def test_stretches():
    assert stretches(pd.Series([1, 1, 0, 1], dtype=bool).to_numpy()) == [(0, 2), (3, 4)]
    assert stretches(pd.Series([0, 0], dtype=bool).to_numpy()) == []


def test_a_specification_needs_neither_matplotlib_nor_the_converter():
    code = (
        "import sys, rollcall.leaderboard.plots.curves, rollcall.leaderboard.plots.participation;"
        "sys.exit(len({'matplotlib', 'vl_convert'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
