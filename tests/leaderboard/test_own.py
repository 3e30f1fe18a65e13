"""One's own runs come from the run folders, with or without MLflow."""

import csv
import io
import socket
import time

import pandas as pd
import pytest
import yaml
from command import TINY, rollcall, write

from rollcall import Trial, simulate
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_runs import Runs
from rollcall.leaderboard import load
from rollcall.leaderboard.own import own

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


@pytest.fixture
def silent(monkeypatch):
    """MLFLOW_TRACKING_URI names a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
        yield


def test_a_run_folder_and_mlflow_tell_the_same(store):
    folder = RunFolder(store / "tiny" / TRIAL.name)
    simulate(TRIAL, folder=folder.path)
    runs = Runs(store, "tiny")
    runs.begin()
    runs.push(folder)
    runs.end("finished")
    (logged,), (read,) = load(runs.client, "tiny"), own(store, "tiny")
    assert read.settings == logged.settings
    assert read.source == logged.source == "own"
    known = {key: value for key, value in logged.tags.items() if not key.startswith("mlflow.")}
    assert {key: read.tags[key] for key in known} == known
    pd.testing.assert_frame_equal(read.history, logged.history[list(read.history)], check_names=False)
    assert list(own(store, "tiny", ["train/loss"])[0].history) == ["train/loss"]


def test_a_run_that_is_continued_counts_with_the_rounds_that_it_had_finished(store):
    folder = RunFolder(store / "tiny" / TRIAL.name)
    simulate(TRIAL, folder=folder.path)
    status = folder.status | {"state": "running", "rounds": 40, "finished": 15}
    folder._write(**status)
    (run,) = own(store, "tiny")
    assert (run.rounds, run.history.index.tolist()) == (15, [0, 5, 10, 15])
    folder._write(**status | {"finished": 0})
    assert own(store, "tiny") == []


@pytest.mark.parametrize("last", [None, {"rounds": 4, "every": 2}])
def test_a_run_that_was_continued_counts_as_one_run_of_all_rounds(last, store, tmp_path):
    """Its folder and MLflow have evaluations after rounds 10 and 12 too, the last ones of the shorter run."""
    trial = TRIAL.model_copy(update={"evaluation": Evaluation.model_validate({"every": 7, "last": last})})
    folder = RunFolder(store / "tiny" / trial.name)
    runs = Runs(store, "tiny")
    for rounds in (12, 20):
        simulate(trial.model_copy(update={"rounds": rounds}), folder=folder.path)
        runs.push(folder)
    whole = simulate(trial.model_copy(update={"rounds": 20})).history.set_index("round").astype(float)
    assert set(folder.history()["round"]) > set(whole.index)
    metric = Metric("train/loss", "min")
    due = whole["train/loss"][whole.index > 10]
    for run in (*own(store, "tiny"), *load(runs.client, "tiny")):
        assert run.window(metric, 10).to_dict() == due.to_dict()
        assert run.final(metric, 10) == due.mean()
        if last is not None:  # the last evaluations of the shorter run serve a table of fewer rounds
            assert run.until(12).window(metric, 4).index.tolist() == [10, 12]


def test_a_folder_that_cannot_be_read_is_left_out_with_a_warning(store, capsys):
    simulate(TRIAL, folder=store / "tiny" / "good")
    simulate(TRIAL, folder=store / "tiny" / "bad")
    (store / "tiny" / "bad" / "trial.yaml").unlink()
    assert len(own(store, "tiny")) == 1
    assert f"left out: {store / 'tiny' / 'bad'}: " in capsys.readouterr().err


def test_no_mean_mixes_versions_of_the_users_code(store, tmp_path, capsys):
    method = "from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    {}\n"
    for number, seeds in enumerate([(0, 1, 2), (0,)]):
        (tmp_path / "mine.py").write_text(method.format(f"version = {number}"))
        for seed in seeds:
            trial = Trial.read(TINY["trial"] | {"algorithm": f"{tmp_path}/mine.py:Mine", "seed": seed})
            simulate(trial, folder=store / "tiny" / trial.name)
    simulate(TRIAL, folder=store / "tiny" / TRIAL.name)
    assert [(run.tags["algorithm"], run.tags["seed"]) for run in own(store, "tiny")] == [("Mine", "0"), ("fedpbc", "3")]
    assert "left out: 3 runs of another version of your code (Mine)" in capsys.readouterr().err
    (tmp_path / "mine.py").write_text(method.format("version = 0"))  # the edit is taken back
    assert [run.tags["seed"] for run in own(store, "tiny")] == ["0", "1", "2", "3"]
    (tmp_path / "mine.py").unlink()
    assert [run.tags["seed"] for run in own(store, "tiny")] == ["0", "3"]


def test_a_server_that_does_not_answer_costs_seconds(store, silent, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0], "algorithm": ["fedavg"]})
    start = time.monotonic()
    code, out, err = rollcall(capsys, "run", file, "--executor", "inline")
    assert (code, "1 trial: 1 run now" in out) == (0, True)
    assert "after the sweep, run: rollcall sync" in err
    code, out, err = rollcall(capsys, "leaderboard", file, "--format", "csv")
    assert code == 0
    assert out.splitlines()[1].startswith("fedavg,")
    assert "MLflow: " in err
    assert time.monotonic() - start < 30


def test_a_leaderboard_needs_no_mlflow(store, tmp_path, capsys, monkeypatch):
    for module in (
        "rollcall.leaderboard.cli.leaderboard",
        "rollcall.leaderboard.own",
        "rollcall.benchmark.cli.run",
        "rollcall.benchmark.sweep.pool",
    ):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None, raising=False)
    file = write(tmp_path, grid={"seed": [0, 1], "algorithm": ["fedavg"]})
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    assert not (store / "mlflow.db").exists()
    code, out, _ = rollcall(capsys, "leaderboard", file, "--format", "md")
    assert code == 0
    assert f"runs: your own, in {store}" in out


def test_a_metric_with_a_typo_lists_those_that_exist(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0], "algorithm": ["fedavg"]})
    rollcall(capsys, "run", file, "--executor", "inline")
    code, _, err = rollcall(capsys, "leaderboard", file, "--metric", "train/dist=min")
    assert code == 2
    assert "metric: 'train/dist' is not allowed; no run measured it. Measured: cost/" in err
    assert "train/distance" in err


def test_the_search_and_the_winners_rerun_are_told_apart(store, tmp_path, capsys):
    file = write(tmp_path)
    run = ("run", file, "--executor", "inline", "--only", "algorithm=fedavg")
    rollcall(capsys, *run, "--seeds", "0", "--set", "local.lr=0.001,0.1")
    rollcall(capsys, *run, "--seeds", "1,2", "--set", "local.lr=0.1")
    code, out, _ = rollcall(capsys, "leaderboard", file, "--format", "csv")
    assert code == 0
    header, *rows = csv.reader(io.StringIO(out))
    assert [(row[header.index("local.lr")], row[header.index("which_seeds")]) for row in rows] == [
        ("0.1", "0,1,2"),
        ("0.001", "0"),
    ]
    fresh = rollcall(capsys, "leaderboard", file, "--only", "seed=1,2", "--format", "csv")[1]
    assert len(fresh.splitlines()) == 2
    assert "which_seeds" not in fresh
    code, out, _ = rollcall(capsys, "leaderboard", file, "--best-by", "train/loss", "--format", "md")
    assert "of each method the best of up to 2 settings by train/loss" in out
    assert out.count("fedavg") == 1
    code, _, err = rollcall(capsys, "leaderboard", file, "--only", "algorithm=fedpbc")
    assert (code, err.startswith("error: only algorithm: 'fedpbc' is not allowed; must be one of fedavg")) == (2, True)


def test_ones_own_runs_replace_kept_ones_and_rows_say_so(store, tmp_path, capsys, monkeypatch):
    from rollcall.benchmark.config.experiment import Experiment
    from rollcall.leaderboard import archive
    from tests.support.results import runs

    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(TINY | {"source": "[X] Fig. 1"}))
    kept = runs(Experiment.read(str(file)), lambda *_: 2.0, rounds=20, metric="train/distance")
    archive(kept, "mine", ["train/distance"], tmp_path / "leaderboard" / "results")
    rollcall(capsys, "run", str(file), "--executor", "inline", "--only", "algorithm=fedavg,seed=0")
    rollcall(capsys, "run", str(file), "--executor", "inline", "--only", "algorithm=fedpbc")
    code, out, _ = rollcall(capsys, "leaderboard", str(file), "--format", "csv")
    assert code == 0
    header, fedavg, fedpbc = out.splitlines()
    assert header.endswith(",runs")
    assert fedavg.endswith("2 of 2,20 of 20,kept")  # one own seed does not replace two kept ones
    assert fedpbc.endswith("2 of 2,20 of 20,own")
    text = rollcall(capsys, "leaderboard", str(file), "--format", "md")[1]
    assert "your own runs of 1 cell have fewer rounds or seeds: see --mine" in text
    mine = rollcall(capsys, "leaderboard", str(file), "--mine", "--format", "md")[1]
    assert "2 ± 0" not in mine
    assert f"runs: own: in {store}" in mine
