"""Figures of rows with an interval, and of points: what is drawn, by hand. A half width is t(0.975, 2) s / sqrt(3) = 2.48414 s."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.figures import intervals, orders_chart, overall_chart, paper_curves, printed_chart
from rollcall.leaderboard.names import COLOURS
from rollcall.leaderboard.paper.experiment import Printed
from rollcall.leaderboard.paper.quantities import estimate, geometric
from rollcall.leaderboard.paper.reproduction import Judged
from rollcall.leaderboard.ranking import rank
from rollcall.leaderboard.tables import overall
from tests.support.results import COMPARED, ends, experiment, run_of, runs

ACCURACY = Metric("test/accuracy")


def drawn(chart, field="low"):
    """The rows with a field in the data of a chart."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows if field in row]


def scale(view, channel="x"):
    return next(
        layer["encoding"][channel]["scale"] for layer in view["layer"] if "sort" in layer["encoding"].get("y", {})
    )


def test_measured_numbers_are_multiples_of_printed_ones(monkeypatch):
    """FedAvg has 0.6 and MIFA 0.8, both with s = 0.1, and the difference is 0.2 for every seed."""
    both = product(("often", "seldom"), ("fedavg", "mifa"))
    labels = [{"participation": where, "algorithm": method} for where, method in both]
    numbers = [Printed(cell, ACCURACY, value, None) for cell, value in zip(labels, (0.75, 0.5, -2.0, 0.1), strict=True)]
    monkeypatch.setattr(intervals, "printed", lambda experiment: numbers)
    stated = {"tag": "paper", "statement": "PBC-31", "section": "VII", "printed": 0.4}
    stated["where"] = {"participation": "often"}
    claims = tuple(claim.model_copy(update=stated) for claim in COMPARED.claims)
    trial = COMPARED.trial | {"rounds": 2000}
    made = COMPARED.model_copy(update={"name": "fedpbc/fig", "trial": trial, "claims": claims, "reported": ()})
    chart = printed_chart([Judged(made, runs(made, ends))])
    shown = [f"{where}, {name}, test accuracy" for where in ("often", "seldom") for name in ("FedAvg", "MIFA")]
    names = [f"A figure: {row}" for row in ("PBC-31", *shown)]
    assert [row["row"] for row in drawn(chart)] == names
    assert [row["line"] for row in drawn(chart)] == ["FedPBC"] * 5
    found = np.array([[row[name] for name in ("value", "low", "high")] for row in drawn(chart)])
    assert found == pytest.approx(
        np.array([
            [0.5, 0.5, 0.5],
            [0.8, 0.351586 / 0.75, 0.848414 / 0.75],
            [1.6, 0.551586 / 0.5, 1.048414 / 0.5],
            [-0.3, -0.848414 / 2, -0.351586 / 2],
            [3, 3, 3],  # 8, at the edge
        ]),
        rel=1e-5,
    )  # fmt: skip
    short = drawn(printed_chart([Judged(made, runs(made, ends, rounds=1000))]))
    assert [row["row"] for row in short] == [f"{name}, 1,000 of 2,000 rounds" for name in names]


def test_mean_ranks_have_the_interval_over_seeds():
    """A is first but in seed 2 of one of two conditions, where both are equal: ranks 1, 1, 1.25 with s = 0.144338."""
    values = {"B": (0.2, 0.3, 0.4), "A": (0.3, 0.4, 0.4)}
    made = [
        run_of(
            f"file.py:{name}", seed, pd.DataFrame({"test/accuracy": [0.1, value]}, index=[0, 10]), participation=where
        )
        for where, more in (("full", 0.0), ("trace", 0.1))
        for name in values
        for seed, value in enumerate(one + more * (name == "A") for one in values[name])
    ]
    rows = drawn(overall_chart(overall(rank(made, [ACCURACY], last_rounds=1))))
    assert [row["row"] for row in rows] == ["A", "B"]
    half = 2.48414 * 0.144338
    for row, mean in zip(rows, (13 / 12, 23 / 12), strict=True):
        assert [row[name] for name in ("value", "low", "high")] == pytest.approx(
            [mean, mean - half, mean + half], rel=1e-5
        )


