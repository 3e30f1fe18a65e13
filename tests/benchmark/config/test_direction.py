"""Which end of a metric is better: as a report declares it, else by its name, else unknown."""

import pytest

from rollcall.benchmark.config.metric import Metric, direction_of

DECLARED = (Metric("test/f1", "max"), Metric("train/gap/accuracy", "min"), Metric("validation/rank", "min"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("validation/accuracy", "max"),
        ("validation/worst_10_accuracy", "max"),
        ("train/loss", "min"),
        ("train/bias", "zero"),
        ("validation/f1", None),
        ("f1", None),
    ],
)
def test_the_name_tells_for_accuracies_losses_and_biases(name, expected):
    assert direction_of(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("test/f1", "max"), ("validation/f1", "max"), ("train/gap/accuracy", "min"), ("f1", None), ("train/rank", "min")],
)
def test_a_report_tells_for_all_splits(name, expected):
    assert direction_of(name, DECLARED) == expected


def test_the_same_split_comes_first():
    assert direction_of("train/score", (Metric("train/score", "max"), Metric("test/score", "min"))) == "max"
