"""Tables, claims and curves over the time of a simulated clock, on runs made by hand."""

import math
from dataclasses import replace

import pytest
from results import experiment, runs

from rollcall import SettingError
from rollcall.benchmark.config.metric import Metric, direction_of
from rollcall.leaderboard.cells import cells

SECONDS_OF = Metric("seconds_of:test/accuracy>=0.5", "min")


def timed(**changes):
    """FedAvg reaches 0.5 after 10 rounds in seeds 0 and 1, mifa after 20 in all; a round of mifa is five times as quick."""
    of = experiment(trial={**experiment().trial, "rounds": 20}, **changes)
    curves = {"fedavg": [[0.1, 0.6, 0.7], [0.1, 0.5, 0.6], [0.1, 0.2, 0.3]], "mifa": [[0.1, 0.2, 0.8]] * 3}
    made = []
    for run in runs(of, lambda labels, seed: curves[labels["algorithm"]][seed]):
        pace = (5.0 if run.settings["algorithm"] == "fedavg" else 1.0) * (1 + int(run.tags["seed"]))
        made.append(replace(run, history=run.history.assign(**{"time/seconds": run.history.index * pace})))
    return of, made


def test_the_metric_names_the_cost_that_it_counts():
    assert (SECONDS_OF.column, SECONDS_OF.over, SECONDS_OF.threshold) == ("test/accuracy", "time/seconds", 0.5)
    assert Metric("gradients_of:test/loss>=3").over == "cost/gradients"
    assert (Metric("round_of:test/accuracy>=0.5").over, Metric("test/accuracy").over) == ("round", "round")
    assert SECONDS_OF.title == "seconds until test accuracy ≥ 50.0 %"
    assert direction_of("seconds_of:test/accuracy>=0.5") == "min"
    assert (SECONDS_OF.text(2.25), SECONDS_OF.text(math.inf)) == ("2.25", "not reached")
    of, _ = timed(report={"metrics": {SECONDS_OF.name: "min"}})
    assert of.metrics == ["test/accuracy", "time/seconds"]
    with pytest.raises(SettingError, match="is not allowed; must be round_of:NAME>=NUMBER"):
        Metric("seconds_of:test/accuracy>=")


def test_seconds_until_a_value_is_reached():
    of, made = timed()
    fedavg, mifa = cells(of, made)[:2]
    # FedAvg's rounds take 5, 10 and 15 seconds, those of mifa 1, 2 and 3.
    assert fedavg.finals(SECONDS_OF, 1).tolist() == [50, 100, math.inf]
    assert mifa.finals(SECONDS_OF, 1).tolist() == [20, 40, 60]
    # FedAvg's mean curve is 0.1, 0.433, 0.533: 20 rounds, which take 100, 200 and 300 seconds.
    assert fedavg.mean(SECONDS_OF, 1) == 200
    assert mifa.mean(SECONDS_OF, 1) == 40
    assert fedavg.runs["2"].end(SECONDS_OF) == 300
    assert not cells(of, runs(of, lambda labels, seed: 0.5))[0].measured(Metric("gradients_of:test/accuracy>=0.5"))
