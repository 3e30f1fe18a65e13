"""Parallel coordinates: where the lines run, and which ones are missing."""

import math

import numpy as np
import pandas as pd
import pytest

from rollcall.leaderboard.plots.parallel import parallel, scaled

SAMPLES = pd.DataFrame(
    {
        "cell": ["a", "a", "b", "b"],
        "local.lr": [0.01, 1.0, 0.1, 1.0],
        "server.lr": [1.0, 3.0, math.nan, math.nan],
        "score": [0.2, 0.6, 0.4, math.nan],
        "state": ["finished", "stopped", "finished", "failed"],
    }
)


def test_heights_keep_distances_or_ratios():
    heights, ticks = scaled(pd.Series([1.0, 2.0, 5.0]))
    assert (heights.tolist(), ticks) == ([0, 0.25, 1], {"1": 0, "2": 0.25, "5": 1})
    heights, ticks = scaled(pd.Series([0.01, 0.1, 1.0]))
    assert heights.tolist() == pytest.approx([0, 0.5, 1])
    heights, ticks = scaled(pd.Series(["sgd", None, "adam", "sgd"]))
    assert heights.tolist() == pytest.approx([0, math.nan, 1, 0], nan_ok=True)
    assert ticks == {"sgd": 0, "adam": 1}
    assert scaled(pd.Series([3.0, 3.0]))[0].tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_line_for_each_sample_that_did_not_fail_the_best_last(mode):
    axes = parallel(SAMPLES, ["local.lr", "server.lr"], "validation/accuracy", mode).axes[0]
    lines = [line.get_ydata().tolist() for line in axes.lines if len(line.get_xdata()) == 4]
    expected = [[0, 0, 0, 0], [1, 0.5, math.nan, 0.5], [0, 1, 1, 1]]  # cell, local.lr, server.lr, score
    np.testing.assert_allclose(lines, expected if mode == "max" else expected[::-1], atol=1e-12)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["cell", "local.lr", "server.lr", "validation/accuracy"]


def test_one_cell_needs_no_axis():
    axes = parallel(SAMPLES[SAMPLES["cell"] == "b"], ["local.lr"], "train/loss", "min").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["local.lr", "train/loss"]
