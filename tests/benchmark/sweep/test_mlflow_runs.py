"""MLflow holds what the run folders hold, and nothing twice."""

from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from command import TINY
from lightning.pytorch import Callback

from rollcall import Trial, simulate
from rollcall.benchmark.config.digest import flatten
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_runs import Runs

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


class Stop(Callback):
    def on_train_batch_end(self, trainer, federation, *_):
        if federation.t == 12:
            raise KeyboardInterrupt


def the_trial(runs):
    (run,) = runs.client.search_runs([runs.id], "tags.`rollcall.trial` != ''")
    return run


def test_a_run_is_copied_while_it_goes_on_and_once_it_is_done(store):
    folder = RunFolder(store / "tiny" / TRIAL.name)
    runs = Runs(store, "tiny")
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        simulate(TRIAL, folder=folder.path, callbacks=[Stop()], checkpoint_every=timedelta(0))
    runs.push(folder)
    run = the_trial(runs)
    assert run.info.status == "KILLED"
    assert [m.step for m in runs.client.get_metric_history(run.info.run_id, "train/loss")] == [0, 5, 10]
    assert [file.path for file in runs.client.list_artifacts(run.info.run_id)] == ["trial.yaml"]

    simulate(TRIAL, folder=folder.path)
    runs.push(folder)
    Runs(store, "tiny").push(folder)  # another process, the same run
    run = the_trial(runs)
    assert run.info.status == "FINISHED"
    history = folder.history()
    for metric in ("train/loss", "train/distance"):
        logged = runs.client.get_metric_history(run.info.run_id, metric)
        assert [m.step for m in logged] == history["round"].tolist() == [0, 5, 10, 15, 20]
        assert [m.value for m in logged] == history[metric].tolist()
    assert run.data.params["local.steps"] == "2"
    assert run.data.params["participation.probability"] == "0.5"
    assert run.data.params["task"] == "quadratic"
    expected = {"experiment": "tiny", "algorithm": "fedpbc", "participation": "bernoulli", "task": "quadratic"}
    expected |= {"seed": "3", "rollcall.trial": TRIAL.digest, "mlflow.parentRunId": runs.parent}
    expected |= {"rollcall.round": "20", "rollcall.finished": "20"}
    assert {key: run.data.tags[key] for key in expected} == expected
    assert run.data.tags["commit"] == str(folder.status["commit"])
    artifact = runs.client.download_artifacts(run.info.run_id, "trial.yaml")
    assert yaml.safe_load(Path(artifact).read_text()) == yaml.safe_load((folder.path / "trial.yaml").read_text())
    model = runs.client.download_artifacts(run.info.run_id, "model.npz")
    assert Path(model).read_bytes() == (folder.path / "model.npz").read_bytes()


def test_a_run_that_an_outage_left_half_written_is_completed(store, monkeypatch):
    folder = RunFolder(store / "tiny" / TRIAL.name)
    simulate(TRIAL, folder=folder.path)
    runs = Runs(store, "tiny")

    def down(*_, **__):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(runs.client, "log_batch", down)
        with pytest.raises(ConnectionError):
            runs.push(folder)
    runs.push(folder)
    run = the_trial(runs)
    assert (run.data.params["local.steps"], run.info.status) == ("2", "FINISHED")


def test_a_later_sweep_continues_the_parent_run(store):
    runs = Runs(store, "tiny")
    runs.begin()
    runs.end("failed", lambda folder: (folder / "table.md").write_text("first"))
    again = Runs(store, "tiny")
    again.begin()
    assert (again.parent, again.client.get_run(again.parent).info.status) == (runs.parent, "RUNNING")
    again.end("finished", lambda folder: (folder / "table.md").write_text("second"))
    assert again.client.get_run(again.parent).info.status == "FINISHED"
    assert Path(again.client.download_artifacts(again.parent, "table.md")).read_text() == "second"


def test_flatten():
    task = {"name": "digits", "clients": 20, "model": {"name": "mlp", "hidden": [64, 32]}}
    flat = {"task": "digits", "task.clients": "20", "task.model": "mlp", "task.model.hidden": "[64, 32]"}
    spec = {"task": task, "seed": 0, "evaluation": {"splits": None}}
    assert flatten(spec) == flat | {"seed": "0", "evaluation.splits": "null"}
