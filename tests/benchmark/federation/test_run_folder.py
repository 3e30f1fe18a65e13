"""The run folder: its files, its lock, its status, the commit of the code, and which folders are run folders."""

import json
import shutil
import subprocess
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from runs import DIGITS, Asked, rounds_in

from rollcall import SettingError, simulate
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation import run_folder
from rollcall.benchmark.federation.run_folder import RunFolder, run_folders, set_aside
from rollcall.benchmark.process import Interrupted


def test_a_run_folder_tells_the_whole_story(tmp_path):
    result = simulate(DIGITS | {"algorithm": "fedpbc"}, folder=tmp_path / "run")
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert status["state"] == "finished"
    assert status["round"] == status["rounds"] == 13
    assert status["versions"]["torch"] == torch.__version__.partition("+")[0]
    assert status["device"] == "cpu"
    assert status["seconds"] > 0
    assert (tmp_path / "run" / "last.ckpt").exists()
    again = simulate(tmp_path / "run" / "trial.yaml", folder=tmp_path / "run")
    assert np.array_equal(again.model, result.model)
    assert again.history.equals(result.history)
    assert np.array_equal(simulate(tmp_path / "run" / "trial.yaml").model, result.model)


def test_a_folder_is_run_by_one_process_at_a_time(tmp_path):
    trial = DIGITS | {"algorithm": "fedpbc"}

    class Another(Callback):
        def on_train_batch_end(self, trainer, federation, *_):
            if federation.t == 5:
                with pytest.raises(SettingError, match=r"folder: .*run is in use; another process"):
                    simulate(trial, folder=tmp_path / "run")

    disturbed = simulate(trial, folder=tmp_path / "run", callbacks=[Another()])
    assert RunFolder(tmp_path / "run").state == "finished"
    assert disturbed.history.equals(simulate(trial).history)


def test_a_folder_belongs_to_one_trial(tmp_path):
    simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2}, folder=tmp_path / "run")
    with pytest.raises(SettingError, match=r"folder: .*run is not allowed; it holds another trial, fedavg-seed0-"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2, "seed": 1}, folder=tmp_path / "run")
    with pytest.raises(SettingError, match=r"rounds: 1 is not allowed with .*run, which holds 2 rounds of this trial"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 1}, folder=tmp_path / "run")


def test_a_failing_trial_says_why_in_its_folder(tmp_path):
    class Broken(Callback):
        def on_train_batch_end(self, *_):
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        simulate(DIGITS | {"algorithm": "fedavg"}, folder=tmp_path / "run", callbacks=[Broken()])
    assert RunFolder(tmp_path / "run").status["error"] == "RuntimeError: out of luck"
    assert RunFolder(tmp_path / "run").state == "failed"


def test_status_follows_about_once_a_second_and_ends_exact(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("rollcall.benchmark.federation.run_folder.time.monotonic", lambda: now)
    run = RunFolder(tmp_path / "run")
    seen = []
    with run.running(Trial.read(DIGITS | {"algorithm": "fedavg"}), device="cpu", threads=1):
        for t, now in ((1, 100.5), (2, 101.0), (3, 101.5), (4, 102.5)):  # noqa: B007
            run.append({"round": t}, seconds=0.25)
            seen.append(run.status["round"])
        run.append({"round": 5})
        assert run.history()["round"].tolist() == [1, 2, 3, 4, 5]
    assert seen == [0, 2, 2, 4]
    assert run.status["round"] == 5
    assert run.state == "finished"
    assert (run.status["seconds"], run.status["evaluation_seconds"]) == (2.5, 1.0)
    with run.running(Trial.read(DIGITS | {"algorithm": "fedavg"}), device="cpu", threads=1):
        run.append({"round": 6}, seconds=0.5)
        now += 3.0
    assert (run.status["seconds"], run.status["evaluation_seconds"]) == (5.5, 1.5)


def test_rows_of_rounds_after_a_checkpoint_are_not_doubled(tmp_path):
    class Killed(Callback):
        def on_train_batch_end(self, trainer, federation, *_):
            if federation.t == 15:
                raise RuntimeError("killed")

    trial = DIGITS | {"algorithm": "fedpbc", "rounds": 20, "evaluation": {"every": 2}}
    with pytest.raises(Interrupted):
        simulate(trial, folder=tmp_path, stop=Asked(7))
    with pytest.raises(RuntimeError):  # with the checkpoint of round 7 and rows until 14
        simulate(trial, folder=tmp_path, callbacks=[Killed()], checkpoint_every=timedelta(hours=1))
    resumed = simulate(trial, folder=tmp_path)
    assert rounds_in(tmp_path) == list(range(0, 21, 2))
    assert resumed.history.equals(simulate(trial).history)


FILE = "lib/benchmark/run_folder.py"


@pytest.fixture
def git(tmp_path):
    """Runs git in a repository that holds a copy of the module."""
    (tmp_path / FILE).parent.mkdir(parents=True)
    shutil.copy(run_folder.__file__, tmp_path / FILE)

    def run(*arguments):
        name = ["-c", "user.name=x", "-c", "user.email=x@x"]
        command = ["git", *name, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    run("init", "--quiet")
    return run


def commit(folder):
    """What the copy in this folder records."""
    spec = spec_from_file_location("copied_run_folder", folder / FILE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.commit()


def test_the_checkout_of_the_code(git, tmp_path):
    git("add", "--all")
    git("commit", "--quiet", "--message", "all")
    head = git("rev-parse", "--short=12", "HEAD")
    assert commit(tmp_path) == head
    with (tmp_path / FILE).open("a") as file:
        file.write("# changed\n")
    assert commit(tmp_path) == f"{head}+"


def test_an_environment_inside_a_checkout_of_other_code(git, tmp_path):
    (tmp_path / ".gitignore").write_text("lib\n")
    git("add", "--all")
    git("commit", "--quiet", "--message", "other code")
    assert commit(tmp_path) is None


@pytest.fixture
def folders(tmp_path):
    for file in ("e/b/status.json", "e/a/status.json", "e/a/lock", "e/c/lock", "e/deep/d/status.json", "e/tuned.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "e" / "x").mkdir()
    (tmp_path / "e" / "x" / "status.json").touch()
    set_aside(tmp_path / "e" / "x")
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "options", "expected"),
    [
        (".", {}, ["e/a", "e/b", "e/deep/d"]),
        ("e", {}, ["e/a", "e/b", "e/deep/d"]),
        ("e/a", {}, ["e/a"]),
        ("e", {"below": False}, ["e/a", "e/b"]),
        (".", {"below": False}, []),
        ("none", {}, []),
    ],
)
def test_run_folders(folder, options, expected, folders):
    assert run_folders(folders / folder, **options) == [folders / name for name in expected]