def test_gaps_of_orders_are_ratios_on_a_logarithmic_axis_or_points_on_a_linear_one():
    """The logarithms to base 2 of the ratios are 0, 1 and 2; the differences of accuracy 0, 0.1 and 0.2."""

    def order(title, metric, *gaps):
        rows = [SimpleNamespace(part=title, setting=name) for name, _, _ in gaps]
        one = [
            SimpleNamespace(row=row, metric=metric, gap=gap, printed=number)
            for row, (_, gap, number) in zip(rows, gaps, strict=True)
        ]
        return SimpleNamespace(title=title), one

    ratios = order("errors", Metric("train/loss"), ("a", geometric(np.array([1.0, 2.0, 4.0])), 3.0))
    linear = order("accuracies", ACCURACY, ("b", estimate([0.0, 0.1, 0.2]), None), ("c", estimate([0.1] * 3), 0.2))
    chart = orders_chart([ratios, linear])
    rows = {row["row"]: [row[name] for name in ("value", "low", "high")] for row in drawn(chart)}
    assert rows["errors: a"] == pytest.approx([2, 2 ** (1 - 2.48414), 2 ** (1 + 2.48414)], rel=1e-5)
    assert rows["accuracies: b"] == pytest.approx([10, -14.8414, 34.8414], rel=1e-5)
    assert rows["accuracies: c"] == pytest.approx([10, 10, 10])
    views = chart.to_dict()["concat"]
    assert [scale(view).get("type") for view in views] == ["log", None]
    points = [row for row in drawn(chart, "value") if "low" not in row]
    assert [(row.get("row"), row["value"]) for row in points] == [
        (None, 1), ("errors: a", 3), (None, 0), ("accuracies: c", 20),
    ]  # fmt: skip


def test_one_metric_against_another_has_a_point_for_each_cell():
    """Seeds have losses of 1, 2, 3 and 2, 3, 4 against accuracies of 50, 60, 70 % and 20 % more."""
    made = experiment(report={"metrics": {"test/accuracy": "max"}, "against": ["test/loss", "train/loss"]})
    found = runs(made, ends)
    for run in found:
        loss = 1.0 + int(run.tags["seed"]) + (run.settings["algorithm"] == "mifa")
        run.history["test/loss"], run.history["train/loss"] = loss, 10 * loss
    rows = drawn(paper_curves(made, cells(made, found)), "sd")
    shown = [[row[name] for name in ("plot", "line", "where", "x", "value", "sd", "seeds")] for row in rows]
    often, seldom = ([one[:2] + one[3:] for one in shown if one[2] == where] for where in ("often", "seldom"))
    assert often == seldom == [
        [0, "FedAvg", 2, 60, 10, 3], [0, "MIFA", 3, 80, 10, 3], [1, "FedAvg", 20, 60, 10, 3], [1, "MIFA", 30, 80, 10, 3],
    ]  # fmt: skip


def test_one_metric_against_another_without_runs():
    made = experiment(report={"metrics": {"test/accuracy": "max"}, "against": ["test/loss", "train/loss"]})
    with pytest.raises(SettingError, match="metric: 'test/accuracy' was measured in no run"):
        paper_curves(made, [])


def test_no_two_methods_have_points_that_look_the_same():
    """FedPBC and FedSGD by importance are both vermilion triangles where lines tell them apart by their dashes."""
    grid = {"seed": [0], "algorithm": ["fedpbc", "fedsgd_iw", "ca_fed"]}
    made = experiment(grid=grid, report={"metrics": {"test/accuracy": "max"}, "against": ["test/loss"]})
    found = runs(made, lambda labels, seed: 0.5)
    for run in found:
        run.history["test/loss"] = 1.0
    encoded = paper_curves(made, cells(made, found)).to_dict()["concat"][0]["encoding"]
    looks = zip(encoded["color"]["scale"]["range"], encoded["shape"]["scale"]["range"], strict=True)
    assert [*looks] == [(COLOURS["vermilion"], shape) for shape in ("triangle-up", "triangle-down", "square")]


@pytest.mark.parametrize(("over", "column"), [("gradients", "cost/gradients"), ("floats", "cost/floats_up")])
def test_a_curve_over_a_cost_is_at_the_mean_cost_of_its_seeds(over, column):
    """Seeds 0, 1 and 2 have spent 1, 2 and 6 a round."""
    found = runs(COMPARED, lambda labels, seed: [0.1, 0.2, 0.4], rounds=20)
    for run in found:
        run.history[column] = (1.0, 2.0, 6.0)[int(run.tags["seed"])] * run.history.index
    data = paper_curves(COMPARED.model_copy(update={"reported": ()}), cells(COMPARED, found), over).data
    own = data.query("plot == 0 and line == 'MIFA'")
    assert own[["x", "round", over, "value"]].to_numpy().tolist() == [[0, 0, 0, 10], [30, 10, 30, 20], [60, 20, 60, 40]]
