"""Kept results, printed numbers, the papers' tables and REPRODUCTION.md, from made-up runs."""

import pandas as pd
import pytest

from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment
from leaderboard import archive, unarchive
from leaderboard.cli import archive as keep
from leaderboard.cli import papers
from leaderboard.paper import reported as printed
from leaderboard.paper import table as sheet
from leaderboard.paper.cells import cells
from leaderboard.paper.reproduction import FILE, reproduction
from leaderboard.plots import curves as figures
from leaderboard.plots.panels import pictures
from tests.support.results import experiment, runs


def ends(labels, seed):
    return 0.5 + 0.1 * seed + (0.2 if labels["algorithm"] == "mifa" else 0.0)


COMPARED = experiment(
    report={"metrics": {"test/accuracy": "max"}, "columns": ["participation"]},
    reported=[
        {
            "file": "numbers",
            "axes": {"participation": "scheme", "algorithm": "method"},
            "metric": "{split}/accuracy",
            "value": "percent",
            "spread": "sd",
            "scale": 0.01,
        }
    ],
    claims=[{"says": "mifa leads", "of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}, "least": 0.1}],
    findings=["Seen."],
    choices={"local.lr": "the paper is silent"},
    variants={"as_released": {"about": "raw updates", "grid": {"algorithm": {"mifa": {"name": "mifa", "memory": "updates"}}}}},
)  # fmt: skip


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    (tmp_path / "numbers.csv").write_text(
        "scheme,method,split,percent,sd\noften,fedavg|mifa,test,61.5,0.5\nseldom,fedavg,test,-,\nseldom,mifa,test,40,\n"
    )
    monkeypatch.setattr(printed, "FOLDER", tmp_path)
    return printed.printed(COMPARED)


def test_printed_numbers_in_our_units(numbers):
    assert [(number.labels["participation"], number.labels["algorithm"]) for number in numbers] == [
        ("often", "fedavg"), ("often", "mifa"), ("seldom", "mifa"),
    ]  # fmt: skip
    assert (numbers[0].metric, numbers[0].value, numbers[0].sd) == ("test/accuracy", pytest.approx(0.615), 0.005)
    assert numbers[2].sd is None


def test_the_table_as_the_paper_lays_it_out(numbers):
    table = sheet.paper_table(COMPARED, cells(COMPARED, runs(COMPARED, ends, skip=(2,))), numbers)
    assert table.header == [
        "algorithm", "often test/accuracy %", "paper", "diff", "seldom test/accuracy %", "paper", "diff", "seeds", "rounds",
    ]  # fmt: skip
    assert table.rows == [
        ["fedavg", "55.0 ± 7.1", "61.5 ± 0.5", "-6.5", "55.0 ± 7.1", "", "", "2 of 3", "100 of 100"],
        ["mifa", "75.0 ± 7.1", "61.5 ± 0.5", "+13.5", "75.0 ± 7.1", "40.0", "+35.0", "2 of 3", "100 of 100"],
    ]
    lines = sheet.markdown(table).splitlines()
    assert len({len(line) for line in lines[:4]}) == 1
    assert sheet.comma_separated(table).splitlines()[1].startswith("fedavg,55.0 ± 7.1,61.5 ± 0.5,-6.5,")
    assert r"fedavg & 55.0 $\pm$ 7.1 & 61.5 $\pm$ 0.5 & $-$6.5 &" in sheet.latex(table)
    assert r"test/accuracy \% & paper" in sheet.latex(table)


def test_numbers_end_where_their_spread_does():
    shown = {
        ("test/accuracy", 0.8877, 0.0291): "88.8 ± 2.9",
        ("weight/rare", 0.8877, 0.29): "0.89 ± 0.29",
        ("train/loss", 1234.5, 23.4): "1234 ± 23",
        ("train/loss", 99.96, 0.04): "99.960 ± 0.040",
        ("train/loss", 123456.0, 2345.0): "123456 ± 2345",
        ("train/loss", 1.23456e-9, 3e-10): "1.235e-09 ± 3e-10",
        ("train/loss", 0.5, 0.0): "0.5 ± 0",
    }
    for given, text in shown.items():
        assert sheet.with_spread(*given) == text


def test_results_are_kept_and_read_again(tmp_path):
    made = runs(COMPARED, ends)
    file = archive(made, "paper/fig", ["test/accuracy"], tmp_path)
    again = {run.tags["rollcall.trial"]: run for run in unarchive("paper/fig", tmp_path)}
    assert len(again) == 12
    for run in made:
        kept = again[run.tags["rollcall.trial"]]
        assert (kept.settings, kept.tags) == (run.settings, run.tags)
        pd.testing.assert_series_equal(kept.history["test/accuracy"], run.history["test/accuracy"], check_names=False)
    before = file.read_text()
    archive(made[:1], "paper/fig", ["test/accuracy"], tmp_path)  # the others stay
    assert file.read_text() == before
    assert unarchive("paper/other", tmp_path) == []


@pytest.fixture
def asked(monkeypatch):
    """Of which experiments' runs which metrics are read, to be kept."""
    found = {}
    monkeypatch.setattr("benchmark.sweep.mlflow_mirror.client", lambda store: None)
    monkeypatch.setattr("leaderboard.results.load", lambda client, name, metrics: found.update({name: metrics}) or [])
    return found


@pytest.mark.parametrize(
    ("named", "metric"),
    [
        ("ca_fed/fig1", "weight/rare-lasting"),  # of Fig. 1 (d), which shares its runs
        ("ca_fed/fig1d", "test/accuracy/client_mean"),
    ],
)
def test_what_is_kept_serves_all_experiments_that_share_the_runs(named, metric, asked):
    keep([named])
    assert list(asked) == ["ca_fed/fig1"]
    assert metric in asked["ca_fed/fig1"]


def test_results_of_an_experiment_of_ones_own_are_kept(tmp_path, asked):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "title: Mine\nsource: me\ntrial: {task: digits, rounds: 3}\ngrid: {algorithm: [fedavg]}\n"
        "report: {metrics: {test/loss: min}}\n"
    )
    keep([str(file)])
    assert asked == {"mine": ["test/loss"]}


def test_reproduction_tells_what_was_found(tmp_path, numbers):
    assert "| not run | 1 not run |" in reproduction([COMPARED], tmp_path)
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path)
    raw = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})
    archive(runs(raw, lambda labels, seed: 0.6 + 0.1 * seed), "paper/fig", ["test/accuracy"], tmp_path)
    text = reproduction([COMPARED], tmp_path)
    assert text == reproduction([COMPARED], tmp_path)
    assert "| [paper/fig](#paperfig) | [X] Fig. 1 | 4 of 4 cells | 1 holds |" in text
    assert "- **holds** (holds at 2): mifa leads\n  test/accuracy %, difference, at least 10.0: often: 20.0" in text
    # fedavg 0.5, 0.6, 0.7: 0.6 +- 0.248, printed 0.615; mifa 0.8 +- 0.248: 0.615 agrees, 0.4 does not
    assert "Printed numbers: 2 agree, 1 differs." in text
    assert "- seldom, mifa, test/accuracy: 80.0 [55.2, 104.8], printed 40.0" in text
    assert "| often, mifa  | 80.0  | 70.0        | -10.0 [-10.0, -10.0] | 3     | 100    |" in text
    assert "- Seen." in text
    assert "- seldom: mifa; printed: mifa" in text  # fedavg's number is not printed there
    assert "- often: mifa > fedavg; printed: fedavg > mifa" in text
    assert "- `local.lr`: the paper is silent" in text
    assert "15.0" not in text
    short = reproduction([COMPARED.varied({"rounds": [1000]})], tmp_path)
    assert "4 of 4 cells, reduced" in short
    assert "**holds** (reduced)" in short
    assert "Printed numbers: 3 undecided (reduced)." in short


