"""Figures of papers and rankings show the numbers of the runs."""

from dataclasses import replace

import pandas as pd
import pytest
from matplotlib.figure import Figure

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.plots.curves import paper_figure, ranking_figure, subplots
from rollcall.leaderboard.plots.style import COLOURS, legend, line_style
from rollcall.leaderboard.ranking import rank
from rollcall.leaderboard.runs import Run, unarchive
from tests.support.results import COMPARED, ends, experiment, runs


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sun/fig1", ["R"]),  # an analysis's own, over two panels
        ("fedpbc/fig4", ["class, from the heaviest", "client, from the rarest", "part of [0, 1]"]),
        ("fedpbc/fig2", ["p2"]),
        ("sun/fig5", ["round", "round"]),
    ],
)
def test_subplots_say_what_they_run_over(name, words):
    paper = Experiment.read(name)
    assert [subplot.x for subplot in subplots(paper, cells(paper, unarchive(paper.home)))] == words


def described(made, ends=lambda labels, seed: 0.5):
    return [
        (subplot.title, subplot.metric.name, list(subplot.lines))
        for subplot in subplots(made, cells(made, runs(made, ends)))
    ]


def test_a_subplot_for_each_label_of_the_columns_or_pictures():
    report = {"metrics": {"test/accuracy": "max"}}
    lines = ["often, fedavg", "often, mifa", "seldom, fedavg", "seldom, mifa"]
    assert described(experiment(report=report)) == [("", "test/accuracy", lines)]
    assert described(experiment(report=report | {"columns": ["participation"]})) == [
        ("often", "test/accuracy", ["fedavg", "mifa"]), ("seldom", "test/accuracy", ["fedavg", "mifa"]),
    ]  # fmt: skip
    both = report | {"columns": ["participation"], "pictures": ["algorithm"]}
    assert described(experiment(report=both)) == [
        ("fedavg", "test/accuracy", ["often", "seldom"]), ("mifa", "test/accuracy", ["often", "seldom"]),
    ]  # fmt: skip


def test_over_rounds_a_threshold_is_shown_by_the_curve_that_reaches_it():
    made = experiment(report={"metrics": {"round_of:test/accuracy>=0.3": "min"}, "columns": ["participation"]})
    assert {metric for _, metric, _ in described(made)} == {"test/accuracy"}


def test_metrics_that_were_not_measured_are_left_out_and_none_is_an_error():
    made = experiment(report={"metrics": {"train/loss": "min", "test/accuracy": "max"}})
    assert [metric for _, metric, _ in described(made)] == ["test/accuracy"]
    with pytest.raises(SettingError, match=r"metric: 'train/loss' was measured in no run of paper/fig"):
        subplots(made, cells(made, []))


def test_a_ranking_has_a_subplot_for_each_set_of_conditions_and_a_line_for_each_method():
    made = [
        Run(
            {"algorithm": method, "seed": str(seed), "commit": "abc", "version": "1"},
            {"algorithm": method, "seed": str(seed), "rounds": "10", "participation": where, "local.lr": lr},
            pd.DataFrame({"test/accuracy": [0.1, float(lr) * accuracy + seed / 8]}, index=[0, 10]),
        )
        for method, accuracy in (("fedavg", 0.25), ("fedpbc", 0.5))
        for where in ("full", "trace")
        for lr in ("0.5", "1")
        for seed in (0, 1)
    ]
    figure = ranking_figure(rank(made, [Metric("test/accuracy")], last_rounds=1))
    assert [axes.get_title() for axes in figure.axes] == ["participation=full", "participation=trace"]
    for axes in figure.axes:  # of each method the row with the better rate
        lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
        assert lines == {"fedpbc": [0.1, 0.5625], "fedavg": [0.1, 0.3125]}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fedpbc", "fedavg"]


def test_figures_have_a_line_for_each_cell_and_a_picture_for_each_column():
    found = cells(COMPARED, runs(COMPARED, ends))
    figure = paper_figure(COMPARED, found)
    assert [axes.get_title() for axes in figure.axes] == ["often", "seldom"]
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["fedavg", "mifa"]
    assert figure.axes[0].get_lines()[1].get_ydata().tolist() == pytest.approx([0.0, 0.8])


