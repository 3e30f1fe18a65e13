"""What fits a time budget, by hand."""

import json
from fractions import Fraction

import pytest

from rollcall import SettingError, Trial
from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.benchmark.sweep.budget import Record, fit, rounds_left
from rollcall.benchmark.sweep.estimate import Estimate
from rollcall.benchmark.sweep.times import read_time

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


def trial(rounds: int, every: int = 10) -> Trial:
    task = {"name": "quadratic", "targets": [[0.0], [1.0]]}
    return Trial.read({"task": task, "algorithm": "fedavg", "rounds": rounds, "evaluation": {"every": every}})


class Costs(dict):
    """The same estimate for every trial."""

    def __missing__(self, digest):
        return SECOND


def lengths(trials, budget, at_once=1) -> list[int]:
    share = fit(trials, Costs(), budget, at_once)
    return [rounds_left(one, share) for one in trials]


@pytest.mark.parametrize(
    ("share", "full", "left"),
    [
        ("1", 105, 105),  # whole, though no multiple
        ("999/1000", 105, 100),
        ("1/2", 100, 50),
        ("1/2", 110, 50),  # 55, rounded down
        ("1/100", 1000, 100),  # a tenth at least
        ("1/100", 1050, 110),  # 105, rounded up, for it is a bound
        ("1/100", 100, 20),  # two evaluations at least
        ("1/100", 15, 15),  # there is but one
    ],
)
def test_rounds_that_are_left(share, full, left):
    assert rounds_left(trial(full), Fraction(share)) == left


def test_rounds_are_cut_by_a_common_share():
    four = [trial(100), trial(400), trial(100), trial(400)]
    assert lengths(four, 1000) == lengths(four, 5000) == [100, 400, 100, 400]
    assert lengths(four, 500) == [50, 200, 50, 200]
    # One second less: 190 and 50 would be 480 and 0.475 of 100 is 40: 190 + 40.
    assert lengths(four, 499) == [40, 190, 40, 190]
    # A trial takes 400 seconds however many run at once.
    assert lengths(four, 400, at_once=100) == [100, 400, 100, 400]
    assert lengths(four, 399, at_once=100)[1] == 390
    assert lengths(four, 250, at_once=2) == [50, 200, 50, 200]
    assert lengths([trial(1000)], 1) == [100]  # no trial is dropped
    assert fit([], {}, 1, at_once=1) == 1


def test_evaluations_count():
    costly = {trial(100).digest: Estimate(round=0.0, evaluation=1.0, last_evaluation=0.0)}
    for budget, rounds in ((11, 100), (10.9, 90), (5, 40)):
        assert rounds_left(trial(100), fit([trial(100)], costly, budget, at_once=1)) == rounds


def test_a_record_is_taken_up_by_the_same_command_alone(tmp_path):
    there = places(EXPERIMENT)
    assert Record.read(tmp_path / "e", there, 500) is None
    record = Record.of(there, Costs(), Fraction(1, 2), 500, at_once=1)
    assert (record.full, record.estimated) == (6 * 40 + 2 * 400, 6 * 20 + 2 * 200)
    record.write(tmp_path / "e")
    assert json.loads((tmp_path / "e" / "budget.json").read_text()) == {
        "budget": 500,
        "estimated": 520,
        "full": 1040,
        "share": "1/2",
        "panels": {
            "short": {"trials": 6, "full": [40], "cut": [20]},
            "long": {"trials": 2, "full": [400], "cut": [200]},
        },
    }
    assert Record.read(tmp_path / "e", there, 500) == record
    assert Record.read(tmp_path / "e", there, 400) is None
    assert Record.read(tmp_path / "e", places(EXPERIMENT.only({"algorithm": ["fedavg"]})), 500) is None
    assert record.told("e").splitlines() == [
        "e: about 9 min instead of 17 min (estimates)",
        "  short: rounds 40 -> 20",
        "  long: rounds 400 -> 200",
    ]
    whole = Record.of(there, Costs(), Fraction(1), 5000, at_once=1)
    assert whole.told("e") == "e: about 17 min, nothing cut"
    left = record.apply(there)
    assert [place.labels for place in left] == [place.labels for place in there]
    assert {(place.labels["panel"], place.trial.rounds) for place in left if place.labels["panel"] != "law"} == {
        ("short", 20),
        ("long", 200),
    }
    old = {"budget": 500, "estimated": 520, "full": 1040, "factor": "1/2", "seeds": 3, "panels": {}}
    (tmp_path / "e" / "budget.json").write_text(json.dumps(old))  # of an earlier version
    assert Record.read(tmp_path / "e", there, 500) is None