def test_figures_have_a_line_for_each_cell_and_a_picture_for_each_column(numbers):
    found = cells(COMPARED, runs(COMPARED, ends))
    figure = figures.paper_figure(COMPARED, found)
    assert [axes.get_title() for axes in figure.axes] == ["often", "seldom"]
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["fedavg", "mifa"]
    assert figure.axes[0].get_lines()[1].get_ydata().tolist() == pytest.approx([0.0, 0.8])


def test_figures_over_an_axis():
    axis = experiment(
        grid={"seed": [0, 1], "local.lr": [0.1, 0.2, 0.4], "algorithm": ["fedavg", "mifa"]},
        report={"metrics": {"test/accuracy": "max"}, "x": "local.lr", "columns": ["local.lr"]},  # which are no pictures
    )
    found = cells(axis, runs(axis, lambda labels, seed: float(labels["local.lr"]) + seed))
    (axes,) = figures.paper_figure(axis, found).axes
    assert [line.get_label() for line in axes.get_lines()] == ["fedavg", "mifa"]
    assert axes.get_lines()[0].get_xydata().ravel() == pytest.approx([0.1, 0.6, 0.2, 0.7, 0.4, 0.9])


def drawn(experiment, cells):
    figure = figures.paper_figure(experiment, cells)
    return [(axes.get_title(), [line.get_label() for line in axes.get_lines()]) for axes in figure.axes]


