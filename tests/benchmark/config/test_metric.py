"""Metrics as YAML and the command line write them."""

import math

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric, direction_of


@pytest.mark.parametrize(
    ("name", "split", "column", "over", "threshold", "title"),
    [
        ("test/accuracy", "test", "test/accuracy", "round", None, "test accuracy"),
        ("test/accuracy/per_client", "test", "test/accuracy/per_client", "round", None, "test accuracy (per client)"),
        ("train/loss", "train", "train/loss", "round", None, "train loss"),
        ("uplink", "", "uplink", "round", None, "uplink"),
        ("round_of:test/accuracy>=0.10", "test", "test/accuracy", "round", 0.1, "first round with test accuracy ≥ 10.0 %"),
        ("seconds_of:test/accuracy>=0.5", "test", "test/accuracy", "time/seconds", 0.5, "seconds until test accuracy ≥ 50.0 %"),
        ("gradients_of:test/loss>=3", "test", "test/loss", "cost/gradients", 3, "client gradients until test loss ≥ 3"),
        ("cost/floats_up", "cost", "cost/floats_up", "round", None, "floats sent"),
        ("weight/rare-lasting", "weight", "weight/rare-lasting", "round", None, "weight/rare-lasting"),
    ],
)  # fmt: skip
def test_the_parts_of_a_name(name, split, column, over, threshold, title):
    metric = Metric(name)
    assert (metric.split, metric.column, metric.over, metric.threshold) == (split, column, over, threshold)
    assert (metric.name, metric.title) == (name, title)


def test_the_better_end():
    assert Metric("train/loss", "min").best([3.0, 1.0, -2.0]) == -2.0
    assert Metric("train/bias", "zero").best([3.0, 1.0, -0.5]) == -0.5
    assert Metric("train/bias", "zero").best([math.nan, -3.0]) == -3.0
    assert Metric("train/loss", "max").best([3.0, 1.0, 2.0]) == 3.0
    assert (Metric("a", "min").arrow, Metric("a", "max").arrow) == ("↓", "↑")
    assert Metric("a", "min") == Metric("a", "max") != Metric("b", "max")


def test_numbers_end_where_their_spread_does():
    texts = {
        ("test/accuracy", 0.8877, 0.0291): ("88.8", "2.9"),
        ("round_of:test/accuracy>=0.5", 120.0, 15.0): ("120", "15"),  # rounds, no percent
        ("weight/rare", 0.8877, 0.29): ("0.89", "0.29"),
        ("train/loss", 1234.5, 23.4): ("1234", "23"),
        ("train/loss", 123456.0, 2345.0): ("1.235e5", "2300"),
        ("seconds_of:test/accuracy>=0.9", 88.2, 130.4): ("90", "130"),
        ("train/loss", -45678.0, 1e4): ("-46000", "10000"),
        ("train/loss", 1.23456e-9, 3e-10): ("1.23e-9", "3.0e-10"),
        ("train/bias", -1.364781198e-7, 2.4e-15): ("-1.3648e-7", "2.4e-15"),  # five digits at most
        ("train/loss", 0.5, 0.0): ("0.5", "0"),
        ("train/loss", 13674.0, 0.0): ("13670", "0"),
        ("train/loss", math.inf, math.inf): ("inf", "inf"),
    }
    assert [Metric("seconds_of:test/a>=1").text(value) for value in (2.25, math.inf)] == ["2.25", "not reached"]
    zeros = [("test/accuracy", -0.0004, 0.0), ("train/loss", -0.001, 0.2), ("round_of:test/a>=1", -0.3, 0.0)]
    assert [Metric(name).text(value, spread) for name, value, spread in zeros] == ["0.0", "0.00", "0"]  # no -0.0
    assert [Metric("test/accuracy").stated(value) for value in (0.1, 0.0015, -0.1235)] == ["10.0", "0.15", "-12.35"]
    assert Metric("train/loss").stated(1234.5) == "1234"  # four digits, as always
    for (name, value, spread), expected in texts.items():
        assert (Metric(name).text(value, spread), Metric(name).text(spread, spread)) == expected


DECLARED = (Metric("test/f1", "max"), Metric("train/gap/accuracy", "min"), Metric("validation/rank", "min"))


@pytest.mark.parametrize(
    ("name", "by_name", "by_report"),
    [
        ("validation/worst_10_accuracy", "max", "max"),
        ("train/loss", "min", "min"),
        ("seconds_of:test/accuracy>=0.5", "min", "min"),
        ("train/bias", "zero", "zero"),
        ("test/f1", None, "max"),
        ("validation/f1", None, "max"),  # as on another split
        ("train/gap/accuracy", "max", "min"),
        ("train/rank", None, "min"),
        ("f1", None, None),
    ],
)
def test_the_direction_is_the_declared_one_or_follows_from_the_name(name, by_name, by_report):
    assert (direction_of(name), direction_of(name, DECLARED)) == (by_name, by_report)
    assert direction_of("train/score", (Metric("train/score", "max"), Metric("test/score", "min"))) == "max"


@pytest.mark.parametrize(
    "name", ["round_of:test/accuracy", "round_of:test/accuracy>=high", "round_of:>=0.5", "seconds_of:test/a>="]
)
def test_a_threshold_that_cannot_be_read_is_refused(name):
    with pytest.raises(SettingError, match=f"'{name}' is not allowed; must be round_of:NAME>=NUMBER"):
        Metric(name)


def test_zero_is_better_than_a_negative_number():
    bias = Metric("train/bias", "zero")
    assert bias.best([3.0, 0.2, -0.5]) == 0.2
    assert [bias.penalty(value) for value in (-0.5, 0.0, 0.2)] == [0.5, 0.0, 0.2]


def test_a_value_far_below_its_spread_is_no_power_of_ten():
    assert Metric("train/bias", "zero").text(1e-5, 1.0) == "0.0"
    assert Metric("train/bias", "zero").text(-2.3e-7, 0.034) == "0.000"


def test_numbers_from_a_thousandth_on_have_no_exponent():
    texts = [Metric("train/loss").text(value, 0.0004) for value in (0.00123, 0.000987)]
    assert texts == ["0.00123", "9.9e-4"]


def test_more_decimals():
    assert [Metric("train/loss").text(0.123456, 0.012, more) for more in (0, 1, 2)] == ["0.123", "0.1235", "0.12346"]
