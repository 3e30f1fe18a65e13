"""Which cells a search has: their names, spaces and rounds; and the answer of one."""

import math
from pathlib import Path

import numpy as np
import pytest
from command import TINY

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.search.answer import How, found
from rollcall.benchmark.search.cells import SearchCell, cells_of
from rollcall.benchmark.search.space import Domain, read_space
from rollcall.benchmark.search.tune import answer_of

DISTANCE = Metric("train/distance", "min")
HOW = How(date="2026-01-01", metric=DISTANCE, mode="min", search="random", seeds=(1000, 1001), space={"local.lr": [1]})
PANELS = {"short": {"trial": {"rounds": 8}}, "long": {}}


def cells(space=None, per=(), rounds=None, parts=1, **changes) -> dict[str, SearchCell]:
    experiment = Experiment.model_validate({"name": "tiny"} | TINY | changes)
    made = cells_of(experiment, read_space(space or {"local.lr": [0.1]}), per, DISTANCE, rounds, parts)
    return {one.name: one for one in made}


def test_the_space_of_a_method_replaces_the_common_one():
    """Which may have values that no method allows."""
    space = {"local.lr": [0.1, -1], "fedavg": {"local.lr": [0.2]}, "fedpbc": {"local.lr": [0.3]}}
    spaces = {name: one.space for name, one in cells(space).items()}
    assert spaces == {"fedavg": {"local.lr": Domain((0.2,))}, "fedpbc": {"local.lr": Domain((0.3,))}}


def test_a_cell_has_the_rounds_of_its_panel():
    two = {"panels": PANELS, "grid": {"algorithm": ["fedavg"]}}
    assert {name: cell.milestones for name, cell in cells(**two).items()} == {"short/fedavg": [8], "long/fedavg": [20]}
    # report.last_rounds is 10: half of 20 rounds, and all 8.
    assert {name: cell.share for name, cell in cells(**two).items()} == {"short/fedavg": 1.0, "long/fedavg": 0.5}
    assert cells(**two, parts=3)["long/fedavg"].milestones == [7, 14, 20]
    assert cells(**two, rounds=2, parts=9)["long/fedavg"].milestones == [1, 2]
    with pytest.raises(SettingError, match=r"^rounds: cell fedavg has trials of 8 and 20 rounds; .*--rounds.*--per"):
        cells(**two, per=["algorithm"])
    assert cells(**two, per=["algorithm"], rounds=5)["fedavg"].milestones == [5]


def test_a_sample_on_another_machine_has_the_run_folders_of_its_trials(tmp_path, monkeypatch):
    """Relative paths lead nowhere there. The oracle: the names of the trials where the files are."""
    samples = pytest.importorskip("rollcall.benchmark.search.samples")
    monkeypatch.chdir(tmp_path)
    np.save("mask.npy", np.eye(3, dtype=int))
    Path("calls.csv").write_text("client,start,end\n0,0,1\n1,1,2\n2,0,2\n")
    Path("own.py").write_text("from rollcall.algorithms import FedAvg\n\n\nclass Own(FedAvg):\n    pass\n")
    calls = {"array": {"name": "trace", "mask": "mask.npy"}}
    calls["table"] = {"name": "trace", "mask": "calls.csv", "round_length": 1.0}
    grid = {"seed": [5, 6], "algorithm": ["fedpbc", "own.py:Own"], "participation": calls}
    searched = [*cells(per=["algorithm"], grid=grid).values()]
    point = {"local.lr": 0.1, "local.steps": 3}
    plan = samples.SamplePlan(searched, DISTANCE, {cell.name: [point] for cell in searched})
    named = {cell.name: [trial.name for trial in cell.trials(point)] for cell in searched}
    assert {len(names) for names in named.values()} == {4}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for config in plan.points:
        assert plan.work(config).folders == named[config["cell"]]


def row(rate, score, rounds=20, state="finished"):
    ran = {"rounds": rounds, "gradients": 8.0, "state": state}
    return {"local.lr": rate, "score": score, "spread": math.nan} | ran


def test_the_answer_is_the_best_of_the_samples_that_ran_the_most_rounds():
    cell = SearchCell("fedavg", {}, [], {"local.lr": Domain((0.1, 0.2, 0.3))}, [5, 20], 0.0, False)
    failed = row(0.1, math.nan, 5, state="failed")
    assert answer_of(cell, [failed], HOW) is None
    best = answer_of(cell, [failed, row(0.2, 4.0), row(0.3, 1.0, rounds=5, state="stopped")], HOW)
    assert (best.settings, best.score, best.spread, best.rounds) == ({"local.lr": 0.2}, 4.0, None, 20)
    assert (best.samples, best.failed, best.gradients, best.at_edge) == (3, 1, 24.0, ())
    assert best.points == ({"local.lr": 0.1}, {"local.lr": 0.2}, {"local.lr": 0.3})
    line = "rollcall tune, 2026-01-01: best of {} samples by train/distance, random search, {} rounds, seeds 1000, 1001"
    assert found([best]) == line.format(3, 20)
    assert found([best, best.model_copy(update={"samples": 2, "rounds": 8})]) == line.format("2 to 3", "8 to 20")


def test_the_share_of_the_last_rounds_is_that_of_the_experiment():
    one = {"grid": {"algorithm": ["fedavg"]}}
    assert [cells(**one, rounds=rounds)["fedavg"].share for rounds in (None, 10, 40)] == [0.5, 0.5, 0.5]


def test_samples_are_evaluated_as_often_as_the_panel_that_is_evaluated_most_often():
    """At least at every milestone: 20 is no multiple of 8."""
    often = {name: {"trial": {"evaluation": {"every": every}}} for name, every in {"some": 12, "more": 8}.items()}
    both = {"panels": often, "grid": {"algorithm": ["fedavg"]}, "per": ["algorithm"]}
    for parts, every, at in ((1, 8, [20]), (4, 5, [])):
        evaluations = [spec["evaluation"] for spec in cells(**both, parts=parts)["fedavg"].specs]
        assert [(one["every"], one["at"]) for one in evaluations] == [(every, at)] * 2
