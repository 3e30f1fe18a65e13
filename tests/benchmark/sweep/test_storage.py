"""Run folders on a storage: what a kill leaves, what comes home, and addresses that are no storage."""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from pyarrow.fs import copy_files

from benchmark import Trial, simulate
from benchmark.config.errors import SettingError
from benchmark.federation.interruption import Interrupted
from benchmark.federation.run_folder import RunFolder
from benchmark.sweep.jobs import Job
from benchmark.sweep.storage import Copier, Folder, Storage

TRIAL = Trial.read(
    {
        "task": {"name": "quadratic", "targets": [[0.0], [1.0], [4.0]]},
        "participation": {"name": "bernoulli", "probability": 0.5},
        "algorithm": "mifa",
        "rounds": 20,
        "evaluation": {"every": 1},
    }
)
AT_ONCE = timedelta(0)


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs."""


@pytest.fixture
def storage(tmp_path):
    return Storage.of(str(tmp_path / "storage"), tmp_path / "runs")


@pytest.fixture
def job(tmp_path):
    return Job(TRIAL, "paper/table", tmp_path / "runs")


def place(tmp_path: Path) -> Path:
    """The run folder of the job on the storage."""
    return tmp_path / "storage" / "paper" / "table" / TRIAL.name


def on_a_node(storage, job, stop=lambda: False, tell=lambda rounds: None):
    return storage.carry_out(TRIAL, job.folder.path, tell, stop, AT_ONCE)


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def stop_after(rounds: int):
    calls = iter(range(1, 10**6))
    return lambda: next(calls) >= rounds


def test_a_trial_goes_on_on_another_node_and_comes_home(storage, job, tmp_path):
    undisturbed = simulate(TRIAL, folder=tmp_path / "undisturbed")
    assert on_a_node(storage, job, stop_after(5)).state == "interrupted"
    assert RunFolder(place(tmp_path)).status["round"] == 5
    assert not job.folder.path.exists()  # a node uses its own disk
    rounds = []
    assert on_a_node(storage, job, lambda: rounds.append(0)).state == "finished"
    assert len(rounds) == 14  # asked after each of the 15 rounds but the last one
    storage.fetch(job.folder.path)
    assert job.finished
    assert np.array_equal(job.folder.models()[0], undisturbed.model)
    for name in ("metrics.jsonl", "model.npz", "trial.yaml"):
        assert (job.folder.path / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


@pytest.mark.parametrize("copies", range(1, 6))
def test_a_kill_while_copying_leaves_the_last_good_checkpoint(storage, job, tmp_path, monkeypatch, copies):
    on_a_node(storage, job, stop_after(5))
    left = iter(range(copies, -1, -1))

    def killed(source, target, *systems, **options):
        if target.startswith(str(tmp_path / "storage")) and next(left) == 0:
            Path(target).write_bytes(Path(source).read_bytes()[:99])
            raise Killed
        copy_files(source, target, *systems, **options)

    monkeypatch.setattr("benchmark.sweep.storage.copy_files", killed)
    with pytest.raises(Killed):
        on_a_node(storage, job)
    monkeypatch.undo()
    run = RunFolder(place(tmp_path))
    assert run.resumable() == run.checkpoint
    assert on_a_node(storage, job).state == "finished"
    simulate(TRIAL, folder=tmp_path / "undisturbed")
    assert run.metrics.read_bytes() == (tmp_path / "undisturbed" / "metrics.jsonl").read_bytes()
    assert (run.path / "model.npz").read_bytes() == (tmp_path / "undisturbed" / "model.npz").read_bytes()


def test_checkpoints_are_put_while_the_trial_runs(storage, job, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "benchmark.sweep.jobs.Ticker.on_train_batch_end", lambda self, _, federation, *__: self.tell(federation.t)
    )
    reached = []
    on_a_node(storage, job, tell=lambda rounds: reached.append(RunFolder(place(tmp_path)).status.get("round")))
    # The number of the last checkpoint: that of the round before, since a checkpoint follows the report of its round.
    assert reached == [None, *range(1, 20)]


def test_the_folder_with_more_rounds_replaces_the_other(storage, job, tmp_path):
    with pytest.raises(Interrupted):
        simulate(TRIAL, folder=job.folder.path, stop=stop_after(5))
    storage.exchange([job])  # from an earlier sweep without a storage
    there = files(place(tmp_path))
    assert there == {name: text for name, text in files(job.folder.path).items() if name != "lock"}
    storage.exchange([job])
    assert files(place(tmp_path)) == there
    on_a_node(storage, job)
    assert not job.finished  # the driver was killed before it came home
    storage.exchange([job])
    assert job.finished
    storage.remove(job.folder.path)
    assert not place(tmp_path).exists()


def test_a_copy_has_the_files_of_the_source_only(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, names in ((one, ["status.json", "source/mine.py", "lock"]), (other, ["error.txt", "previous.ckpt"])):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
    copy = Copier(Folder.local(one), Folder.local(other))
    copy()
    assert files(other).keys() == {"status.json", "source/mine.py", "previous.ckpt"}
    (other / "source" / "mine.py").unlink()
    (one / "status.json").write_text(json.dumps({"round": 1}))
    copy()  # only what has changed
    assert files(other).keys() == {"status.json", "previous.ckpt"}
    assert "round" in (other / "status.json").read_text()


def test_a_storage_that_vanishes_is_a_failure_with_a_next_step(storage, job, tmp_path):
    on_a_node(storage, job, stop_after(5))
    shutil.rmtree(tmp_path / "storage")
    (tmp_path / "storage").write_text("no folder")
    outcome = on_a_node(storage, job)
    assert outcome.state == "failed"
    assert outcome.error.startswith(f"storage: {tmp_path / 'storage'} cannot be used")
    assert outcome.error.endswith("Rerun the command to resume")


@pytest.mark.parametrize("text", ["nowhere://bucket/runs", "/dev/null/runs"])
def test_an_address_that_is_no_storage(text, tmp_path):
    with pytest.raises(SettingError, match=r"storage: '.*' is not allowed .*must be a folder or URL"):
        Storage.of(text, tmp_path)
