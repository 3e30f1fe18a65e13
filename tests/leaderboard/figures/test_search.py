"""The figures of a search show its samples."""

import numpy as np
import pandas as pd

from rollcall.leaderboard.figures.search import best_so_far, sensitivity

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


def lines(data):
    """Points (x, value) of each line."""
    return {line: list(zip(rows["x"], rows["value"], strict=True)) for line, rows in data.groupby("line", sort=False)}


def test_each_setting_has_a_subplot_of_the_samples_with_all_rounds():
    chart = sensitivity(SAMPLES, ["local.lr", "server.optimizer"], "validation/accuracy", "max")
    rates, optimizers = (view["encoding"] for view in chart.to_dict()["concat"])
    assert (rates["x"]["title"], rates["x"]["scale"]["type"], rates["y"]["title"]) == (
        "local.lr", "log", "validation accuracy %"
    )  # fmt: skip
    of_rates, of_optimizers = (lines(view.data) for view in chart.concat)
    assert of_rates == {"a": [(0.01, 30), (1, 40)], "b": [(0.1, 20), (1, 10)]}  # 0.5 is of a sample stopped early
    assert optimizers["x"]["type"] == "nominal"
    assert of_optimizers == {"a": [("sgd", 30), ("sgd", 40)]}
    assert "1 samples that were stopped early are left out" in chart.to_dict()["title"]["text"][0]


def test_best_so_far_counts_gradients_of_stopped_samples_but_not_their_scores():
    made = lines(best_so_far(SAMPLES, ["local.lr"], "validation/accuracy", "max").data)
    assert made == {"a": [(10, 30), (15, 30), (25, 40), (26, 40)], "b": [(7, 20), (14, 20)]}
    lower = lines(best_so_far(SAMPLES, ["local.lr"], "validation/loss", "min").data.dropna())
    assert [value for _, value in lower["b"]] == [0.2, 0.1]


def test_a_cell_has_the_style_of_its_method():
    samples = SAMPLES.assign(cell=["mifa", "mifa", "mifa", "mifa", "fedavg", "fedavg"])
    figure = best_so_far(samples, ["local.lr"], "validation/accuracy", "max")
    colour = figure.to_dict()["concat"][0]["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(colour["domain"], colour["range"], strict=True)) == {"MIFA": "#000000", "FedAvg": "#0072b2"}
