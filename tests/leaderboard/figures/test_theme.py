"""A figure as a specification and as a file."""

import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from pages import blocks

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.figures import ranking_curves, save
from rollcall.leaderboard.ranking import rank
from tests.support.results import run_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def chart():
    made = [
        run_of(method, seed, pd.DataFrame({"test/accuracy": [0.1, 0.4 + seed / 10, 0.5]}, index=[0, 10, 20]))
        for method in ("mifa", "a.py:<script>", "fedavg")
        for seed in (0, 1)
    ]
    return ranking_curves(rank(made, [Metric("test/accuracy")], last_rounds=1))


def test_svg_has_real_text_a_title_and_a_description(chart, tmp_path):
    save(chart, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    title, description = root[0], root[1]
    assert (title.tag, title.text) == (f"{SVG}title", "test accuracy % against round")
    assert (description.tag, description.text) == (f"{SVG}desc", "Lines: MIFA; <script>; FedAvg.")
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"MIFA", "FedAvg", "<script>", "round", "test accuracy %"} <= texts
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', text)) >= 11
    assert 'rect[fill="white"] {fill: none}' in text  # on a dark page
    assert f'<rect width="{root.get("width")}" height="{root.get("height")}" fill="white"' in text


def test_a_label_that_reads_like_the_name_of_a_clipping_path_stays(tmp_path):
    made = [run_of(name, 0, pd.DataFrame({"test/accuracy": [0.1, 0.4]}, index=[0, 9])) for name in ("clip1", "clip10")]
    save(ranking_curves(rank(made, [Metric("test/accuracy")], last_rounds=1)), tmp_path / "a.svg")
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text())
    assert {"clip1", "clip10"} <= {text.text for text in root.iter(f"{SVG}text")}


@pytest.mark.fault
def test_no_file_is_kept_that_may_show_another_chart(chart, tmp_path, monkeypatch):
    drawing, picture = tmp_path / "m.svg", tmp_path / "m.png"
    save(chart, drawing)
    picture.write_bytes(b"of another chart")
    save(chart, drawing, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    whole = drawing.read_text()
    drawing.write_text(whole[:-100])  # stopped while it was written
    save(chart, drawing)
    assert drawing.read_text() == whole
    monkeypatch.setattr("vl_convert.vegalite_to_svg", None)
    save(chart, drawing)  # is not drawn again


def test_the_chart_of_the_documentation_is_changed_as_it_says(tmp_path, monkeypatch):
    (code,) = blocks("docs/howto/results.md", "figures import curves")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code, names)
    spec = names["chart"].to_dict()
    assert spec["columns"] == 2
    assert {(view["width"], view["height"]) for view in spec["concat"]} == {(150, 100)}
    config = spec["config"]
    assert (config["font"], config["axis"]["labelFontSize"]) == ("Times New Roman", 9)
    assert config["axis"]["gridColor"] == "#e5e5e5"  # the rest stays
    assert {*names["chart"].data["line"]} == {"FedAvg", "FedAU", "MIFA", "FedPBC", "FedPBC (server)"}
    assert (tmp_path / "model.pdf").read_bytes().startswith(b"%PDF")
    assert 'font-family="Times New Roman"' in (tmp_path / "model.svg").read_text()


def test_a_row_of_the_data_has_the_mean_its_spread_and_the_seeds(chart):
    (row,) = chart.data.query("line == 'MIFA' and x == 10").to_dict("records")
    assert (row["value"], row["seeds"]) == (pytest.approx(45), 2)
    sd = 100 * 0.1 / 2**0.5
    assert (row["sd"], row["low"], row["high"]) == pytest.approx((sd, 45 - sd, 45 + sd))
