"""Which subplots there are, and which lines they have."""

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.leaderboard import unarchive
from rollcall.leaderboard.paper.cells import cells
from rollcall.leaderboard.plots.subplots import subplots
from tests.support.results import experiment, runs


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
