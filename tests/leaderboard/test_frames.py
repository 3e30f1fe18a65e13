"""Results as DataFrames."""

import json
import shutil

import pytest

from rollcall.leaderboard.frames import history, runs
from rollcall.leaderboard.paper.experiment import PaperExperiment
from tests.support.command import rollcall, write
from tests.support.results import keep


@pytest.fixture
def file(tmp_path, monkeypatch, capsys):
    """An experiment of two methods and two seeds: FedPBC was run, FedAvg is in the archive."""
    monkeypatch.setattr("rollcall.leaderboard.runs.PACKAGE", tmp_path / "kept")
    experiment = PaperExperiment.read(path := write(tmp_path, "mine")).only({"algorithm": ["fedavg"]})
    keep(experiment, lambda labels, seed: [3.0, 2.0, 1.0 + seed], tmp_path / "kept")
    store = ("--store", str(tmp_path / "runs"))
    assert rollcall(capsys, "run", path, "--executor", "inline", "--only", "algorithm=fedpbc", *store)[0] == 0
    return path


def test_a_row_for_each_run(file, tmp_path):
    table = runs(tmp_path / "runs", file)
    assert table.groupby(["algorithm", "source"]).size().to_dict() == {("fedavg", "kept"): 2, ("fedpbc", "own"): 2}
    assert {*table["state"]} == {"finished"}
    kept = table[table["source"] == "kept"].set_index("seed")
    assert kept["train/distance"].to_dict() == {0: 1.0, 1: 2.0}
    assert (kept["rounds"] == 20).all()
    assert kept["local.lr"].map(type).eq(float).all()
    assert len(runs([tmp_path / "runs", tmp_path / "none"], file)) == 4
    copy = shutil.copytree(tmp_path / "runs", tmp_path / "copy")
    assert not runs([tmp_path / "runs", copy], file).duplicated("trial").any()
    assert runs([], file)["source"].unique().tolist() == ["kept"]


def test_the_archive_in_the_working_directory_counts_as_in_tables(file, tmp_path, monkeypatch):
    shutil.move(tmp_path / "kept", tmp_path / "leaderboard" / "results")
    monkeypatch.chdir(tmp_path)
    assert runs([], file)["algorithm"].unique().tolist() == ["fedavg"]
    assert history([], file)["source"].unique().tolist() == ["kept"]


def test_own_runs_replace_kept_ones(file, tmp_path, capsys):
    store = ("--store", str(tmp_path / "runs"))
    assert rollcall(capsys, "run", file, "--executor", "inline", "--seeds", "0", *store)[0] == 0
    table = runs(tmp_path / "runs", file).query("algorithm == 'fedavg'")
    assert table.set_index("seed")["source"].to_dict() == {0: "own", 1: "kept"}
    assert not history(tmp_path / "runs", file).duplicated(["trial", "round", "metric"]).any()


def test_shorter_runs_do_not_hide_longer_ones(file, tmp_path, capsys):
    store = ("--store", str(tmp_path / "runs"), "--executor", "inline")
    assert rollcall(capsys, "run", file, "--seeds", "0", "--only", "algorithm=fedavg", "--rounds", "10", *store)[0] == 0
    assert rollcall(capsys, "run", file, *store[2:], "--rounds", "10", "--store", str(tmp_path / "short"))[0] == 0
    table = runs([tmp_path / "runs", tmp_path / "short"], file)
    assert table.groupby(["algorithm", "source", "rounds"]).size().to_dict() == {
        ("fedavg", "kept", 20): 2, ("fedpbc", "own", 20): 2
    }  # fmt: skip


def test_a_row_for_each_evaluation(file, tmp_path):
    table = history(str(tmp_path / "runs"), file)
    kept = table[(table["source"] == "kept") & (table["seed"] == 1)]
    assert kept[["algorithm", "round", "metric", "value"]].to_numpy().tolist() == [
        ["fedavg", 0, "train/distance", 3.0],
        ["fedavg", 10, "train/distance", 2.0],
        ["fedavg", 20, "train/distance", 2.0],
    ]
    own = table[(table["source"] == "own") & (table["seed"] == 0)]
    own = own.pivot(index="round", columns="metric", values="value")
    (folder,) = (tmp_path / "runs" / "mine").glob("fedpbc-seed0-*")
    written = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert own["train/distance"].to_dict() == {row["round"]: row["train/distance"] for row in written}
    assert list(history([], file).columns[-3:]) == ["round", "metric", "value"]