def test_numbers_stated_for_a_round_are_points_in_the_colour_of_the_line():
    claim = {
        "says": "mifa is there",
        "tag": "released code",
        "section": "released code, one run",
        "least": 0.0,
        "at": 10,
    }
    stated = claim | {"of": {"algorithm": "mifa"}, "where": {"participation": "often"}, "printed": 0.75}
    made = experiment(claims=[stated, stated | {"at": None, "printed": 0.2}, claim | {"of": {"algorithm": "fedavg"}}])
    figure = paper_figure(made, cells(made, runs(made, ends)))
    points = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())]
    (point,) = points
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (10, 0.75)
    (line,) = [line for line in point.axes.lines if line.get_label() == "often, mifa"]
    assert line.get_color() == point.get_color()
    assert "released code" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_figures_over_an_axis():
    axis = experiment(
        grid={"seed": [0, 1], "local.lr": [0.1, 0.2, 0.4], "algorithm": ["fedavg", "mifa"]},
        report={"metrics": {"test/accuracy": "max"}, "x": "local.lr", "columns": ["local.lr"]},  # which are no pictures
    )
    found = cells(axis, runs(axis, lambda labels, seed: float(labels["local.lr"]) + seed))
    (axes,) = paper_figure(axis, found).axes
    assert [line.get_label() for line in axes.get_lines()] == ["fedavg", "mifa"]
    assert axes.get_lines()[0].get_xydata().ravel() == pytest.approx([0.1, 0.6, 0.2, 0.7, 0.4, 0.9])


def drawn(experiment, cells):
    figure = paper_figure(experiment, cells)
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


def test_metrics_may_have_pictures_of_their_own():
    report = {"metrics": {"test/accuracy": "max", "test/other": "min"}, "drawn": ["test/accuracy", "test/other"]}
    two = experiment(report=report)
    made = runs(two, lambda labels, seed: 0.0 if labels["algorithm"] == "fedavg" else 0.5)  # fedavg's stays at 0
    for run in made:
        run.history["test/other"] = [1.0, 0.0]
    figure = paper_figure(two, cells(two, made))
    assert [axes.get_ylabel() for axes in figure.axes] == ["test/accuracy", "test/other"]
    lines, switches = figure.axes
    assert len(lines.get_lines()) == 4
    assert switches.get_lines() == []  # only ever on or off: a row for each
    assert len(switches.collections) == 4
    nothing = two.model_copy(update={"report": two.report.model_copy(update={"drawn": (Metric("train/none"),)})})
    with pytest.raises(SettingError, match=r"metric: 'train/none' was measured in no run of paper/fig"):
        paper_figure(nothing, cells(nothing, made))


def test_figures_over_decades():
    decades = experiment(report={"metrics": {"test/accuracy": "min"}, "columns": ["participation"], "log": ["y"]})
    values = {"fedavg": [2.0, 10.0**6], "mifa": [1.0, 1e-4]}
    found = cells(decades, runs(decades, lambda labels, seed: [v * 10**seed for v in values[labels["algorithm"]]]))
    axes = paper_figure(decades, found).axes[0]
    # Seeds a decade apart: the middle one is the mean of the logarithms, and the band a decade wide on both sides.
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [
        pytest.approx([20.0, 10.0**7]),
        pytest.approx([10.0, 1e-3]),
    ]
    band = axes.collections[1].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((1e-4, 100.0))
    assert axes.get_ylim()[1] == pytest.approx(20e3)  # what diverges leaves the picture
    diverged = [
        replace(run, tags=run.tags | {"rollcall.diverged": "1"}) if run.settings["algorithm"] == "mifa" else run
        for run in runs(decades, lambda labels, seed: [2.0, 1.0])
    ]
    assert len(paper_figure(decades, cells(decades, diverged)).axes[0].get_lines()) == 1


def test_a_curve_is_a_mean_over_the_same_seeds_everywhere():
    made = runs(COMPARED, ends)
    for run in made:
        if run.tags["seed"] == "0":
            run.history.loc[5] = run.history.iloc[-1]
    axes = paper_figure(COMPARED, cells(COMPARED, made)).axes[0]
    assert 5 not in axes.get_lines()[0].get_xdata()
    histories = {0: [0.0, 0.5, 1.0], 1: [0.0, None, 2.0]}
    own = [
        Run(
            {"algorithm": "fedavg", "seed": str(seed), "commit": "abc", "version": "1"},
            {"algorithm": "fedavg", "seed": str(seed), "rounds": "10"},
            pd.DataFrame({"test/accuracy": values}, index=[0, 5, 10], dtype=float),
        )
        for seed, values in histories.items()
    ]
    (line,) = ranking_figure(rank(own, [Metric("test/accuracy")], last_rounds=1)).axes[0].lines
    assert line.get_xydata().tolist() == [[0.0, 0.0], [10.0, 1.5]]


def test_every_line_has_a_look_of_its_own():
    looks = [line_style(index) for index in range(3 * len(COLOURS))]
    assert len(set(looks)) == len(looks)
    assert [style for _, style in looks[: len(COLOURS)]] == ["-"] * len(COLOURS)


def test_a_legend_names_each_line_once():
    figure = Figure()
    for axes in figure.subplots(1, 2):
        axes.plot([0, 1], label="both")
    legend(figure, least=2)
    assert figure.legends == []
    legend(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["both"]
