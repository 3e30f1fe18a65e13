"""A full disk: the error is clear, earlier results stay, and the next run resumes."""

import errno
import json
import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from rollcall import Trial, simulate
from rollcall.benchmark.federation import run_folder
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.federation.trained import load_buffers, save_buffers
from rollcall.benchmark.sweep.jobs import carry_out

TRIAL = {
    "task": {"name": "quadratic", "targets": [[0.0, 1.0], [4.0, 5.0], [2.0, -3.0]]},
    "participation": {"name": "bernoulli", "probability": 0.5},
    "algorithm": "mifa",
    "local": {"steps": 2, "lr": 0.1},
    "rounds": 20,
    "evaluation": {"every": 5},
}


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def rounds_in(folder):
    return [json.loads(line)["round"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def carried_out(folder, rounds=20):
    return carry_out(Trial.read(TRIAL | {"rounds": rounds}), folder, lambda: False)


def test_a_full_disk_during_a_run(tmp_path, monkeypatch):
    """Half of a row is written, then nothing more."""
    simulate(TRIAL | {"rounds": 10}, folder=tmp_path)
    before = (tmp_path / "metrics.jsonl").read_text()

    def half(file: Path, line: str):
        monkeypatch.setattr(Path, "write_text", full)
        monkeypatch.setattr(run_folder.np, "savez", full)
        with file.open("a") as stream:
            stream.write(line[:7])
        full()

    monkeypatch.setattr(run_folder, "append_line", half)
    outcome = carried_out(tmp_path)
    assert outcome.state == "failed"
    assert outcome.error == (
        f"the disk of {tmp_path} is full. Earlier results are intact. Free space, then rerun the command: it resumes "
        "from the last checkpoint"
    )
    assert (tmp_path / "metrics.jsonl").read_text().startswith(before)
    assert RunFolder(tmp_path).finished == 10
    assert not list(tmp_path.glob("*.new"))
    monkeypatch.undo()
    assert carried_out(tmp_path).state == "finished"
    assert rounds_in(tmp_path) == [0, 5, 10, 15, 20]
    assert np.array_equal(RunFolder(tmp_path).models()[0], simulate(TRIAL).model)


def test_buffers_that_do_not_fit_leave_the_file_as_it_was(tmp_path, monkeypatch):
    save_buffers(tmp_path, {"mean": np.array([1.0, 2.0])})

    def half(file, **_):
        stream = file.open("wb") if isinstance(file, Path) else file
        stream.write(b"PK")
        full()

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="No space left"):
        save_buffers(tmp_path, {"mean": np.array([3.0, 4.0])})
    assert [file.name for file in tmp_path.iterdir()] == ["buffers.npz"]
    assert load_buffers(tmp_path)["mean"].tolist() == [1, 2]


def test_a_row_that_does_not_fit_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "metrics.jsonl"
    run_folder.append_line(file, '{"round": 0}')
    original = Path.open

    class Half:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.stream.close()

        def write(self, text):
            self.stream.write(text[:4])
            self.stream.flush()
            full()

    def opening(self, mode="r", *rest, **options):
        stream = original(self, mode, *rest, **options)
        return Half(stream) if mode == "a" else stream

    monkeypatch.setattr(Path, "open", opening)
    with pytest.raises(OSError, match="No space left"):
        run_folder.append_line(file, '{"round": 5}')
    assert file.read_text() == '{"round": 0}\n'


def test_a_file_that_cannot_be_replaced_stays(tmp_path):
    file = tmp_path / "status.json"
    file.write_text("old")

    def write():
        with run_folder.replacing(file) as scratch:
            scratch.write_text("ne")
            full()

    with pytest.raises(OSError, match="No space left") as raised:
        write()
    assert run_folder.is_full_disk(raised.value)
    assert not run_folder.is_full_disk(OSError(errno.EACCES, "denied"))
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]
    assert file.read_text() == "old"


def test_a_full_disk_at_a_checkpoint(tmp_path, monkeypatch):
    """Lightning's writer meets the full disk; the checkpoint before stays good."""
    from lightning.pytorch import Trainer

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
    assert "is full" in RunFolder(tmp_path).status["error"]
    assert sorted(path.name for path in tmp_path.glob("*.ckpt*")) == ["last.ckpt", "previous.ckpt"]
    monkeypatch.undo()
    assert carried_out(tmp_path).state == "finished"
    assert rounds_in(tmp_path) == [0, 5, 10, 15, 20]
    assert np.array_equal(RunFolder(tmp_path).models()[0], simulate(TRIAL).model)
