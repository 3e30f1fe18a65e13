"""The run folder: its files, its lock, its status, the commit of the code, and which folders are run folders."""

import json
from contextlib import suppress

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, Trainer
from runs import DIGITS, Asked, Count, rounds_in

from rollcall import SettingError, load, simulate
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.run_folder import RunFolder, code_of, remove, run_folders
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
    assert np.array_equal(simulate(tmp_path / "run" / "trial.yaml").model, result.model)
    stored = simulate(tmp_path / "run" / "trial.yaml", folder=tmp_path / "run")  # finished: read from the folder
    for again in (stored, load(str(tmp_path / "run"))):
        assert again.trial == result.trial
        assert (again.model.tobytes(), again.server.tobytes()) == (result.model.tobytes(), result.server.tobytes())
        assert again.history.equals(result.history)
        assert f"test/accuracy {result.history['test/accuracy'].iloc[-1]:.4g}" in repr(again)
        for name, value in result.module().state_dict().items():
            assert torch.equal(again.module().state_dict()[name], value)


def test_an_evaluation_is_recorded_before_a_callback_can_fail(tmp_path):
    class Failing(Callback):
        def on_validation_end(self, trainer, federation):
            raise RuntimeError("of the user")

    with pytest.raises(RuntimeError, match="of the user"):
        simulate(DIGITS | {"algorithm": "fedpbc"}, folder=tmp_path / "run", callbacks=[Failing()])
    assert [row["round"] for row in RunFolder(tmp_path / "run").rows()] == [0]


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


@pytest.mark.parametrize("rounds", [4, 7, 13])
def test_what_another_process_has_done_meanwhile_counts(rounds, tmp_path, monkeypatch):
    """It runs this many of the 13 rounds, after this one has looked into the folder and before it has the lock."""
    trial, folder, count = DIGITS | {"algorithm": "fedpbc"}, tmp_path / "run", Count()

    def late(*args, **options):
        monkeypatch.undo()
        with suppress(Interrupted):
            simulate(trial, folder=folder, stop=Asked(rounds))
        return Trainer(*args, **options)

    monkeypatch.setattr("rollcall.benchmark.federation.simulation.Trainer", late)
    result, whole = simulate(trial, folder=folder, callbacks=[count]), simulate(trial)
    assert count.rounds == list(range(rounds + 1, 14))
    assert rounds_in(folder) == [0, 5, 10, 13]
    assert not RunFolder(folder).altered()
    assert result.history.equals(whole.history)
    assert np.array_equal(result.model, whole.model)


def test_a_folder_belongs_to_one_trial(tmp_path):
    simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2}, folder=tmp_path / "run")
    with pytest.raises(SettingError, match=r"folder: .*run is not allowed; it holds another trial, fedavg-seed0-"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2, "seed": 1}, folder=tmp_path / "run")
    with pytest.raises(SettingError, match=r"rounds: 1 is not allowed with .*run, which holds 2 rounds of this trial"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 1}, folder=tmp_path / "run")


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


def test_a_tensor_among_the_settings_is_saved_as_an_array(tmp_path):
    trial = {
        "task": {"name": "quadratic", "targets": torch.tensor([[0.0], [100.0]])},
        "algorithm": "fedavg",
        "rounds": 2,
    }
    result = simulate(trial, folder=tmp_path)
    assert np.array_equal(load(tmp_path).model, result.model)
    array = trial["task"] | {"targets": trial["task"]["targets"].numpy()}
    assert Trial.read(trial).digest == Trial.read(trial | {"task": array}).digest


def test_a_run_folder_that_is_a_link_is_removed_with_what_it_links_to(tmp_path):
    (tmp_path / "there" / "source").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    remove(tmp_path / "link")
    assert list(tmp_path.iterdir()) == []


def test_run_folders_are_found_through_links(tmp_path):
    """An experiment may be on another disk; a link that leads back is followed once."""
    store, disk = tmp_path / "store", tmp_path / "disk"
    (disk / "e" / "run").mkdir(parents=True)
    (disk / "e" / "run" / "status.json").write_text("{}")
    store.mkdir()
    (store / "e").symlink_to(disk / "e")
    (disk / "e" / "back").symlink_to(store)
    assert run_folders(store) == run_folders(store / "e", below=False) == [store / "e" / "run"]


def test_the_code_of_a_run_has_the_engines_and_the_loop():
    assert {"benchmark.engines", "benchmark.federation"} <= code_of(Trial.read(DIGITS | {"algorithm": "fedavg"})).keys()
