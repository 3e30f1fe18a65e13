"""Run folders are copied to MLflow while a sweep runs, and a server may be away for a while."""

from pathlib import Path

import pytest
from command import TINY

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.jobs import Job, Outcome
from rollcall.benchmark.sweep.mlflow_runs import Mirror, Runs, sync

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


def trials(runs):
    """The runs of trials in MLflow by name."""
    return {run.info.run_name: run for run in runs.client.search_runs([runs.id], "tags.`rollcall.trial` != ''")}


def test_what_an_outage_missed_is_copied_later(store, monkeypatch, capsys):
    jobs = [Job(TRIAL.model_copy(update={"seed": seed}), "tiny", store) for seed in range(3)]
    mirror = Mirror(store, "tiny")
    mirror.begin()
    for job in jobs:
        simulate(job.trial, folder=job.folder.path)
    mirror.ended(jobs[0], Outcome("finished"))

    def down(*_):
        raise ConnectionError("refused")

    with monkeypatch.context() as patch:
        patch.setattr("rollcall.benchmark.sweep.mlflow_runs.probe", down)
        for job in jobs[1:]:
            mirror.pause_ends = 0.0
            mirror.ended(job, Outcome("finished"))
    err = capsys.readouterr().err
    assert err.count("MLflow cannot be updated (refused)") == 1
    assert list(trials(mirror.runs)) == [jobs[0].trial.name]
    mirror.pause_ends = 0.0
    mirror.end("finished", lambda folder: (folder / "table.md").write_text("of all"))
    assert "MLflow answers again. Now copied: 2 run folders" in capsys.readouterr().err
    assert {name: run.info.status for name, run in trials(mirror.runs).items()} == {
        job.trial.name: "FINISHED" for job in jobs
    }
    parent = mirror.runs.client.get_run(mirror.runs.parent)
    assert parent.info.status == "FINISHED"
    assert [file.path for file in mirror.runs.client.list_artifacts(mirror.runs.parent)] == ["table.md"]


def test_a_folder_that_cannot_be_copied_does_not_block_the_others(store, capsys):
    jobs = [Job(TRIAL.model_copy(update={"seed": seed}), "tiny", store) for seed in range(2)]
    for job in jobs:
        simulate(job.trial, folder=job.folder.path)
    (jobs[0].folder.path / "trial.yaml").unlink()
    mirror = Mirror(store, "tiny")
    mirror.begin()
    for job in jobs:
        mirror.ended(job, Outcome("finished"))
    mirror.end("finished")
    assert f"not copied to MLflow: {jobs[0].folder.path}: " in capsys.readouterr().err
    assert list(trials(mirror.runs)) == [jobs[1].trial.name]


def test_after_a_failed_attempt_there_is_a_pause_in_proportion(store, monkeypatch):
    clock, attempts = [0.0], []

    def slow(_):
        attempts.append(clock[0])
        clock[0] += 3.0
        raise ConnectionError("no answer")

    monkeypatch.setattr("rollcall.benchmark.sweep.mlflow_runs.monotonic", lambda: clock[0])
    monkeypatch.setattr("rollcall.benchmark.sweep.mlflow_runs.probe", slow)
    mirror = Mirror(store, "tiny")
    mirror.begin()
    for _ in range(100):
        clock[0] += 1.0
        mirror.ended(Job(TRIAL, "tiny", store), Outcome("finished"))
    assert attempts == [0.0, 33.0, 66.0, 99.0]


def test_sync_copies_all_and_ends_what_has_died(store):
    jobs = [Job(TRIAL.model_copy(update={"seed": seed}), "tiny", store) for seed in range(2)]
    for job in jobs:
        simulate(job.trial, folder=job.folder.path)
    jobs[1].folder._write(**jobs[1].folder.status | {"state": "running", "finished": 0})
    written = []
    assert sync(store, [], lambda *arguments: written.append(arguments[0])) == {"tiny": 2}
    runs = Runs(store, "tiny")
    assert {name: run.info.status for name, run in trials(runs).items()} == {
        jobs[0].trial.name: "FINISHED",
        jobs[1].trial.name: "KILLED",
    }
    assert runs.client.get_run(runs.parent).info.status == "KILLED"
    assert written == ["tiny"]
    with pytest.raises(SettingError, match=r"^experiment: 'other' is not allowed; .* has runs of tiny$"):
        sync(store, ["other"], lambda *_: None)


def test_the_users_own_file_is_an_artifact(store, tmp_path):
    code = "def halving(t):\n    return 0.5**t\n"
    (tmp_path / "mine.py").write_text(code)
    local = TINY["trial"]["local"] | {"schedule": f"{tmp_path}/mine.py:halving"}
    job = Job(Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "local": local, "rounds": 1}), "tiny", store)
    simulate(job.trial, folder=job.folder.path)
    runs = Runs(store, "tiny")
    runs.push(job.folder)
    (run,) = runs.client.search_runs([runs.id], filter_string="params.`local.schedule` != ''")
    assert run.data.params["local.schedule"] == f"{tmp_path}/mine.py:halving"
    assert Path(runs.client.download_artifacts(run.info.run_id, "source/mine.py")).read_text() == code


def test_a_folder_that_never_began_is_passed_over(store):
    runs = Runs(store, "tiny")
    runs.push(RunFolder(store / "tiny" / "nothing"))
    assert runs.client.search_runs([runs.id]) == []
