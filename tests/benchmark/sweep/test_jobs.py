"""Trials that fail before their run starts, damaged folders, memory; metrics that no trial records."""

import os
import signal
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from command import TINY
from lightning.pytorch import Callback
from runs import no_federation_left

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Analysis
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder
from rollcall.benchmark.sweep import jobs
from rollcall.benchmark.sweep.jobs import Job, check, check_metrics, recorded, run_inline, run_job
from rollcall.benchmark.sweep.run import Execution, run_jobs

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


def test_a_damaged_folder_is_left_as_it_is(store, monkeypatch):
    folder = RunFolder(store / "tiny" / TRIAL.name)
    folder.path.mkdir(parents=True)
    (folder.path / "status.json").write_text("{")
    assert "status.json is damaged" in tried(folder)
    assert [file.name for file in folder.path.iterdir()] == ["status.json"]
    with pytest.raises(Damaged):
        folder.state  # noqa: B018


def test_an_analysis_that_another_process_computed_meanwhile_is_not_computed_again(store, monkeypatch):
    """The other one ends between a first look at the folder and its lock."""
    analysis = Analysis.read({
        "analysis": {"name": "rollcall.benchmark.experiments.fedpbc.analyses:gossip", "probability": [0.5, 0.5]}
    })  # fmt: skip
    folder, locked, computed = store / "tiny" / "gossip", RunFolder.locked, []

    def after_another(self):
        if not computed:
            computed.append("other")
            assert run_job(analysis, folder, lambda: False) == ""
            monkeypatch.setattr(Analysis, "table", lambda self: pytest.fail("it was computed again"))
        return locked(self)

    monkeypatch.setattr(RunFolder, "locked", after_another)
    assert run_job(analysis, folder, lambda: False) == ""
    assert len(RunFolder(folder).history()) > 0


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
    with folder.locked():  # as another process does that makes them
        assert run_job(TRIAL.model_copy(update={"rounds": 2}), folder.path, lambda: False) == ""
    assert (tried(folder), folder.state) == ("", "finished")
    assert np.array_equal(folder.models()["model"], simulate(TRIAL).model)


def test_a_trial_that_fails_leaves_no_models_in_memory(store, monkeypatch):
    """Python alone would find the cycles of Lightning's trainer late: a sweep collects seldom, and here never.

    Lightning sets methods of the federation on a callback, which may live on, as under Ray.
    """
    monkeypatch.setattr("rollcall.algorithms.fedavg.FedAvg.round", lambda *_: 1 / 0)
    folder, callback = RunFolder(store / "tiny" / TRIAL.name), Callback()
    with no_federation_left():
        assert "ZeroDivisionError" in run_job(TRIAL, folder.path, lambda: False, callbacks=[callback])


MEASURED = TINY["trial"] | {"rounds": 2, "evaluation": {"weights": ["availability"]}}
OF_DIGITS = {"task": {"name": "digits", "clients": 3, "model": "linear"}, "rounds": 1}
OF_DIGITS |= {"evaluation": {"metrics": ["f1", "client_variance"], "by": ["class"]}}


# FedPBC evaluates two models.
@pytest.mark.parametrize("trial", [MEASURED, MEASURED | {"algorithm": "fedpbc"}, OF_DIGITS])
def test_every_column_of_the_history_is_known_or_begins_with_a_known_name(trial):
    trial = Trial.read({"algorithm": "fedavg"} | trial)
    names, history = recorded(build(trial)), simulate(trial).history
    assert all(any(f"{column}/".startswith(f"{name}/") for name in names) for column in history if column != "round")
    assert {name.partition("/")[0] for name in names} == {column.partition("/")[0] for column in history} - {"round"}


def test_no_other_job_starts_after_a_signal(store, monkeypatch):
    def interrupted(trial, folder, stop, *_):
        began.append(trial.name)
        os.kill(os.getpid(), signal.SIGINT)
        return ""

    began, both = [], [Job(TRIAL.model_copy(update={"seed": seed}), "tiny", store) for seed in (0, 1)]
    monkeypatch.setattr(jobs, "run_job", interrupted)
    assert (run_inline(both), len(began)) == (({}, True), 1)
    monkeypatch.setattr(jobs, "run_job", lambda *_: "")
    assert run_inline(both) == ({}, False)


def test_an_executor_is_ray_or_inline():
    with pytest.raises(SettingError, match=r"executor: 'inlin' is not allowed; must be ray or inline"):
        Execution(executor="inlin")


def test_a_metric_that_no_trial_records_is_refused():
    def check(*names, **changes):
        named = {"report.metrics": [Metric(name) for name in names]}
        trials = [MEASURED | changes, MEASURED]  # the second is not run now
        check_metrics(named, [Trial.read({"algorithm": "fedavg"} | trial) for trial in trials])

    check("train/distance", "train/distance/client0", "round_of:train/loss>=0.5", "cost/memory")
    check("weight/often", evaluation={"weights": []})
    with pytest.raises(SettingError, match=r"^report.metrics: 'train/dist' is not allowed; .* train/distance, "):
        check("train/loss", "train/dist")


def test_the_gpu_of_this_machine_says_nothing_of_trials_elsewhere(store, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda _: SimpleNamespace(total_memory=8))
    own = [Job(Trial.read(TINY["trial"] | {"algorithm": "mifa"}), "tiny", store)]
    check(own, Execution(executor="ray"))  # on CPUs
    check(own, Execution(gpus_per_trial=0.5))
    with pytest.raises(SettingError, match="and the GPU has 0"):
        check(own, Execution(executor="inline"))


def test_no_job_is_nothing_to_do(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///none.db")
    assert run_jobs([], Execution()).finished == 0
