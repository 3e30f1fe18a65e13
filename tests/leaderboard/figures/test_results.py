"""Figures of papers and rankings show the numbers of the runs."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from rollcall import leaderboard
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.figures import results as curves
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.figures.results import paper_curves, ranking_curves, subplots
from rollcall.leaderboard.leaderboards import ranking_leaderboard
from rollcall.leaderboard.names import COLOURS, DASHES, OWN, style
from rollcall.leaderboard.paper.experiment import Printed
from rollcall.leaderboard.ranking import rank
from rollcall.leaderboard.site.build import collect
from tests.support import results
from tests.support.results import diverging, ends, experiment, run_of

COMPARED = results.COMPARED.model_copy(update={"reported": ()})


def runs(*of, **options):
    """Runs with an evaluation between the first and the last one, equal to the first: a curve."""
    made = results.runs(*of, **options)
    for index, run in enumerate(made):
        if len(run.history) == 2 and run.rounds > 10:
            middle = run.history.rename({run.rounds: run.rounds // 2}).assign(**run.history.loc[0])
            made[index] = replace(run, history=pd.concat([run.history, middle.iloc[1:]]).sort_index())
    return made


def views(chart):
    """The plots of a chart as a specification that Vega-Lite's schema allows."""
    return chart.to_dict()["concat"]


def titles(chart):
    """The titles of the plots, in one line each."""
    return [" ".join(view["title"]["text"]) for view in views(chart)]


def caption(chart):
    return " ".join(chart.to_dict()["title"]["text"])


def lines(chart, plot=0):
    """Points (x, value) of each line of a plot."""
    own = chart.data[chart.data["plot"] == plot]
    return {line: list(zip(rows["x"], rows["value"], strict=True)) for line, rows in own.groupby("line", sort=False)}


def of_paper(chart, plot=0):
    """Printed numbers (line, x, value) of a plot; x is None for a final value."""
    names = [layer["data"]["name"] for layer in views(chart)[plot]["layer"] if "name" in layer.get("data", {})]
    data = chart.to_dict()["datasets"]
    return [(row["line"], row["x"], row["value"]) for name in names for row in data[name]]


def looks(chart, channel):
    """The scale of a channel by line."""
    encodings = [layer["encoding"] for view in views(chart) for layer in view.get("layer", [view])]
    scale = next(one[channel]["scale"] for one in encodings if channel in one)
    return dict(zip(scale["domain"], scale["range"], strict=True))


def y(chart, plot=0):
    """The y channel of the lines of a plot."""
    return next(layer["encoding"]["y"] for layer in views(chart)[plot]["layer"] if layer["mark"]["type"] == "line")


def described(made):
    drawn = subplots(made, cells(made, runs(made, lambda labels, seed: 0.5)))
    return [(subplot.title, subplot.metric.name, list(subplot.lines)) for subplot in drawn]


def test_a_subplot_for_each_label_of_the_columns_or_pictures():
    report = {"metrics": {"test/accuracy": "max"}}
    both = ["often, FedAvg", "often, MIFA", "seldom, FedAvg", "seldom, MIFA"]
    assert described(experiment(report=report)) == [("", "test/accuracy", both)]
    assert described(experiment(report=report | {"columns": ["participation"]})) == [
        ("often", "test/accuracy", ["FedAvg", "MIFA"]), ("seldom", "test/accuracy", ["FedAvg", "MIFA"]),
    ]  # fmt: skip
    both = report | {"columns": ["participation"], "pictures": ["algorithm"]}
    assert described(experiment(report=both)) == [
        ("FedAvg", "test/accuracy", ["often", "seldom"]), ("MIFA", "test/accuracy", ["often", "seldom"]),
    ]  # fmt: skip


def test_panels_of_an_overlay_without_titles_have_lines_of_their_own():
    report, grid = {"metrics": {"test/accuracy": "max"}, "overlay": True}, {"seed": [0], "algorithm": ["mifa"]}
    trials = {"rare": {"trial": {"local": {"lr": 0.1}}}, "often": {"trial": {"local": {"lr": 0.2}}}}
    assert described(experiment(report=report, panels=trials, grid=grid))[0][2] == ["rare", "often"]
    one = {"rare": trials["rare"] | {"title": "seldom"}, "often": trials["often"]}
    assert described(experiment(report=report, panels=one, grid=grid))[0][2] == ["seldom", "test accuracy"]


