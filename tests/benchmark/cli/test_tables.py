"""The tables of an experiment become artifacts of its parent run in MLflow."""

import shutil
from pathlib import Path

from command import rollcall, write

from rollcall.benchmark.sweep.mlflow_runs import Runs


def test_a_sweep_and_a_sync_keep_the_table(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0], "algorithm": ["fedavg"]})
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    runs = Runs(store, "tiny")
    names = {artifact.path for artifact in runs.client.list_artifacts(runs.parent, "tiny")}
    assert {"tiny/leaderboard.md", "tiny/leaderboard.csv", "tiny/leaderboard.png"} <= names
    kept = Path(runs.client.download_artifacts(runs.parent, "tiny/leaderboard.csv")).read_text()
    assert kept == rollcall(capsys, "leaderboard", file, "--format", "csv")[1]
    other = tmp_path / "other"
    shutil.copytree(store / "tiny", other / "tiny")
    assert rollcall(capsys, "sync", "--store", str(other))[1] == "tiny: 1 run folder\n"
    runs = Runs(other, "tiny")
    assert Path(runs.client.download_artifacts(runs.parent, "tiny/leaderboard.csv")).read_text() == kept
