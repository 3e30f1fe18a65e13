"""Damaged run folders and a full disk: each error is clear, and the next run ends like an undisturbed one."""

import errno
import json
import os
import shutil
from datetime import timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from runs import QUADRATIC as TRIAL
from runs import Asked, rounds_in

from rollcall import SettingError, Trial, load, simulate
from rollcall.benchmark.federation import run_folder
from rollcall.benchmark.federation.damage import examine, set_aside
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, replacing
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.jobs import Job, check, run_job
from rollcall.benchmark.sweep.run import Execution
from rollcall.leaderboard.runs import own

pytestmark = pytest.mark.fault


def stopped(folder, at=13):
    """A run that stopped, with a checkpoint of its last round."""
    with pytest.raises(Interrupted):
        simulate(TRIAL, folder=folder, checkpoint_every=timedelta(0), stop=Asked(at))


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@cache
def undisturbed():
    return simulate(TRIAL).model


def is_whole(folder):
    """Whether a rerun ends like an undisturbed run, with every row once and in order."""
    result = simulate(TRIAL, folder=folder)
    return rounds_in(folder) == [0, 5, 10, 15, 20] and np.array_equal(result.model, undisturbed())


@pytest.mark.parametrize("name", ["status.json", "trial.yaml", "last.ckpt"])
def test_a_damaged_file_is_found_and_set_aside(name, tmp_path):
    folder = tmp_path / "run"
    simulate(TRIAL, folder=folder)
    if name == "trial.yaml":
        (folder / name).write_bytes(b"\x80\x81")
    else:
        cut(folder / name)
    (finding,) = examine(folder)
    assert finding.path == folder / name
    assert set_aside(folder) == [folder / f"{name}.damaged"]
    assert examine(folder) == []
    assert is_whole(folder)


def test_the_model_of_a_longer_run_that_was_killed_is_not_that_of_the_shorter(tmp_path, monkeypatch):
    """It was killed when it had written its model, and not yet that it ended."""
    simulate(TRIAL | {"rounds": 10}, folder=tmp_path)
    before = (tmp_path / "status.json").read_text()
    simulate(TRIAL, folder=tmp_path)
    status = json.loads(before) | {"state": "running", "rounds": 20}
    status["signature"].pop("settings")
    (tmp_path / "status.json").write_text(json.dumps(status))
    with pytest.raises(Damaged, match=r"model.npz is damaged \(of 20 rounds\)"):
        load(tmp_path)
    (finding,) = examine(tmp_path)
    assert finding.problem == "it says finished, but model.npz is of 20 rounds"
    set_aside(tmp_path)
    assert is_whole(tmp_path)


def test_nothing_is_set_aside_in_a_run_that_began_meanwhile(tmp_path):
    stopped(tmp_path)
    cut(tmp_path / "last.ckpt")
    with RunFolder(tmp_path).locked():
        assert set_aside(tmp_path) == []
    assert set_aside(tmp_path) == [tmp_path / "last.ckpt.damaged"]


def test_a_status_without_settings_is_examined(tmp_path):
    (tmp_path / "status.json").write_text(
        '{"state": "finished", "digest": "1", "round": 5, "rounds": 5, "finished": 5}'
    )
    (finding,) = examine(tmp_path)
    assert finding.problem == "it says finished, but model.npz is missing"


@pytest.mark.parametrize(
    "part", ['"settings": 3', '"signature": {"rows": 3}', '"signature": {"rows": "x", "metrics": ""}']
)
def test_a_status_with_a_part_of_another_kind_is_examined(part, tmp_path):
    (tmp_path / "status.json").write_text(f"{{{part}}}")
    (finding,) = examine(tmp_path)
    assert finding.problem.startswith(part[1:].partition('"')[0] + " is ")


def test_a_status_of_too_many_brackets_is_not_json(tmp_path):
    (tmp_path / "status.json").write_text("[" * 100_000)
    with pytest.raises(Damaged, match="not valid JSON"):
        _ = RunFolder(tmp_path).status


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    stopped(tmp_path, at=5)
    (tmp_path / "last.ckpt.99999.new").write_bytes(b"half")
    (tmp_path / "tmpabc.new" / "source").mkdir(parents=True)
    assert is_whole(tmp_path)
    assert not [*tmp_path.glob("*.new")]