def test_only_numbers_of_a_line_are_printed_beside_it():
    of = {"says": "so", "tag": "ours", "least": 0.0, "at": 50}
    claims = [of | {"printed": 0.9}, of | {"printed": 0.3, "over_round": 10}]
    made = experiment(claims=claims, source="[X]", report={"metrics": {"test/accuracy": "max"}})
    cell = cells(made, runs(made, ends))[0]
    stated = [[*curves._stated(made, [], Metric(name), cell)] for name in ("test/accuracy", "test/accuracy/server")]
    assert [[(row["x"], row["value"]) for row in rows] for rows in stated] == [[(50, 0.9)], []]


def own(method, seed, **settings):
    """A run of the user with an accuracy of 0.1 until round 5 and then `end`."""
    end = settings.pop("end")
    history = pd.DataFrame({"test/accuracy": [0.1, 0.1, end]}, index=[0, 5, 10])
    return run_of(method, seed, history, **settings)


def test_a_ranking_has_a_subplot_for_each_set_of_conditions_and_a_line_for_each_row():
    made = [
        own(method, seed, participation=where, end=float(lr) * accuracy + seed / 8, **{"local.lr": lr})
        for method, accuracy in (("fedavg", 0.25), ("file.py:Mine", 0.5))
        for where in ("full", "trace")
        for lr in ("0.5", "1")
        for seed in (0, 1)
    ]
    figure = ranking_curves(rank(made, [Metric("test/accuracy")], last_rounds=1))
    assert titles(figure) == ["Full", "Trace"]
    for plot in (0, 1):
        assert lines(figure, plot) == {
            "FedAvg, lr=0.5": [(0, 10), (5, 10), (10, 18.75)],
            "FedAvg, lr=1": [(0, 10), (5, 10), (10, 31.25)],
            "Mine, lr=0.5": [(0, 10), (5, 10), (10, 31.25)],
            "Mine, lr=1": [(0, 10), (5, 10), (10, 56.25)],
        }
    colours = looks(figure, "color")
    assert colours["FedAvg, lr=1"] == colours["FedAvg, lr=0.5"] == style("fedavg").colour
    assert {colours["Mine, lr=1"], colours["Mine, lr=0.5"]} <= {*OWN}
    pairs = {(colours[name], tuple(dash)) for name, dash in looks(figure, "strokeDash").items()}
    assert len(pairs) == 4
    assert y(figure)["title"] == "test accuracy %"
    assert y(figure, 1)["title"] is None
    assert y(figure)["scale"]["domain"] == y(figure, 1)["scale"]["domain"]


def test_no_two_lines_look_the_same():
    """Vermilion has four dashes: those of FedPBC (solid), CA-Fed (dashed), FedSGD (dotted) and debiased FedAvg."""

    def styles(*methods):
        rates = [("fedpbc", "0.5"), ("fedpbc", "1"), *((method, "1") for method in methods)]
        made = [own(method, 0, end=0.5, **{"local.lr": lr}) for method, lr in rates]
        figure = ranking_curves(rank(made, [Metric("test/accuracy")], last_rounds=1))
        colour, dash = looks(figure, "color"), looks(figure, "strokeDash")
        return {name: (colour[name], tuple(dash[name])) for name in colour}

    vermilion = COLOURS["vermilion"]
    two = styles("ca_fed")
    assert two["CA-Fed"] == (vermilion, DASHES["dashed"])
    assert two["FedPBC, lr=0.5"] == (vermilion, DASHES["solid"])
    assert two["FedPBC, lr=1"] == (vermilion, DASHES["dashdot"])
    four = styles("ca_fed", "fedsgd_iw", "fedavg_debiased")
    assert len({*four.values()}) == 5
    assert four["FedPBC, lr=1"][0] != vermilion


