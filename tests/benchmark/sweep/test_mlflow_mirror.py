"""MLflow holds what the run folders hold, and nothing twice."""

from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from command import TINY
from lightning.pytorch import Callback

from benchmark import Trial, simulate
from benchmark.config.digest import flatten
from benchmark.federation.run_folder import RunFolder
from benchmark.sweep.jobs import Job, Outcome
from benchmark.sweep.mlflow_mirror import Mirror

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


class Stop(Callback):
    def on_train_batch_end(self, trainer, federation, *_):
        if federation.t == 12:
            raise KeyboardInterrupt


def test_a_run_is_mirrored_while_it_goes_on_and_once_it_is_done(store):
    job = Job(TRIAL, "tiny", store)
    mirror = Mirror(store, "tiny")
    mirror.started(job)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        simulate(TRIAL, folder=job.folder.path, callbacks=[Stop()], checkpoint_every=timedelta(0))
    mirror.push(job.folder)
    (run,) = mirror.client.search_runs([mirror.id])
    assert run.info.status == "KILLED"
    assert [m.step for m in mirror.client.get_metric_history(run.info.run_id, "train/loss")] == [0, 5, 10]

    simulate(TRIAL, folder=job.folder.path)
    mirror.ended(job, Outcome("finished"))
    Mirror(store, "tiny").push(job.folder)  # another process, the same run
    (run,) = mirror.client.search_runs([mirror.id])
    assert run.info.status == "FINISHED"
    history = job.folder.history()
    for metric in ("train/loss", "train/distance"):
        logged = mirror.client.get_metric_history(run.info.run_id, metric)
        assert [m.step for m in logged] == history["round"].tolist() == [0, 5, 10, 15, 20]
        assert [m.value for m in logged] == history[metric].tolist()
    assert run.data.params["local.steps"] == "2"
    assert run.data.params["participation.probability"] == "0.5"
    assert run.data.params["task"] == "quadratic"
    expected = {
        "experiment": "tiny",
        "algorithm": "fedpbc",
        "participation": "bernoulli",
        "task": "quadratic",
        "seed": "3",
        "rollcall.trial": TRIAL.digest,
    }
    assert {key: run.data.tags[key] for key in expected} == expected
    assert run.data.tags["commit"] == str(job.folder.status["commit"])
    artifact = mirror.client.download_artifacts(run.info.run_id, "trial.yaml")
    assert yaml.safe_load(Path(artifact).read_text()) == yaml.safe_load((job.folder.path / "trial.yaml").read_text())


def test_a_failed_run_is_shown_as_failed(store):
    class Broken(Callback):
        def on_train_batch_end(self, *_):
            raise RuntimeError

    job = Job(TRIAL, "tiny", store)
    with pytest.raises(RuntimeError):
        simulate(TRIAL, folder=job.folder.path, callbacks=[Broken()])
    mirror = Mirror(store, "tiny")
    mirror.push(job.folder)
    assert mirror.client.search_runs([mirror.id])[0].info.status == "FAILED"


def test_a_server_that_is_down_does_not_end_a_sweep(store, monkeypatch, capsys):
    job = Job(TRIAL, "tiny", store)
    mirror = Mirror(store, "tiny")
    simulate(TRIAL, folder=job.folder.path)

    def down(*_, **__):
        raise ConnectionError("refused")

    monkeypatch.setattr(mirror.client, "search_runs", down)
    mirror.ended(job, Outcome("finished"))
    assert (
        capsys.readouterr().err
        == f"MLflow could not be updated with {TRIAL.name} (refused). Later, run: rollcall sync\n"
    )


def test_the_users_own_file_is_an_artifact(store, tmp_path):
    code = "def halving(t):\n    return 0.5**t\n"
    (tmp_path / "mine.py").write_text(code)
    local = TINY["trial"]["local"] | {"schedule": f"{tmp_path}/mine.py:halving"}
    job = Job(Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "local": local, "rounds": 1}), "tiny", store)
    simulate(job.trial, folder=job.folder.path)
    mirror = Mirror(store, "tiny")
    mirror.push(job.folder)
    (run,) = mirror.client.search_runs([mirror.id])
    assert run.data.params["local.schedule"] == f"{tmp_path}/mine.py:halving"
    assert Path(mirror.client.download_artifacts(run.info.run_id, "source/mine.py")).read_text() == code


def test_a_folder_that_never_began_is_passed_over(store):
    mirror = Mirror(store, "tiny")
    mirror.push(RunFolder(store / "tiny" / "nothing"))
    assert mirror.client.search_runs([mirror.id]) == []


def test_flatten():
    spec = {
        "task": {"name": "digits", "clients": 20, "model": {"name": "mlp", "hidden": [64, 32]}},
        "seed": 0,
        "evaluation": {"splits": None},
    }
    assert flatten(spec) == {
        "task": "digits",
        "task.clients": "20",
        "task.model": "mlp",
        "task.model.hidden": "[64, 32]",
        "seed": "0",
        "evaluation.splits": "null",
    }
