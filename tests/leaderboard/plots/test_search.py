"""The figures of a search show its samples."""

import itertools

import numpy as np
import pandas as pd
import pytest

from rollcall.leaderboard.plots.search import best_so_far, expected, expected_best, sensitivity

SAMPLES = pd.DataFrame(
    {
        "cell": ["a", "a", "a", "a", "b", "b"],
        "local.lr": [0.01, 0.1, 1.0, 10.0, 0.1, 1.0],
        "server.optimizer": ["sgd", "adam", "sgd", "sgd", None, None],
        "score": [0.3, 0.5, 0.4, np.nan, 0.2, 0.1],
        "state": ["finished", "stopped", "finished", "failed", "finished", "finished"],
        "gradients": [10.0, 5.0, 10.0, 1.0, 7.0, 7.0],
    }
)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_expected_best_is_the_mean_over_all_draws(n, mode):
    scores = np.array([0.3, 0.9, 0.1, 0.5])
    best = {"max": max, "min": min}[mode]
    draws = [best(draw) for draw in itertools.product(scores, repeat=n)]
    assert expected(scores, n, mode) == pytest.approx(np.mean(draws))


def lines(figure, plot=0):
    made = {}
    for row in figure.spec["datasets"]["long"]:
        if row["plot"] == plot:
            made.setdefault(row["line"], []).append((row["x"], row["value"]))
    return made


def test_each_setting_has_a_subplot_of_the_samples_with_all_rounds():
    figure = sensitivity(SAMPLES, ["local.lr", "server.optimizer"], "validation/accuracy", "max")
    rates, optimizers = (view["layer"][0]["encoding"] for view in figure.spec["concat"])
    assert (rates["x"]["title"], rates["x"]["scale"]["type"], rates["y"]["title"]) == (
        "local.lr", "log", "validation accuracy %"
    )  # fmt: skip
    assert lines(figure) == {"a": [(0.01, 30), (1, 40)], "b": [(0.1, 20), (1, 10)]}  # 0.5 is of a sample stopped early
    assert optimizers["x"]["type"] == "nominal"
    assert lines(figure, 1) == {"a": [("sgd", 30), ("sgd", 40)]}
    assert "1 samples that were stopped early are left out" in figure.spec["title"]["text"][0]


def test_best_so_far_counts_gradients_of_stopped_samples_but_not_their_scores():
    made = lines(best_so_far(SAMPLES, ["local.lr"], "validation/accuracy", "max"))
    assert made == {"a": [(10, 30), (15, 30), (25, 40), (26, 40)], "b": [(7, 20), (14, 20)]}
    lower = lines(best_so_far(SAMPLES, ["local.lr"], "validation/loss", "min"))
    assert [value for _, value in lower["b"]] == [0.2, 0.1]


def test_expected_best_ends_at_the_number_of_samples_with_all_rounds():
    made = lines(expected_best(SAMPLES, ["local.lr"], "validation/accuracy", "max"))
    assert made == {"a": [(1, pytest.approx(35))], "b": [(1, pytest.approx(15))]}


def test_a_cell_has_the_style_of_its_method():
    samples = SAMPLES.assign(cell=["mifa", "mifa", "mifa", "mifa", "fedavg", "fedavg"])
    figure = best_so_far(samples, ["local.lr"], "validation/accuracy", "max")
    colour = figure.spec["concat"][0]["layer"][1]["encoding"]["color"]["scale"]
    assert dict(zip(colour["domain"], colour["range"], strict=True)) == {"MIFA": "#000000", "FedAvg": "#0072b2"}