def test_a_full_disk_keeps_the_earlier_file_and_names_it(tmp_path):
    file = tmp_path / "table.md"
    file.write_text("before")
    with pytest.raises(OSError, match="No space left") as error, replacing(file):
        full()
    assert error.value.filename == str(file)
    assert [one.name for one in tmp_path.iterdir()] == ["table.md"]
    assert file.read_text() == "before"


def test_the_model_of_a_diverged_run_is_examined(tmp_path):
    trial = TRIAL | {"local": {"steps": 2, "lr": 50.0}, "rounds": 200}
    assert simulate(trial, folder=tmp_path).diverged
    assert examine(tmp_path) == []
    cut(tmp_path / "model.npz")
    (finding,) = examine(tmp_path)
    assert finding.problem.startswith("it says diverged, but model.npz is ")
    set_aside(tmp_path)
    assert simulate(trial, folder=tmp_path).diverged
    assert examine(tmp_path) == []


def test_what_a_kill_lost_does_not_count_in_the_seconds_and_the_first_code_stays(tmp_path):
    """Killed after ten rounds and 100 seconds; the checkpoint has five."""
    stopped(tmp_path, at=5)
    status, file = RunFolder(tmp_path).status, tmp_path / "status.json"
    code = status["code"] | {"algorithms.base": "0123456789"}
    file.write_text(json.dumps(status | {"round": 10, "seconds": 100.0, "evaluation_seconds": 8.0, "code": code}))
    assert is_whole(tmp_path)
    status = RunFolder(tmp_path).status
    assert 50 <= status["seconds"] < 90
    assert 4 <= status["evaluation_seconds"] < 7
    assert status["code"] == code


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"round": 0}\n{"rou\n{"round": 10}\n')
    with pytest.raises(Damaged, match=r"metrics.jsonl is damaged \(line 2 is not an evaluation\)"):
        RunFolder(tmp_path).history()


def test_without_a_good_checkpoint_the_run_says_so(tmp_path):
    stopped(tmp_path)
    cut(tmp_path / "last.ckpt")
    with pytest.raises(Damaged, match=r"last.ckpt is damaged .*rollcall doctor"):
        simulate(TRIAL, folder=tmp_path)
    assert len(set_aside(tmp_path)) == 1
    assert is_whole(tmp_path)


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def carried_out(folder, rounds=20):
    return run_job(Trial.read(TRIAL | {"rounds": rounds}), folder, lambda: False)


def test_a_full_disk_during_a_run(tmp_path, monkeypatch):
    """Half of a row is written, then nothing more."""
    simulate(TRIAL | {"rounds": 10}, folder=tmp_path)
    before = (tmp_path / "metrics.jsonl").read_text()
    opened = Path.open

    def opening(self, mode="r", *rest, **options):
        stream = opened(self, mode, *rest, **options)
        if mode == "a":
            monkeypatch.setattr(Path, "write_text", full)
            monkeypatch.setattr(run_folder.np, "savez", full)
            stream.write('{"round')
            stream.close()
            full()
        return stream

    monkeypatch.setattr(Path, "open", opening)
    assert carried_out(tmp_path) == "OSError: [Errno 28] No space left on device"
    assert (tmp_path / "metrics.jsonl").read_text() == f'{before}{{"round'
    assert RunFolder(tmp_path).finished == 10
    assert not list(tmp_path.glob("*.new"))
    monkeypatch.undo()
    assert carried_out(tmp_path) == ""
    assert rounds_in(tmp_path) == [0, 5, 10, 15, 20]
    assert np.array_equal(RunFolder(tmp_path).models()["model"], undisturbed())


ALTERATIONS = {
    "cut after two lines": lambda text: "".join(text.splitlines(keepends=True)[:2]),
    "a digit": lambda text: text.replace('"train/loss": ', '"train/loss": 1', 1),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_results_are_noticed(name, tmp_path, capsys):
    folder = tmp_path / "runs" / "mine" / "one"
    simulate(TRIAL, folder=folder)
    assert (examine(folder), len(own(tmp_path / "runs", "mine"))) == ([], 1)
    file = folder / "metrics.jsonl"
    before = file.read_text()
    file.write_text(ALTERATIONS[name](before))
    assert file.read_text() != before
    (finding,) = examine(folder)
    assert finding.path == folder
    assert own(tmp_path / "runs", "mine") == []
    assert f"left out: {folder}: metrics.jsonl: " in capsys.readouterr().err
    set_aside(folder)
    assert is_whole(folder)


def test_a_checkpoint_that_names_code_is_damaged(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.system, ("touch hostile",)

    stopped(tmp_path)
    torch.save({"state_dict": Hostile()}, tmp_path / "last.ckpt")
    (finding,) = examine(tmp_path)
    assert finding.path.name == "last.ckpt"
    assert finding.problem.startswith("torch.load refuses it: ")
    assert not os.path.exists("hostile")
    set_aside(tmp_path)
    assert is_whole(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        *({"finished": value} for value in (None, float("nan"))),
        *({name: None} for name in ("signature", "device", "versions")),
        {"updated": "x"},
        {"digest": 3},
        {"diverged": True},
    ],
)
def test_a_status_with_values_of_another_kind_is_damaged(change, tmp_path, capsys):
    simulate(TRIAL, folder=tmp_path / "e" / "run")
    run = RunFolder(tmp_path / "e" / "run")
    run.status_file.write_text(json.dumps(run.status | change))
    with pytest.raises(Damaged, match=f"{next(iter(change))} is"):
        _ = run.status
    assert run.status_file.name in {finding.path.name for finding in examine(run.path)}
    assert own(tmp_path, "e") == []
    assert "left out" in capsys.readouterr().err


def test_a_status_without_its_state_is_damaged(tmp_path):
    simulate(TRIAL, folder=tmp_path)
    (tmp_path / "status.json").write_text("{}")
    with pytest.raises(Damaged, match="without state, digest, round, rounds"):
        simulate(TRIAL, folder=tmp_path)
    assert len(set_aside(tmp_path)) == 1
    assert is_whole(tmp_path)


@pytest.mark.parametrize("name", ["last.ckpt", "model.npz"])
def test_files_of_another_trial_are_refused(name, tmp_path):
    folder, other = tmp_path / "one", tmp_path / "other"
    simulate(TRIAL | {"seed": 1}, folder=other)
    (stopped if name == "last.ckpt" else lambda folder: simulate(TRIAL, folder=folder))(folder)
    shutil.copy(other / name, folder / name)
    with pytest.raises(Damaged, match=rf"{name} is damaged \(of another trial\)"):
        simulate(TRIAL, folder=folder)
    (finding,) = examine(folder)
    assert "of another trial" in finding.problem
    set_aside(folder)
    assert is_whole(folder)


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("last.ckpt", {"a": 1}, "not a checkpoint of a run"),
        ("model.npz", {"model": np.zeros(2)}, "without `model` and `server`"),
        ("model.npz", {"model": np.zeros(2), "server": np.zeros(3)}, "without two models of one size"),
    ],
)
def test_whole_files_without_what_they_should_have_are_refused(file, content, problem, tmp_path):
    if file == "last.ckpt":
        stopped(tmp_path)
        torch.save(content, tmp_path / file)
    else:
        simulate(TRIAL, folder=tmp_path)
        np.savez(tmp_path / file, **content)
    with pytest.raises(Damaged, match=f"{file} is damaged .{problem}"):
        simulate(TRIAL, folder=tmp_path)
    (finding,) = examine(tmp_path)
    assert problem in finding.problem


