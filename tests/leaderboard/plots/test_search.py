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


def test_each_setting_has_a_subplot():
    rates, optimizers = sensitivity(SAMPLES, ["local.lr", "server.optimizer"], "validation/accuracy", "max").axes
    assert (rates.get_xlabel(), rates.get_xscale(), rates.get_ylabel()) == ("local.lr", "log", "validation/accuracy")
    points = [tuple(point) for dots in rates.collections for point in dots.get_offsets().tolist()]
    assert sorted(points) == [(0.01, 0.3), (0.1, 0.2), (0.1, 0.5), (1.0, 0.1), (1.0, 0.4)]
    assert [label.get_text() for label in optimizers.get_xticklabels()] == ["sgd", "adam"]


def test_best_so_far_counts_gradients_of_stopped_samples_but_not_their_scores():
    (axes,) = best_so_far(SAMPLES, ["local.lr"], "validation/accuracy", "max").axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines["a"] == [[10, 0.3], [15, 0.3], [25, 0.4], [26, 0.4]]
    assert lines["b"] == [[7, 0.2], [14, 0.2]]
    (axes,) = best_so_far(SAMPLES, ["local.lr"], "validation/loss", "min").axes
    assert axes.lines[1].get_ydata().tolist() == [0.2, 0.1]


def test_expected_best_ends_at_the_number_of_samples():
    (axes,) = expected_best(SAMPLES, ["local.lr"], "validation/accuracy", "max").axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert [x for x, _ in lines["a"]] == [1, 3]
    assert lines["a"][0][1] == pytest.approx(0.4)
    assert lines["b"] == [[1, pytest.approx(0.15)]]
