"""MLflow holds what the run folders hold, and nothing twice; tables made from it are equal to the digit."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from command import TINY, rollcall
from lightning.pytorch import Callback

from rollcall import Trial, simulate
from rollcall.benchmark.federation.run_folder import RunFolder, remove
from rollcall.benchmark.sweep.mlflow_copy import Mirror, address, shown
from rollcall.leaderboard.runs import own
from rollcall.leaderboard.runs import served as read

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


def made(store, rounds=20, seed=3):
    """A finished run in a store."""
    folder = RunFolder(store / "tiny" / f"fedpbc-{seed}")
    simulate(TRIAL.model_copy(update={"rounds": rounds, "seed": seed}), folder=folder.path)
    return folder


def looked(store):
    """A mirror that has copied what there is."""
    mirror = Mirror(store, "tiny")
    mirror.look()
    assert not mirror.down
    return mirror


def entries(mirror):
    return mirror.client.search_runs([mirror.id], order_by=["start_time"])


def equal(store):
    """Whether the folders and MLflow give the same runs."""
    pairs = list(zip(own(store, "tiny"), read(address(store), "tiny"), strict=True))
    for here, there in pairs:
        assert there.settings == here.settings
        assert there.server == shown(address(store))
        assert {name: there.tags[name] for name in here.tags} == here.tags
        pd.testing.assert_frame_equal(here.history, there.history[list(here.history)], check_exact=True)
    return len(pairs)


def test_a_run_is_there_once_and_as_it_is_now(store):
    folder = made(store, rounds=12)
    first = looked(store)
    assert equal(store) == 1
    assert looked(store).written == 0
    made(store)  # it goes on to round 20
    first.look()
    (entry,) = entries(first)
    assert equal(store) == 1
    assert entry.info.status == "FINISHED"
    assert entry.info.end_time - entry.info.start_time == pytest.approx(1000 * folder.status["seconds"], abs=2)
    assert [m.step for m in first.client.get_metric_history(entry.info.run_id, "train/loss")] == [0, 5, 10, 12, 15, 20]
    assert entry.data.params["local.steps"] == "2"
    expected = {"algorithm": "fedpbc", "participation": "bernoulli", "task": "quadratic", "seed": "3"}
    assert {key: entry.data.tags[key] for key in expected} == expected
    for name in ("trial.yaml", "model.npz"):
        there = Path(first.client.download_artifacts(entry.info.run_id, name))
        assert there.read_bytes() == (folder.path / name).read_bytes()


def test_names_that_mlflow_refuses_infinite_values_and_single_clients(store, capsys):
    folder = made(store)
    plain = {"test/hits_1": 1.0, "f1#2": 1 / 3, "a": math.inf}
    rows = [plain | {"round": t, "test/hits@2": 0.1 * t, "test/acc/client0": t / 7} for t in range(3)]
    rows[1]["a"], rows[2]["test/acc/client12"] = -math.inf, 1e-300
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder._write(**{key: value for key, value in folder.status.items() if key != "signature"})
    mirror = looked(store)
    assert equal(store) == 1
    (entry,) = entries(mirror)
    assert {*entry.data.metrics} == {"test/hits_2", "test/hits_1", "f1_2", "a"}
    assert "MLflow does not take the name test/hits@2; there it is test/hits_2\n" in capsys.readouterr().err
    (run,) = read(address(store), "tiny", ["f1#2"])
    assert list(run.history) == ["f1#2"]


def test_a_run_that_diverged_at_once_has_no_evaluation(store):
    class Spoil(Callback):
        def on_validation_start(self, trainer, federation):
            federation.server.data[:] = math.nan

    simulate(TRIAL, folder=store / "tiny" / "wild", callbacks=[Spoil()])
    looked(store)
    assert equal(store) == 1
    assert read(address(store), "tiny")[0].diverged


def test_states_and_what_is_not_copied(store, capsys):
    died, failed, broken = (made(store, seed=seed) for seed in range(3))
    died._write(**died.status | {"state": "running", "finished": 0})
    failed.fail("no memory", "Traceback")
    (broken.path / "trial.yaml").unlink()
    running = made(store, seed=3)
    running._write(**running.status | {"state": "running", "finished": 0})
    mirror = Mirror(store, "tiny")
    with running.running(TRIAL, device="cpu", threads=1):
        for _ in range(2):
            mirror.look()
        assert {(entry.data.tags["seed"], entry.info.status) for entry in entries(mirror)} == {
            ("0", "KILLED"), ("1", "FAILED"),
        }  # fmt: skip
    assert capsys.readouterr().err.count(f"not copied to MLflow: {broken.path}: ") == 1
    assert read(address(store), "tiny")[0].tags["seed"] == "1"  # it had finished before


def test_a_copy_that_was_cut_off_is_written_again(store, monkeypatch, capsys):
    made(store)
    mirror = Mirror(store, "tiny")
    with monkeypatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.set_terminated", lambda *_: (_ for _ in ()).throw(ConnectionError("gone")))
        mirror.look()
    assert "MLflow cannot be updated (gone)" in capsys.readouterr().err
    assert (len(entries(mirror)), read(address(store), "tiny")) == (1, [])
    looked(store)
    assert (len(entries(mirror)), equal(store)) == (1, 1)


def test_an_experiment_that_was_deleted_in_the_browser_comes_back(store, capsys):
    made(store)
    mirror = looked(store)
    mirror.client.delete_experiment(mirror.id)
    made(store, seed=7)
    looked(store)
    assert ("cannot be updated" in capsys.readouterr().err, equal(store)) == (False, 2)


def test_a_database_that_is_damaged_is_named(store, capsys, monkeypatch):
    made(store)
    (store / "mlflow.db").write_bytes(b"text" * 5000)
    code, _, err = rollcall(capsys, "sync", "--store", str(store))
    assert (code, f"To copy them: delete {store / 'mlflow.db'}, then rollcall sync" in err) == (2, True)
    with monkeypatch.context() as patch:
        (store / "other.db").write_bytes(b"text" * 5000)
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store / 'other.db'}")
        assert "delete" not in rollcall(capsys, "sync", "--store", str(store))[2]
    (store / "mlflow.db").unlink()
    assert rollcall(capsys, "sync", "--store", str(store)) == (0, "", f"tiny: 1 run copied to {address(store)}\n")
    assert equal(store) == 1
    code, _, err = rollcall(capsys, "sync", "other", "--store", str(store))
    assert (code, "'other' is not allowed" in err, "has runs of tiny" in err) == (2, True, True)


def test_a_shorter_run_of_another_store_leaves_the_copy_of_a_longer_one(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'server.db'}")
    made(tmp_path / "one", rounds=20)
    looked(tmp_path / "one")
    made(tmp_path / "other", rounds=12)
    mirror = looked(tmp_path / "other")
    assert [entry.data.tags["rollcall.finished"] for entry in entries(mirror)] == ["20"]
    made(tmp_path / "other", rounds=24)
    mirror.look()
    assert [entry.data.tags["rollcall.finished"] for entry in entries(mirror)] == ["24"]


def test_a_run_that_was_done_again_in_its_store_is_copied_as_it_is(store):
    folder = made(store, rounds=20)
    mirror = looked(store)
    remove(folder.path)
    folder = made(store, rounds=12)
    mirror.look()
    assert [entry.data.tags["rollcall.finished"] for entry in entries(mirror)] == ["12"]
    folder.fail("OSError: no device", "trace")
    assert looked(store).written == 1
    assert [entry.info.status for entry in entries(mirror)] == ["FAILED"]


def test_a_store_that_was_moved_has_its_copies_with_it(tmp_path):
    made(tmp_path / "one")
    looked(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "two")
    made(tmp_path / "two", seed=4)
    looked(tmp_path / "two")
    assert equal(tmp_path / "two") == 2
    assert not (tmp_path / "one").exists()
    assert looked(tmp_path / "two").written == 0


def test_a_run_with_altered_settings_is_not_copied_and_hides_no_other(store, capsys):
    altered = made(store, seed=1)
    made(store, seed=2)
    before = altered.settings.read_text()
    altered.settings.write_text(f"{before}# mine\n")
    mirror = looked(store)
    assert f"not copied to MLflow: {altered.path}: changed after the run wrote it" in capsys.readouterr().err
    assert [run.tags["seed"] for run in read(address(store), "tiny")] == ["2"]
    made(store, seed=1)  # it writes its settings again
    assert altered.settings.read_text() == before
    mirror.look()
    assert len(read(address(store), "tiny")) == 2
    run = next(entry for entry in entries(mirror) if entry.data.tags["seed"] == "1")
    mirror.client.log_text(run.info.run_id, "seed: 1", "trial.yaml")  # altered on the server
    assert [run.tags["seed"] for run in read(address(store), "tiny")] == ["2"]
    assert "left out: " in capsys.readouterr().err