@pytest.mark.parametrize("of_site", [False, True])
def test_the_figure_of_a_ranking_is_over_the_x_of_its_report_with_its_logarithms(of_site):
    report = {"metrics": {"test/accuracy": "max"}, "x": "gradients", "log": ["y"]}
    made = experiment(source="", report=report)
    found = runs(made, lambda labels, seed: [0.1, 0.2, 0.4], rounds=20)
    for one in found:
        one.history["cost/gradients"] = 3.0 * one.history.index
    figure = collect(made, "mine", found).figure if of_site else ranking_leaderboard(made, Path(), found, {}).figure()
    assert lines(figure)["FedAvg"] == [(0, 10), (30, 20), (60, 40)]
    assert y(figure)["scale"]["type"] == "log"
    by_round = ranking_leaderboard(made, Path(), found, {}, "round").figure()
    assert lines(by_round)["FedAvg"] == [(0, 10), (10, 20), (20, 40)]


def test_figures_have_a_line_for_each_cell_and_a_picture_for_each_column():
    found = cells(COMPARED, runs(COMPARED, ends))
    figure = paper_curves(COMPARED, found)
    assert titles(figure) == ["often", "seldom"]
    assert list(lines(figure)) == ["FedAvg", "MIFA"]
    assert lines(figure)["MIFA"] == [(0, 0), (50, 0), (100, 80)]
    assert looks(figure, "color") == {"FedAvg": COLOURS["blue"], "MIFA": COLOURS["black"]}


def test_printed_numbers_are_rules_in_the_colour_of_the_line(monkeypatch):
    number = Printed({"participation": "often", "algorithm": "mifa"}, Metric("test/accuracy"), 0.75, 0.01)
    monkeypatch.setattr(curves, "printed", lambda experiment: [number])
    figure = paper_curves(COMPARED, cells(COMPARED, runs(COMPARED, ends)))
    assert of_paper(figure) == [("MIFA", None, 75)]
    (rule,) = [layer for layer in views(figure)[0]["layer"] if layer["mark"]["type"] == "rule"]
    assert rule["encoding"]["color"]["scale"] == views(figure)[0]["layer"][0]["encoding"]["color"]["scale"]
    assert "printed in the paper" in caption(figure)


def test_figures_over_an_axis():
    axis = experiment(
        grid={"seed": [0, 1], "local.lr": [0.1, 0.2, 0.4], "algorithm": ["fedavg", "mifa"]},
        report={"metrics": {"test/loss": "min"}, "x": "local.lr", "columns": ["local.lr"]},  # which are no pictures
    )
    made = runs(axis, lambda labels, seed: float(labels["local.lr"]) + seed)
    for run in made:
        run.history["test/loss"] = run.history["test/accuracy"]
    figure = paper_curves(axis, cells(axis, made))
    assert lines(figure) == {name: [(0.1, 0.6), (0.2, 0.7), (0.4, 0.9)] for name in ("FedAvg", "MIFA")}


@pytest.mark.parametrize("over", ["", "gradients"])
def test_a_logarithmic_x_axis_begins_at_the_first_positive_x(over):
    log = experiment(report={"metrics": {"test/accuracy": "max"}, "log": ["x"]})
    made = runs(log, lambda labels, seed: [0.25, 0.5, 0.5, 0.75])
    for run in made:
        run.history["cost/gradients"] = 2.0 * run.history.index
    figure = paper_curves(log, cells(log, made), over)
    a, b, c = (20, 40, 60) if over else (10, 20, 30)
    assert lines(figure)["often, FedAvg"] == [(a, 50), (b, 50), (c, 75)]
    assert {tuple(layer["encoding"]["x"]["scale"]["domain"]) for layer in views(figure)[0]["layer"]} == {(a, c)}


def test_a_band_that_reaches_0_ends_at_its_line_on_a_logarithmic_y_axis():
    """Two seeds at 0 and 3 have mean 1.5 and standard deviation 2.12; seeds at 3 and 5 have 4 and 1.41."""
    log = experiment(report={"metrics": {"test/loss": "min"}, "log": ["y"]})
    ends = [[3.0, 0.0, 3.0], [5.0, 3.0, 5.0]]
    made = runs(log, lambda labels, seed: ends[seed], metric="test/loss", skip=(2,))
    data = paper_curves(log, cells(log, made)).data.query("line == 'often, FedAvg'")
    assert data[["x", "value", "low", "high"]].to_numpy().tolist() == [
        [0, 4, 2.58579, 5.41421],
        [10, 1.5, 1.5, 3.62132],
        [20, 4, 2.58579, 5.41421],
    ]


