"""Runs find their cells, and cells have means where these are covered; seconds of a simulated clock."""

import math
from dataclasses import replace

import pytest

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.paper.reproduction import origin
from tests.support.results import experiment, runs

ACCURACY = Metric("test/accuracy")


def test_every_run_finds_its_cell():
    made = experiment()
    found = cells(made, runs(made, lambda labels, seed: 0.1 * seed + (labels["algorithm"] == "mifa")))
    assert [(cell.labels["participation"], cell.labels["algorithm"]) for cell in found] == [
        ("often", "fedavg"), ("often", "mifa"), ("seldom", "fedavg"), ("seldom", "mifa"),
    ]  # fmt: skip
    assert found[1].finals(ACCURACY, 1).tolist() == pytest.approx([1.0, 1.1, 1.2])
    assert all((cell.rounds_run, len(cell.runs)) == (100, 3) for cell in found)


def test_the_longest_run_of_a_seed_counts():
    made = experiment()
    short = runs(made, lambda *_: 0.25, rounds=50)
    found = cells(made, short)
    assert all(cell.rounds_run == 50 and len(cell.runs) == 3 for cell in found)
    both = cells(made, [*runs(made, lambda *_: 0.75), *short])
    assert both[0].finals(ACCURACY, 1).tolist() == [0.75] * 3
    assert both[0].rounds_run == 100


def test_seeds_of_unequal_length_are_cut_to_the_shortest():
    made = experiment()
    curve = [0.1 * i for i in range(11)]  # after 0, 10, ..., 100 rounds
    short = runs(made, lambda *_: curve[:6], rounds=50, skip=(1, 2))
    (cell, *_) = cells(made, [*short, *runs(made, lambda *_: curve, skip=(0,))])
    assert (len(cell.runs), cell.rounds_run) == (3, 50)
    assert cell.finals(ACCURACY, 1).tolist() == pytest.approx([0.5] * 3)


def own(found):
    return [replace(run, source="own") for run in found]


@pytest.mark.parametrize(("rounds", "skip", "counts"), [(100, (), True), (50, (), False), (100, (2,), False)])
def test_own_runs_replace_kept_ones_only_if_as_long_and_as_many(rounds, skip, counts):
    made = experiment()
    mine = own(runs(made, lambda *_: 0.25, rounds=rounds, skip=skip))
    (cell, *_) = cells(made, [*runs(made, lambda *_: 0.75), *mine])
    assert cell.finals(ACCURACY, 1).tolist() == [0.25 if counts else 0.75] * 3
    assert {run.source for run in cell.runs.values()} == {"own" if counts else "kept"}
    (alone, *_) = cells(made, mine)
    assert len(alone.runs) == 3 - len(skip)


def test_a_window_is_of_the_runs_own_length_and_never_shortened():
    made = experiment()
    curve = [0.0] * 8 + [0.4, 0.6, 0.8]  # after 80, 90, 100 rounds
    (whole, *_) = cells(made, runs(made, lambda *_: curve))
    assert whole.mean(ACCURACY, 100) == pytest.approx(1.8 / 10)  # after rounds 10 to 100
    assert whole.evaluations(ACCURACY, 100) == 10
    longer = experiment(trial=made.trial | {"rounds": 1000})
    (short, *_) = cells(longer, runs(longer, lambda *_: curve, rounds=100))
    assert short.mean(ACCURACY, 100) == pytest.approx(1.8 / 10)
    assert math.isnan(short.mean(ACCURACY, 101))
    assert short.evaluations(ACCURACY, 101) == 0
    lost = {seed: run.history.drop(90) if seed == "2" else run.history for seed, run in whole.runs.items()}
    (holed, *_) = cells(made, [replace(run, history=lost[seed]) for seed, run in whole.runs.items()])
    assert len(holed.finals(ACCURACY, 100)) == 2
    assert math.isnan(holed.mean(ACCURACY, 100))
    assert short.finals(ACCURACY, 1, at=90).iloc[0] == 0.6
    assert short.finals(ACCURACY, 1, at=95).empty


def test_the_mean_curve_reaches_a_value_in_another_round_than_the_mean_seed():
    """Table II: the mean of the curves 0, .1, .1, .5 and 0, .3, .3, .3 reaches 0.2 after 10 rounds, the seeds after 30, 10."""
    curves = {0: [0.0, 0.1, 0.1, 0.5], 1: [0.0, 0.3, 0.3, 0.3]}
    made = experiment()
    (cell, *_) = cells(made, runs(made, lambda labels, seed: curves[seed], rounds=30, skip=(2,)))
    reached = Metric("round_of:test/accuracy>=0.2")
    assert cell.finals(reached, 1).tolist() == [30.0, 10.0]
    assert cell.mean(reached, 1) == 10.0
    assert cell.mean(Metric("round_of:test/accuracy>=0.4"), 1) == 30.0
    assert cell.mean(Metric("round_of:test/accuracy>=0.45"), 1) == math.inf
    shown = cell.number(reached, 1)
    assert (shown.mean, math.isnan(shown.sd), str(shown)) == (10.0, True, "10")  # no spread of the seeds' other rounds


def test_a_place_that_asks_for_fewer_rounds_looks_at_the_same_run():
    """Two panels of 30 and 100 rounds: one run, looked at after 30 rounds and after 100."""
    made = experiment(panels={"short": {"trial": {"rounds": 30}}, "long": {}})
    curve = [0.1 * i for i in range(11)]
    found = cells(made, [run for run in runs(made, lambda *_: curve) if run.rounds == 100])
    assert [cell.labels["panel"] for cell in found] == ["short"] * 4 + ["long"] * 4
    for cell in found:
        rounds, end = (30, 0.3) if cell.labels["panel"] == "short" else (100, 1.0)
        assert (cell.rounds_run, cell.rounds, len(cell.runs)) == (rounds, rounds, 3)
        assert cell.finals(ACCURACY, 1).tolist() == pytest.approx([end] * 3)
    told = origin([run for cell in found for run in cell.runs.values()])
    assert told.startswith(f"{sum(len(cell.runs) for cell in found) // 2} runs, ")  # each is counted once


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


def test_seconds_until_a_value_is_reached():
    of, made = timed(report={"metrics": {SECONDS_OF.name: "min"}})
    assert of.metrics == ["test/accuracy", "time/seconds"]
    fedavg, mifa = cells(of, made)[:2]
    # FedAvg's rounds take 5, 10 and 15 seconds, those of mifa 1, 2 and 3.
    assert fedavg.finals(SECONDS_OF, 1).tolist() == [50, 100, math.inf]
    assert mifa.finals(SECONDS_OF, 1).tolist() == [20, 40, 60]
    # FedAvg's mean curve is 0.1, 0.433, 0.533: 20 rounds, which take 100, 200 and 300 seconds.
    assert fedavg.mean(SECONDS_OF, 1) == 200
    assert mifa.mean(SECONDS_OF, 1) == 40
    assert fedavg.runs["2"].end(SECONDS_OF) == 300
    assert not cells(of, runs(of, lambda labels, seed: 0.5))[0].measured(Metric("gradients_of:test/accuracy>=0.5"))
