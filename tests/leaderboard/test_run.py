"""The final value of a run, by hand."""

import math

import pandas as pd
import pytest

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard import Run

HISTORY = {"a": [8.0, 4.0, 2.0, 1.0], "b": [0.0, 0.5, math.nan, 1.0], "cost/floats_up": [50.0, 100.0, 150.0, 200.0]}
RUN = Run({}, {"rounds": "40"}, pd.DataFrame(HISTORY, [10, 20, 30, 40]))
FLOATS = Metric("cost/floats_up")


@pytest.mark.parametrize(
    ("name", "options", "value"),
    [
        ("a", {}, 1.0),
        ("a", {"last_rounds": 20}, 1.5),
        ("a", {"last_rounds": 21}, 7 / 3),  # after rounds 20, 30, 40
        ("b", {"last_rounds": 20}, math.nan),  # not evaluated after round 30, so the window is not covered
        ("b", {"last_rounds": 10}, 1.0),
        ("a", {"at": 20}, 4.0),
        ("a", {"at": 25}, math.nan),
        ("a", {"at": 100, "per": FLOATS}, 4.0),
        ("a", {"at": 199, "per": FLOATS}, 2.0),
        ("a", {"at": 201, "per": FLOATS}, math.nan),  # the run ended earlier
        ("b", {"at": 150, "per": FLOATS}, 0.5),  # not evaluated there
        ("a", {"at": 10, "per": Metric("not measured")}, math.nan),
        ("round_of:b>=0.5", {}, 20.0),
        ("round_of:b>=0.6", {}, 40.0),
        ("round_of:b>=2", {}, math.inf),
        ("a", {"at": 10, "per": FLOATS}, math.nan),  # the first evaluation was later
    ],
)
def test_final_values(name, options, value):
    assert RUN.final(Metric(name), **options) == pytest.approx(value, nan_ok=True)


def test_a_window_that_is_not_covered_has_no_mean():
    """Table I averages the last 100 rounds; runs that were evaluated twice in them had a mean."""
    settings = {"evaluation.every": "150", "evaluation.last.rounds": "100", "evaluation.last.every": "10"}
    settings |= {"evaluation.splits": "[test]", "evaluation.last.splits": "[train, test]", "rounds": "300"}
    due = [*range(210, 301, 10)]
    run = Run({}, settings, pd.DataFrame({"test/a": [float(t) for t in due], "train/a": 1.0}, due))
    assert run.window(Metric("test/a"), 100).index.tolist() == due
    assert run.final(Metric("test/a"), 100) == 255.0
    assert run.final(Metric("train/a"), 100) == 1.0
    for lost in (210, 250, 290, 300):
        assert math.isnan(Run({}, settings, run.history.drop(lost)).final(Metric("test/a"), 100))
    assert run.final(Metric("test/a"), 150) == 255.0  # no evaluation is due after rounds 151 to 200
    assert math.isnan(run.final(Metric("test/a"), 151))  # the one after round 150 was not made
    assert math.isnan(Run({}, settings | {"rounds": "60"}, run.history).final(Metric("test/a"), 100))


def test_a_threshold_is_looked_for_in_regular_evaluations():
    run = Run({}, RUN.settings | {"evaluation.every": "20"}, RUN.history)
    assert run.final(Metric("round_of:a>=2")) == 20.0
    assert run.final(Metric("round_of:a>=8")) == math.inf  # reached after round 10 only
    assert RUN.final(Metric("round_of:a>=8")) == 10.0


def test_measured_metrics():
    assert RUN.has(Metric("a"))
    assert RUN.has(Metric("round_of:a>=1"))
    assert not RUN.has(Metric("c"))


def test_a_run_as_it_was_earlier():
    early = RUN.until(20)
    assert (early.rounds, early.history["a"].tolist()) == (20, [8.0, 4.0])
    assert RUN.until(100).rounds == 40


def test_cell_and_identity():
    one, other = (Run({}, {"rounds": "40", "seed": seed, "local.lr": "1"}, RUN.history) for seed in "01")
    assert one.cell == other.cell
    assert one.identity != other.identity
    assert one.identity == one.until(10).identity
    assert one.cell != one.until(10).cell


def test_the_evaluation_of_the_untrained_model_is_never_part_of_a_mean():
    run = Run({}, {"rounds": "20"}, pd.DataFrame({"a": [8.0, 4.0, 2.0]}, [0, 10, 20]))
    assert run.final(Metric("a"), last_rounds=20) == 3.0
    assert math.isnan(run.final(Metric("a"), last_rounds=100))
    analysis = Run({}, {"analysis": "x"}, run.history)  # its rows are not rounds of training
    assert analysis.final(Metric("a"), last_rounds=100) == pytest.approx(14 / 3)