@pytest.mark.parametrize("alter", [lambda text: text[: text.index("rounds")], lambda text: text + "a: 1\n"])
def test_altered_settings_are_noticed_and_the_next_run_writes_them_again(alter, tmp_path, capsys):
    job = Job(Trial.read(TRIAL), "mine", tmp_path)
    folder, file = job.folder.path, job.folder.settings
    simulate(TRIAL | {"rounds": 10}, folder=folder)
    simulate(TRIAL, folder=folder)  # continued: its settings have other rounds now
    assert (examine(folder), len(own(tmp_path, "mine"))) == ([], 1)
    before = file.read_text()
    file.write_text(alter(before))
    (finding,) = examine(folder)
    assert (finding.path, finding.problem) == (file, "changed after the run wrote it")
    assert own(tmp_path, "mine") == []
    assert f"left out: {folder}: trial.yaml: changed after the run wrote it; `rollcall" in capsys.readouterr().err
    with pytest.raises(Damaged, match=r"trial\.yaml is damaged"):
        load(folder)
    for again in (
        lambda: check([job], Execution(tmp_path, "inline", mlflow=False)),
        lambda: simulate(TRIAL, folder=folder),
    ):
        file.write_text(alter(before))
        again()
        assert file.read_text() == before
        assert (examine(folder), len(own(tmp_path, "mine"))) == ([], 1)


