"""Run folders are copied to MLflow while a sweep runs, and a server may be away for a while."""

from pathlib import Path

import pytest
from command import TINY

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.jobs import Job
from rollcall.benchmark.sweep.mlflow_runs import Mirror, Runs, sync

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


def trials(runs):
    """The runs of trials in MLflow by name."""
    return {run.info.run_name: run for run in runs.client.search_runs([runs.id], "tags.`rollcall.trial` != ''")}


@pytest.fixture
def jobs(store):
    return [Job(TRIAL.model_copy(update={"seed": seed}), "tiny", store) for seed in range(3)]


def mirror_of(jobs):
    return Mirror(jobs[0].store, "tiny", [job.folder for job in jobs])


def test_a_running_trial_is_copied_at_each_look(jobs):
    mirror, folder, steps = mirror_of(jobs), jobs[0].folder, []
    with folder.running(jobs[0].trial, device="cpu", threads=1):
        for t in range(4):
            folder.append({"round": t, "train/loss": 1.0})
            folder.saved(t)
            if t % 2:
                mirror.look()
                (run,) = trials(mirror.runs).values()
                steps.append(run.data.tags["rollcall.round"])
                assert run.info.status == "RUNNING"
    assert steps == ["1", "3"]
    mirror.look()
    assert trials(mirror.runs)[jobs[0].trial.name].info.status == "FINISHED"


def test_a_folder_that_cannot_be_copied_does_not_block_the_others(jobs, capsys):
    mirror = mirror_of(jobs)
    for job in jobs[:2]:
        simulate(job.trial, folder=job.folder.path)
    (jobs[0].folder.path / "trial.yaml").unlink()
    for _ in range(2):
        mirror.look()
    assert capsys.readouterr().err.count(f"not copied to MLflow: {jobs[0].folder.path}: ") == 1
    assert list(trials(mirror.runs)) == [jobs[1].trial.name]


def test_sync_copies_all_and_ends_what_has_died(jobs, store):
    jobs = jobs[:2]
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
