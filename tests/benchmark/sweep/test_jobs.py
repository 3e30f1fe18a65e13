"""Trials that fail before their run starts leave a status too. No trial leaves its models in memory."""

import gc
from datetime import timedelta

import numpy as np
import pytest
from command import TINY

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.trial import Analysis
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder
from rollcall.benchmark.sweep import jobs
from rollcall.benchmark.sweep.jobs import run_job

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedavg", "seed": 3})


def tried(folder):
    return run_job(TRIAL, folder.path, lambda: False)


@pytest.mark.parametrize(
    ("error", "text"), [(OSError("no such device"), "OSError: no such device"), (SettingError("task: no"), "task: no")]
)
def test_an_error_before_the_run_starts_is_recorded(error, text, store, monkeypatch):
    def fails(*_, **__):
        raise error

    folder = RunFolder(store / "tiny" / TRIAL.name)
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "simulate", fails)
        assert tried(folder) == text
    assert (folder.state, folder.status["error"], folder.status["digest"]) == ("failed", text, TRIAL.digest)
    assert text in folder.error_file.read_text()
    assert (tried(folder), folder.state) == ("", "finished")


ANALYSES = """
import pandas as pd

def texts(seed):
    return pd.DataFrame({"round": [0, 1], "value": ["high", "low"]})

def unnumbered(seed):
    return pd.DataFrame({"value": [1.0, 2.0]})

def squares(seed):
    return pd.DataFrame({"round": [0, 2], "value": [0.0, 4.0]})
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("texts", "4: the table of an analysis must have numbers in all columns; it has other values in value"),
        ("unnumbered", "7: the table of an analysis must have a row, a column `round` and others of different names"),
    ],
)
def test_an_analysis_that_returns_something_else_than_numbers_by_round_fails(name, said, store, tmp_path):
    (tmp_path / "own.py").write_text(ANALYSES)
    wrong, right = (Analysis.read({"analysis": f"{tmp_path}/own.py:{one}"}) for one in (name, "squares"))
    folder = RunFolder(store / "own")
    assert f"own.py:{said}" in run_job(wrong, folder.path, lambda: False)
    assert (folder.state, folder.metrics.exists()) == ("failed", False)
    assert run_job(right, folder.path, lambda: False) == ""
    assert folder.history().to_dict("list") == {"round": [0, 2], "value": [0.0, 4.0]}


def test_a_damaged_folder_is_left_as_it_is(store, monkeypatch):
    folder = RunFolder(store / "tiny" / TRIAL.name)
    folder.path.mkdir(parents=True)
    (folder.path / "status.json").write_text("{")
    assert "status.json is damaged" in tried(folder)
    assert [file.name for file in folder.path.iterdir()] == ["status.json"]
    with pytest.raises(Damaged):
        folder.state  # noqa: B018


def test_fewer_rounds_than_are_saved_leave_the_folder_as_it_is(store):
    """Five rounds are saved, and two are asked for. Then the run goes on."""
    rounds = iter(range(1, 100))
    folder = RunFolder(store / "tiny" / TRIAL.name)
    run_job(TRIAL, folder.path, lambda: next(rounds) == 5, timedelta(0))
    assert folder.state == "interrupted"
    files = {file.name: file.read_bytes() for file in folder.path.iterdir()}
    shorter = run_job(TRIAL.model_copy(update={"rounds": 2}), folder.path, lambda: False)
    assert shorter == "rounds: 2 is not allowed; must be at least 5, already done"
    assert {file.name: file.read_bytes() for file in folder.path.iterdir()} == files
    assert (tried(folder), folder.state) == ("", "finished")
    assert np.array_equal(folder.models()["model"], simulate(TRIAL).model)


def test_a_trial_that_fails_leaves_no_models_in_memory(store, monkeypatch):
    """Python alone would find the cycles of Lightning's trainer late: a sweep collects seldom, and here never."""

    def federations():
        return sum(type(item) is Federation for item in gc.get_objects())

    monkeypatch.setattr("rollcall.algorithms.fedavg.FedAvg.round", lambda *_: 1 / 0)
    gc.collect()
    before = federations()
    gc.disable()
    try:
        assert "ZeroDivisionError" in tried(RunFolder(store / "tiny" / TRIAL.name))
        assert federations() == before
    finally:
        gc.enable()