class Removing(Callback):
    """Removes the evaluations after some rounds, as another process may."""

    def on_train_batch_end(self, trainer, federation, *_):
        if federation.t == 12:
            (self.folder / "metrics.jsonl").unlink()


def test_evaluations_that_vanish_during_a_run_are_noticed(tmp_path):
    callback = Removing()
    callback.folder = tmp_path
    with pytest.raises(SettingError, match="it has 2 evaluations, and the run wrote 5; another process changed it"):
        simulate(TRIAL, folder=tmp_path, callbacks=[callback])
    assert not RunFolder(tmp_path).finished
    assert is_whole(tmp_path)


@pytest.mark.parametrize("line", ['{"round": "x"}', '{"round": null}', '{"round": 0, "train/loss": "x"}'])
def test_a_line_without_numbers_is_no_evaluation(line, tmp_path):
    (tmp_path / "metrics.jsonl").write_text(f"{line}\n")
    with pytest.raises(Damaged, match="line 1 is not an evaluation"):
        RunFolder(tmp_path).history()


@pytest.mark.parametrize("name", ["metrics.jsonl", "trial.yaml", "model.npz"])
def test_a_folder_in_place_of_a_file_is_a_finding(name, tmp_path):
    simulate(TRIAL, folder=tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    (finding,) = examine(tmp_path)
    assert (finding.path, finding.problem) == (tmp_path / name, "a folder")


def test_a_run_that_dies_as_it_is_continued_keeps_its_result(tmp_path, monkeypatch):
    """After it has written its new settings and before it has signed them."""
    job = Job(Trial.read(TRIAL), "mine", tmp_path)
    folder, short = job.folder.path, TRIAL | {"rounds": 10}
    simulate(short, folder=folder)
    save = RunFolder.save_settings

    def dying(run, trial):
        save(run, trial)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "save_settings", dying)
    with pytest.raises(KeyboardInterrupt):
        simulate(TRIAL, folder=folder)
    monkeypatch.undo()
    assert "rounds: 20" in job.folder.settings.read_text()
    assert (examine(folder), [run.rounds for run in own(tmp_path, "mine")]) == ([], [10])
    assert is_whole(folder)


class Stored:
    """A checkpoint in a storage, with run folders."""

    def __init__(self, folder):
        self.folder = folder

    def to_directory(self, folder):
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)


@pytest.mark.parametrize("copied", range(5))
def test_a_driver_killed_between_two_files_loses_no_result(copied, tmp_path, monkeypatch):
    """A run of 10 rounds is continued to 20 elsewhere; some of its files have come home."""
    ray_executor = pytest.importorskip("rollcall.benchmark.sweep.ray_executor")
    home, away = tmp_path / "home" / "run", tmp_path / "away" / "run"
    simulate(TRIAL | {"rounds": 10}, folder=home)
    shutil.copytree(home, away)
    with pytest.raises(Interrupted):
        simulate(TRIAL, folder=away, checkpoint_every=timedelta(0), stop=Asked(7))
    copy, done = ray_executor.copyfile, iter(range(99))

    def copying(source, target):
        if next(done) == copied:
            raise KeyboardInterrupt
        copy(source, target)

    monkeypatch.setattr(ray_executor, "copyfile", copying)
    attempt = ray_executor._Attempt(None, home.parent, Execution(storage="s"), bool, {})
    with pytest.raises(KeyboardInterrupt):
        attempt.on_checkpoint(0, [], None, Stored(away.parent))
    assert RunFolder(home).state_now == "running"
    for held in attempt.held.values():
        held.close()
    assert RunFolder(home).state_now == "interrupted"
    assert examine(home) == []
    assert RunFolder(home).finished == 10
    assert is_whole(home)
