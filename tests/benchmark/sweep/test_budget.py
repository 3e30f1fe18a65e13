"""What fits a time budget, by hand."""

import json
from fractions import Fraction

import pytest

from rollcall import SettingError
from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.sweep.budget import Cut, Item, Record, apply, fit, items, panels, spent
from rollcall.benchmark.sweep.estimate import Estimate
from rollcall.benchmark.sweep.times import read_time

TENS = Evaluation(every=10)
SECOND = Estimate(round=1.0, evaluation=0.0, last_evaluation=0.0)
EXPERIMENT = Experiment.model_validate(
    {
        "name": "e",
        "title": "E",
        "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "evaluation": {"every": 10}},
        "grid": {"seed": [5, 3, 4]},
        "panels": {
            "short": {"trial": {"rounds": 40}, "grid": {"algorithm": ["fedavg", "fedpbc"]}},
            "long": {"trial": {"rounds": 400, "algorithm": "mifa"}, "grid": {"seed": [4, 3]}},
            "law": {"analysis": {"name": "prop1_limit", "targets": [0, 1], "probability": [1, 1]}},
        },
    }
)


def test_budgets_as_people_write_them():
    assert [read_time(given) for given in ("30s", "90m", "2h", "1.5h")] == [30, 5400, 7200, 5400]
    for given in ("2", "h", "2 h", "2d", "-1h", "0h", "1e3s"):
        with pytest.raises(
            SettingError, match=rf"^budget: '{given}' is not allowed; must be a number above 0 with s, m"
        ):
            read_time(given)


@pytest.mark.parametrize(
    ("factor", "full", "every", "left"),
    [
        ("1", 105, 10, 105),  # whole, though no multiple
        ("999/1000", 105, 10, 100),
        ("1/2", 100, 10, 50),
        ("1/2", 110, 10, 50),  # 55, rounded down
        ("1/100", 1000, 10, 100),  # a tenth at least
        ("1/100", 1050, 10, 110),  # 105, rounded up, for it is a bound
        ("1/100", 100, 10, 20),  # two evaluations at least
        ("1/100", 15, 10, 15),  # there is but one
    ],
)
def test_rounds_that_are_left(factor, full, every, left):
    assert Cut(Fraction(factor), seeds=1).rounds(full, every) == left


def test_rounds_are_cut_by_a_common_factor_first():
    two = [
        Item(100, TENS, 0, SECOND),
        Item(400, TENS, 0, SECOND),
        Item(100, TENS, 1, SECOND),
        Item(400, TENS, 1, SECOND),
    ]
    assert fit(two, 1000, at_once=1) == Cut(Fraction(1), 2)
    assert fit(two, 5000, at_once=1) == Cut(Fraction(1), 2)
    # 500 seconds are half: 50 and 200 rounds, twice.
    half = fit(two, 500, at_once=1)
    assert half == Cut(Fraction(1, 2), 2)
    assert spent(two, half, at_once=1) == 500
    # One second less: 190 and 50 would be 480 and 0.475 of 100 is 40: 190 + 40.
    less = fit(two, 499, at_once=1)
    assert [less.rounds(100, 10), less.rounds(400, 10), less.seeds] == [40, 190, 2]
    # A trial takes 400 seconds however many run at once.
    assert fit(two, 400, at_once=100) == Cut(Fraction(1), 2)
    assert fit(two, 399, at_once=100).rounds(400, 10) == 390
    assert fit(two, 250, at_once=2) == Cut(Fraction(1, 2), 2)


def test_seeds_are_cut_where_rounds_cannot_be():
    three = [Item(1000, TENS, rank, SECOND) for rank in range(3)]
    assert fit(three, 300, at_once=1) == Cut(Fraction(1, 10), 3)
    # 299 are too few for three seeds; two of them then have 149 seconds each, which is 140 rounds.
    assert fit(three, 299, at_once=1) == Cut(Fraction(140, 1000), 2)
    assert fit(three, 150, at_once=1) == Cut(Fraction(150, 1000), 1)
    assert fit(three, 1, at_once=1) == Cut(Fraction(1, 10), 1)  # a cell is never dropped
    assert fit([], 1, at_once=1) == Cut(Fraction(1), 1)


def test_evaluations_count():
    costly = [Item(100, TENS, 0, Estimate(round=0.0, evaluation=1.0, last_evaluation=0.0))]
    assert fit(costly, 11, at_once=1).rounds(100, 10) == 100
    assert fit(costly, 10.9, at_once=1).rounds(100, 10) == 90
    assert fit(costly, 5, at_once=1).rounds(100, 10) == 40


def test_an_experiment_keeps_its_cells_and_its_analyses():
    there = places(EXPERIMENT)
    costs = {place.trial.digest: SECOND for place in there}
    found = items(there, costs)
    assert [(item.rounds, item.rank) for item in found] == [(40, 0), (40, 0), (40, 1), (40, 1), (40, 2), (40, 2), (400, 0), (400, 1)]  # fmt: skip
    left = apply(there, Cut(Fraction(1, 2), 1))
    told = [(place.labels["panel"], place.trial.label, place.trial.seed, place.trial.rounds) for place in left]
    assert told[:3] == [("short", "fedavg", 5, 20), ("short", "fedpbc", 5, 20), ("long", "mifa", 4, 200)]
    assert {place[:2] for place in told[3:]} == {("law", "prop1_limit")}
    assert [place.labels for place in left] == [
        place.labels for place in there if place.trial.seed == {"short": 5, "long": 4}.get(place.labels["panel"]) or place.labels["panel"] == "law"
    ]  # fmt: skip
    assert panels(there, Cut(Fraction(1, 2), 2)) == {
        "short": {"trials": 6, "rounds": {"full": [40], "cut": [20]}, "seeds": {"full": [5, 3, 4], "cut": [5, 3]}},
        "long": {"trials": 2, "rounds": {"full": [400], "cut": [200]}, "seeds": {"full": [4, 3], "cut": [4, 3]}},
    }


def test_a_record_is_taken_up_by_the_same_command_alone(tmp_path):
    there = places(EXPERIMENT)
    costs = {place.trial.digest: SECOND for place in there}
    assert Record.read(tmp_path / "e", there, 500) is None
    record = Record.of(there, costs, Cut(Fraction(1, 2), 2), 500, at_once=1)
    assert (record.full, record.estimated) == (6 * 40 + 2 * 400, 4 * 20 + 2 * 200)
    record.write(tmp_path / "e")
    written = json.loads((tmp_path / "e" / "budget.json").read_text())
    assert (written["budget"], written["estimated"], written["factor"], written["seeds"]) == (500, 480, "1/2", 2)
    assert Record.read(tmp_path / "e", there, 500) == record
    assert Record.read(tmp_path / "e", there, 400) is None
    assert Record.read(tmp_path / "e", places(EXPERIMENT.only({"algorithm": ["fedavg"]})), 500) is None
    assert record.told("e").splitlines() == [
        "e: about 8 min instead of 17 min (estimates)",
        "  short: rounds 40 -> 20; seeds 5, 3, 4 -> 5, 3",
        "  long: rounds 400 -> 200",
    ]
    whole = Record.of(there, costs, Cut(Fraction(1), 3), 5000, at_once=1)
    assert whole.told("e") == "e: about 17 min, nothing cut"