PANELS = {
    "grid": {"seed": [0]},
    "panels": {
        "many": {"title": "", "grid": {"algorithm": ["fedavg", "mifa"], "local.lr": [0.1, 0.2]}},
        "one": {"title": "beside", "trial": {"local": {"steps": 9}}, "grid": {"algorithm": ["fedavg"]}},
    },
}


def test_panels_have_pictures_of_their_own_or_share_them():
    apart = experiment(**PANELS, report={"metrics": {"test/accuracy": "max"}, "columns": ["local.lr"]})
    assert drawn(apart, cells(apart, runs(apart, lambda labels, seed: 0.5))) == [
        ("many, lr 0.1", ["fedavg", "mifa"]), ("many, lr 0.2", ["fedavg", "mifa"]), ("beside", ["fedavg"])
    ]  # fmt: skip
    shared = apart.model_copy(update={"report": apart.report.model_copy(update={"overlay": True})})
    # The panel without a rate stands in both pictures.
    assert drawn(shared, cells(shared, runs(shared, lambda labels, seed: 0.5))) == [
        ("lr 0.1", ["fedavg", "mifa", "beside, fedavg"]), ("lr 0.2", ["fedavg", "mifa", "beside, fedavg"])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sun/fig1", ["R"]),  # an analysis's own, over two panels
        ("fedpbc/fig4", ["class, from the heaviest", "client, from the rarest", "part of [0, 1]"]),
        ("fedpbc/fig2", ["p2"]),
        ("sun/fig5", ["round", "round"]),
    ],
)
def test_pictures_say_what_they_run_over(name, words):
    (paper,) = papers([name])
    assert [picture.x for picture in pictures(paper, cells(paper, unarchive(paper.home)))] == words


def test_metrics_may_have_pictures_of_their_own():
    report = {"metrics": {"test/accuracy": "max", "test/other": "min"}, "drawn": ["test/accuracy", "test/other"]}
    two = experiment(report=report)
    made = runs(two, lambda labels, seed: 0.0 if labels["algorithm"] == "fedavg" else 0.5)  # fedavg's stays at 0
    for run in made:
        run.history["test/other"] = [1.0, 0.0]
    figure = figures.paper_figure(two, cells(two, made))
    assert [axes.get_ylabel() for axes in figure.axes] == ["test/accuracy", "test/other"]
    lines, switches = figure.axes
    assert len(lines.get_lines()) == 4
    assert switches.get_lines() == []  # only ever on or off: a row for each
    assert len(switches.collections) == 4
    nothing = two.model_copy(update={"report": two.report.model_copy(update={"drawn": ("train/none",)})})
    with pytest.raises(SettingError, match=r"metric: 'train/none' was measured in no run of paper/fig"):
        figures.paper_figure(nothing, cells(nothing, made))


def test_figures_over_decades():
    decades = experiment(report={"metrics": {"test/accuracy": "min"}, "columns": ["participation"], "log": ["y"]})
    values = {"fedavg": [2.0, 10.0**6], "mifa": [1.0, 1e-4]}
    found = cells(decades, runs(decades, lambda labels, seed: [v * 10**seed for v in values[labels["algorithm"]]]))
    axes = figures.paper_figure(decades, found).axes[0]
    # Seeds a decade apart: the middle one is the mean of the logarithms, and the band a decade wide on both sides.
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [
        pytest.approx([20.0, 10.0**7]),
        pytest.approx([10.0, 1e-3]),
    ]
    band = axes.collections[1].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((1e-4, 100.0))
    assert axes.get_ylim()[1] == pytest.approx(20e3)  # what diverges leaves the picture


def test_the_committed_reproduction_is_that_of_the_committed_results():
    assert FILE.read_text(encoding="utf-8") == reproduction(papers())


@pytest.mark.parametrize("made", papers(), ids=lambda made: made.name)
def test_printed_numbers_stand_beside_cells_that_there_are(made):
    labels = [cell.labels for cell in cells(made, [])]
    for number in printed.printed(made):
        beside = [where for where in labels if number.labels.items() <= where.items()]
        known = all(label in {where.get(axis) for where in labels} for axis, label in number.labels.items())
        assert beside or not known
    assert isinstance(made, Experiment)
