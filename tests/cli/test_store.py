"""The commands about the run folders in a store: `rollcall status`, `clean`, `sync` and `export`; see also test_ends.py."""

import json
from pathlib import Path

import pytest
import torch
from command import rollcall, write
from filelock import FileLock
from torch import nn

from rollcall import simulate


def write_status(folder, state, done=20, rounds=20):
    folder.mkdir(parents=True, exist_ok=True)
    status = {"state": state, "digest": folder.name, "round": done, "rounds": rounds, "seconds": 2.5}
    (folder / "status.json").write_text(json.dumps(status))


@pytest.fixture
def folders(store):
    """Six trials of two experiments; the process of one that says `running` is alive, that of another has died."""
    write_status(store / "tiny" / "a", "finished")
    for name in "bc":
        write_status(store / "tiny" / name, "running", 5)
    for name, state in {"d": "failed", "e": "diverged"}.items():
        write_status(store / "paper" / "fig" / name, state, 3, 9)
    (store / "tiny" / "f").mkdir()
    (store / "tiny" / "f" / "status.json").write_text("{")
    with FileLock(store / "tiny" / "b" / "lock"):
        yield


def test_states_rates_and_time_left(folders, store, capsys):
    code, out, _ = rollcall(capsys, "status", "--json")
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert code == 0
    states = ["finished", "running", "interrupted", "failed", "diverged", "damaged"]
    assert {name: entry["state"] for name, entry in entries.items()} == dict(zip("abcdef", states, strict=True))
    assert (entries["b"]["rate"], entries["b"]["seconds_left"]) == (2.0, 7.5)
    lines = [line.split() for line in rollcall(capsys, "status")[1].splitlines()]
    assert ["state", "damaged", "diverged", "failed", "finished", "interrupted", "running"] in lines
    assert ["paper/fig", "0", "1", "1", "0", "0", "0"] in lines
    assert ["tiny", "1", "0", "0", "1", "1", "1"] in lines
    assert ["b", "5.0", "20.0", "2.0", "7.5"] in lines
    assert "tiny" not in rollcall(capsys, "status", "paper/fig")[1]


@pytest.mark.full
def test_stale_and_failed_trials_are_deleted_when_told(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0, 1], "algorithm": ["fedavg"]})
    run = ("run", file, "--executor", "inline")
    rollcall(capsys, *run)
    rollcall(capsys, *run, "--set", "local.lr=0.2,0.3", "--seeds", "0")
    home = store / "tiny"
    before = {path.name for path in home.iterdir() if path.is_dir()}
    failed = next(path for path in home.iterdir() if "seed1" in path.name)
    status = json.loads((failed / "status.json").read_text())
    (failed / "status.json").write_text(json.dumps(status | {"state": "failed"}))  # after it was continued
    assert failed.name not in rollcall(capsys, "clean", file)[1]  # it still has the result of its earlier rounds
    (failed / "status.json").write_text(json.dumps(status | {"state": "failed", "finished": 0}))
    code, out, _ = rollcall(capsys, "clean", file)
    assert code == 0
    assert out.count("not in the experiment file") == 2
    assert [line.split()[1] for line in out.splitlines() if line.startswith(failed.name)] == ["failed"]
    assert "1 run folder to delete with --yes; 2 more with --unlisted" in out
    assert {path.name for path in home.iterdir() if path.is_dir()} == before  # listed only
    with FileLock(failed / "lock"):  # it is running again
        assert "0 run folders deleted" in rollcall(capsys, "clean", file, "--yes")[1]
        assert {path.name for path in home.iterdir() if path.is_dir()} == before  # results of --set and --seeds stay
        assert "2 run folders deleted" in rollcall(capsys, "clean", file, "--unlisted", "--yes")[1]
    assert failed.exists()
    assert "1 run folder deleted" in rollcall(capsys, "clean", file, "--yes")[1]
    (left,) = [path for path in home.iterdir() if path.is_dir()]
    assert left.name.startswith("fedavg-seed0-")
    assert "Nothing to delete" in rollcall(capsys, "clean", file)[1]


def test_an_exported_model_is_loaded_by_the_printed_lines(capsys, tmp_path):
    task = {"name": "digits", "clients": 6, "partition": "iid", "model": "linear"}
    result = simulate({"task": task, "algorithm": "fedavg", "rounds": 2}, folder=tmp_path / "run")
    file = tmp_path / "new" / "model.pt"
    code, out, _ = rollcall(capsys, "export", str(tmp_path / "run"), "--to", str(file))
    assert code == 0
    assert f"Wrote {file}: 2 tensors, 650 numbers." in out
    link = tmp_path / "link.pt"
    link.symlink_to(file)
    assert rollcall(capsys, "export", str(tmp_path / "run"), "--to", str(link))[0] == 0
    assert link.is_symlink()
    names = {"torch": torch, "network": nn.Sequential(nn.Flatten(), nn.Linear(64, 10))}
    for line in out.splitlines():
        if line.startswith("  "):
            exec(line.strip(), names)
    expected = torch.from_numpy(result.model)
    parameters = names["network"].parameters()
    assert torch.equal(torch.cat([parameter.detach().flatten() for parameter in parameters]), expected)
    code, _, err = rollcall(capsys, "export", str(tmp_path / "run"), "--to", str(tmp_path / "new"))
    assert (code, err) == (2, f"error: {tmp_path}/new: cannot be read or written (Is a directory)\n")


READING = ["list", "status", "doctor", "leaderboard FILE", "clean FILE", "archive FILE", "show FILE"]


@pytest.mark.fault
def test_a_command_that_reads_runs_no_code_of_the_user(store, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "from rollcall.algorithms import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n"
    Path("mine.py").write_text(code)
    file = write(tmp_path, source="[X] Fig. 1", grid={"seed": [0], "algorithm": ["mine.py:Mine"]})
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    (run,) = store.glob("tiny/*-seed0-*")
    for copy in (Path("mine.py"), run / "source" / "mine.py"):
        copy.write_text("open('ran', 'w')\n" + code)
    for line in (*READING, "export RUN"):
        _, _, err = rollcall(capsys, *line.replace("FILE", file).replace("RUN", str(run)).split())
        assert not Path("ran").exists(), line
        assert ("names code that is not the suite's" in err) == line.startswith("export"), line