def test_points_over_an_axis_are_means_over_the_seeds_that_they_have():
    """At 0.2 seed 2 is missing, at 0.4 seeds 1 and 2 are, and at 0.8 all seeds diverged."""
    axis = experiment(
        grid={"seed": [0, 1, 2], "local.lr": [0.1, 0.2, 0.4, 0.8], "algorithm": ["fedavg"]},
        report={"metrics": {"test/accuracy": "max"}, "x": "local.lr"},
    )
    had = {("0.1", "0"), ("0.1", "1"), ("0.1", "2"), ("0.2", "0"), ("0.2", "1"), ("0.4", "0")}
    made = runs(axis, lambda labels, seed: (1 + seed) / 8)
    kept = [run for run in made if (run.settings["local.lr"], run.tags["seed"]) in had]
    kept += [diverging(run) for run in made if run.settings["local.lr"] == "0.8"]
    figure = paper_curves(axis, cells(axis, kept))
    assert figure.data[["x", "value", "low", "high", "seeds"]].to_numpy().tolist() == [
        [0.1, 25, 12.5, 37.5, 3],
        [0.2, 18.75, 9.91117, 27.5888, 2],  # 12.5 / sqrt(2) = 8.83883
        [0.4, 12.5, 12.5, 12.5, 1],
    ]
    assert "Points have 1 to 3 seeds." in caption(figure)


def test_figures_over_decades():
    decades = experiment(report={"metrics": {"test/accuracy": "min"}, "columns": ["participation"], "log": ["y"]})
    values = {"fedavg": [2.0, 10.0**6, 10.0**6], "mifa": [1.0, 1e-4, 1e-4]}
    found = cells(decades, runs(decades, lambda labels, seed: [v * 10**seed for v in values[labels["algorithm"]]]))
    figure = paper_curves(decades, found)
    # Seeds a decade apart: the middle one is the mean of the logarithms, and the band a decade wide on both sides.
    assert {name: [value for _, value in points] for name, points in lines(figure).items()} == {
        "FedAvg": pytest.approx([2000.0, 10.0**9, 10.0**9]),
        "MIFA": pytest.approx([1000.0, 0.1, 0.1]),
    }
    (band,) = figure.data.query("plot == 0 and line == 'MIFA' and x == 10").to_dict("records")
    assert (band["low"], band["high"]) == pytest.approx((1e-2, 1.0))
    assert y(figure)["scale"]["type"] == "log"
    assert y(figure)["scale"]["domain"][1] == pytest.approx(2000e3)  # what diverges leaves the picture
    ended = runs(decades, lambda labels, seed: [2.0, 1.0])
    diverged = [diverging(run) if run.settings["algorithm"] == "mifa" else run for run in ended]
    figure = paper_curves(decades, cells(decades, diverged))
    assert list(lines(figure)) == ["FedAvg"]
    assert "Without runs that diverged: MIFA." in caption(figure)


@pytest.mark.parametrize("name", ["fedpbc/parity", "findings/model"])
def test_the_committed_pictures_are_those_of_the_committed_results(name):
    _, key = theme._spec(curves.curves(name, None))
    file = Path(leaderboard.__file__).parent / "pictures" / f"{name}.svg"
    assert key in file.read_text(encoding="utf-8"), f"{file}: draw it again with `rollcall report`"


def test_a_curve_is_a_mean_over_the_same_seeds_everywhere():
    made = runs(COMPARED, ends)
    for run in made:
        if run.tags["seed"] == "0":
            run.history.loc[5] = run.history.iloc[-1]
    assert [x for x, _ in lines(paper_curves(COMPARED, cells(COMPARED, made)))["FedAvg"]] == [0, 50, 100]
    own = [
        run_of("fedavg", seed, pd.DataFrame({"test/loss": values}, index=[0, 5, 7, 10], dtype=float))
        for seed, values in {0: [0.0, 0.5, 0.5, 1.0], 1: [0.0, None, 0.5, 2.0]}.items()
    ]
    figure = ranking_curves(rank(own, [Metric("test/loss", "min")], last_rounds=1))
    assert lines(figure)["FedAvg"] == [(0, 0), (7, 0.5), (10, 1.5)]
