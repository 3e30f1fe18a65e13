"""`rollcall archive` keeps runs in the working directory."""

from pathlib import Path

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.leaderboard import unarchive
from rollcall.leaderboard.cli.archive import archive
from rollcall.leaderboard.results import PACKAGE
from tests.support.results import runs


@pytest.fixture
def asked(monkeypatch):
    """Which metrics are read, by experiment."""
    metrics_read = {}
    monkeypatch.setattr(
        "rollcall.leaderboard.cli.archive.own", lambda store, name, metrics: metrics_read.update({name: metrics}) or []
    )
    return metrics_read


@pytest.mark.parametrize(
    ("named", "metric"),
    [
        ("ca_fed/fig1", "weight/rare-lasting"),  # of Fig. 1 (d), which shares its runs
        ("ca_fed/fig1d", "test/accuracy/per_client"),
    ],
)
def test_what_is_kept_serves_all_experiments_that_share_the_runs(named, metric, asked, capsys):
    archive([named])
    assert list(asked) == ["ca_fed/fig1"]
    assert metric in asked["ca_fed/fig1"]
    assert "No finished runs of these experiments in runs." in capsys.readouterr().out


def test_results_of_an_experiment_of_ones_own_are_kept(tmp_path, asked):
    file = tmp_path / "mine.yaml"
    text = "title: Mine\ntrial: {task: digits, rounds: 3}\ngrid: {algorithm: [fedavg]}\nreport: {metrics: {test/loss: min}}\n"
    file.write_text(f"source: me\n{text}")
    archive([str(file)])
    assert asked == {"mine": ["test/loss"]}
    file.write_text(text)
    with pytest.raises(SettingError, match="experiment: 'mine' is not allowed; must have `source"):
        archive([str(file)])


def test_the_working_directory_is_written_and_not_the_package(tmp_path, monkeypatch):
    experiment = Experiment.read("sun/fig2")
    made = runs(experiment, lambda labels, seed: 0.5, metric=experiment.metrics[0])[:2]
    monkeypatch.setattr("rollcall.leaderboard.cli.archive.own", lambda store, name, metrics: made)
    monkeypatch.chdir(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in PACKAGE.rglob("*")}
    archive(["sun/fig2"])
    archive(["sun/fig2"], to=Path("elsewhere"))
    assert {file: file.stat().st_mtime_ns for file in PACKAGE.rglob("*")} == before
    for folder in ("leaderboard", "elsewhere"):
        assert len(unarchive("sun/fig2", tmp_path / folder / "results")) == len({run.identity for run in made})
