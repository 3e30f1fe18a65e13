"""`rollcall clean` deletes what the experiment file does not ask for, and nothing else."""

import json

from command import rollcall, write
from filelock import FileLock


def test_stale_and_failed_trials_are_deleted_when_told(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0, 1], "algorithm": ["fedavg"]})
    run = ("run", file, "--executor", "inline")
    rollcall(capsys, *run)
    rollcall(capsys, *run, "--set", "local.lr=0.2,0.3", "--seeds", "0")
    home = store / "tiny"
    before = {path.name for path in home.iterdir() if path.is_dir()}
    failed = next(path for path in home.iterdir() if "seed1" in path.name)
    status = json.loads((failed / "status.json").read_text())
    (failed / "status.json").write_text(json.dumps(status | {"state": "failed"}))
    code, out, _ = rollcall(capsys, "clean", file)
    assert code == 0
    assert out.count("not in the experiment file") == 2
    assert [line.split()[1] for line in out.splitlines() if line.startswith(failed.name)] == ["failed"]
    assert "To delete: add --yes" in out
    assert {path.name for path in home.iterdir() if path.is_dir()} == before  # listed only
    kept = rollcall(capsys, "clean", file, "--set", "local.lr=0.2")[1]
    assert kept.count("not in the experiment file") == 1
    with FileLock(failed / "lock"):  # it is running again
        assert "2 run folders deleted" in rollcall(capsys, "clean", file, "--yes")[1]
    assert failed.exists()
    rollcall(capsys, "clean", file, "--yes")
    (left,) = [path for path in home.iterdir() if path.is_dir()]
    assert left.name.startswith("fedavg-seed0-")
    assert "Nothing to delete" in rollcall(capsys, "clean", file)[1]


def test_trials_with_tuned_settings_stay_if_the_file_is_named(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0], "algorithm": ["fedavg"]})
    search = ("--space", "local.lr=choice(0.2,0.3)", "--metric", "train/loss", "--executor", "inline")
    assert rollcall(capsys, "tune", file, *search, "--no-figures")[0] == 0
    tuned = ("--tuned", str(store / "tiny" / "tuned.yaml"))
    assert rollcall(capsys, "run", file, "--executor", "inline", *tuned)[0] == 0
    assert rollcall(capsys, "clean", file)[1].count("not in the experiment file") == 1
    assert "Nothing to delete" in rollcall(capsys, "clean", file, *tuned)[1]
