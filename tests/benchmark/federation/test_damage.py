"""Damaged run folders and a full disk: each error is clear, and the next run ends like an undisturbed one."""

import errno
import json
import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from lightning.pytorch import Trainer
from runs import QUADRATIC as TRIAL
from runs import Asked, rounds_in

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.federation import run_folder
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, examine, run_folders, set_aside
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.jobs import run_job
from rollcall.leaderboard.runs import own

pytestmark = pytest.mark.fault


def stopped(folder, at=13):
    """A run that stopped, with a checkpoint of its last round."""
    with pytest.raises(Interrupted):
        simulate(TRIAL, folder=folder, checkpoint_every=timedelta(0), stop=Asked(at))


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def is_whole(folder):
    """Whether a rerun ends like an undisturbed run, with every row once and in order."""
    result = simulate(TRIAL, folder=folder)
    return rounds_in(folder) == [0, 5, 10, 15, 20] and np.array_equal(result.model, simulate(TRIAL).model)


def test_a_folder_that_can_only_be_read(tmp_path, monkeypatch):
    """The lock cannot be tried there; a trial that runs would hold it and write."""
    stopped(tmp_path / "run")

    def refuses(self):
        raise PermissionError(13, "Permission denied", self.lock_file)

    monkeypatch.setattr(FileLock, "acquire", refuses)
    assert examine(tmp_path / "run") == []
    (tmp_path / "run" / "trial.yaml").write_text("- 1")
    assert [finding.problem for finding in examine(tmp_path / "run")] == ["not a YAML mapping"]


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
    assert set_aside(finding.path) == folder / f"{name}.damaged"
    assert examine(folder) == []
    assert is_whole(folder)


def test_a_lost_model_is_made_again(tmp_path):
    simulate(TRIAL, folder=tmp_path)
    cut(tmp_path / "model.npz")
    with pytest.raises(Damaged, match=r"model.npz is damaged \(cut off or not readable\)"):
        simulate(TRIAL, folder=tmp_path)
    (finding,) = examine(tmp_path)
    assert finding.path == tmp_path / "status.json"
    set_aside(finding.path)
    assert is_whole(tmp_path)
    assert examine(tmp_path) == []


def test_a_damaged_status_is_named_with_the_next_step(tmp_path):
    simulate(TRIAL, folder=tmp_path)
    cut(tmp_path / "status.json")
    with pytest.raises(SettingError, match=r"status.json is damaged \(not valid JSON\).*rollcall doctor .* --fix"):
        simulate(TRIAL, folder=tmp_path)


@pytest.mark.parametrize("damage", [lambda lines: [lines[0][:5], *lines[1:]], lambda lines: lines[:2]])
def test_lost_evaluations_set_the_folder_aside(damage, tmp_path):
    folder = tmp_path / "run"
    simulate(TRIAL, folder=folder)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(damage(lines)) + "\n")
    (finding,) = examine(folder)
    assert finding.path == folder
    set_aside(finding.path)
    assert run_folders(tmp_path) == []
    assert is_whole(folder)


def test_a_truncated_last_line_is_mended_by_the_next_run(tmp_path):
    stopped(tmp_path)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"round": 1')
    assert RunFolder(tmp_path).history()["round"].tolist() == [0, 5, 10]
    assert is_whole(tmp_path)


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"round": 0}\n{"rou\n{"round": 10}\n')
    with pytest.raises(Damaged, match=r"metrics.jsonl is damaged \(line 2 is not an evaluation\)"):
        RunFolder(tmp_path).history()


def test_without_a_good_checkpoint_the_run_says_so(tmp_path):
    stopped(tmp_path)
    cut(tmp_path / "last.ckpt")
    with pytest.raises(Damaged, match=r"last.ckpt is damaged .*rollcall doctor"):
        simulate(TRIAL, folder=tmp_path)
    (finding,) = examine(tmp_path)
    set_aside(finding.path)
    assert is_whole(tmp_path)


def test_a_running_trial_is_left_alone(tmp_path):
    with RunFolder(tmp_path).running(Trial.read(TRIAL), device="cpu", threads=1):
        (tmp_path / "trial.yaml").write_text("- 1")
        assert examine(tmp_path) == []


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
    assert np.array_equal(RunFolder(tmp_path).models()[0], simulate(TRIAL).model)


def test_a_full_disk_at_a_checkpoint(tmp_path, monkeypatch):
    """Lightning's writer meets the full disk; the checkpoint before stays good."""
    save, calls = Trainer.save_checkpoint, []

    def filling(self, path, *rest, **options):
        calls.append(path)
        if len(calls) > 7:
            Path(path).write_bytes(b"half")
            full()
        save(self, path, *rest, **options)

    monkeypatch.setattr(Trainer, "save_checkpoint", filling)
    with pytest.raises(OSError, match="No space left"):
        simulate(TRIAL, folder=tmp_path, checkpoint_every=timedelta(0))
    assert "No space left" in RunFolder(tmp_path).status["error"]
    assert sorted(path.name for path in tmp_path.glob("*.ckpt*")) == ["last.ckpt"]
    monkeypatch.undo()
    assert carried_out(tmp_path) == ""
    assert rounds_in(tmp_path) == [0, 5, 10, 15, 20]
    assert np.array_equal(RunFolder(tmp_path).models()[0], simulate(TRIAL).model)


def changed(old, new):
    def change(file):
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new, 1))

    return change


ALTERATIONS = {
    "metrics.jsonl cut in half": ("metrics.jsonl", lambda file: file.write_bytes(b"".join(lines_of(file)[:2]))),
    "the last evaluation gone": ("metrics.jsonl", lambda file: file.write_bytes(b"".join(lines_of(file)[:-1]))),
    "an evaluation too many": ("metrics.jsonl", lambda file: file.write_bytes(b"".join([*lines_of(file), *lines_of(file)]))),
    "a digit": ("metrics.jsonl", changed('"train/loss": ', '"train/loss": 1')),
}  # fmt: skip


def lines_of(file):
    return file.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_results_are_noticed(name, tmp_path, capsys):
    folder = tmp_path / "runs" / "mine" / "one"
    simulate(TRIAL, folder=folder)
    assert (examine(folder), len(own(tmp_path / "runs", "mine"))) == ([], 1)
    file, alter = ALTERATIONS[name]
    alter(folder / file)
    (finding,) = examine(folder)
    assert finding.path == folder
    assert own(tmp_path / "runs", "mine") == []
    assert f"left out: {folder}: {file}: " in capsys.readouterr().err
    set_aside(finding.path)
    assert is_whole(folder)


def test_a_run_of_an_earlier_version_is_not_signed(tmp_path, capsys):
    folder = tmp_path / "runs" / "mine" / "one"
    simulate(TRIAL, folder=folder)
    status = json.loads((folder / "status.json").read_text())
    del status["signature"]
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "metrics.jsonl").write_bytes(b"".join(lines_of(folder / "metrics.jsonl")))
    assert (examine(folder), len(own(tmp_path / "runs", "mine"))) == ([], 1)
    assert capsys.readouterr().err == ""


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
    set_aside(finding.path)
    assert is_whole(tmp_path)
