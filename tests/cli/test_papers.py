"""`rollcall archive` and `rollcall report` write into the working directory."""

from dataclasses import replace
from pathlib import Path

from rollcall.cli.papers import archive, report
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import PACKAGE, unarchive
from rollcall.leaderboard.runs import archive as keep
from tests.support.results import COMPARED, ends, printed_numbers, runs


def test_the_working_directory_is_written_and_other_settings_are_left_out(tmp_path, monkeypatch, capsys):
    experiment = PaperExperiment.read("sun/fig2")
    made = runs(experiment, lambda labels, seed: 0.5, metric=experiment.metrics[0])[:2]
    other = replace(made[0], tags=made[0].tags | {"rollcall.trial": "0123456789"})
    monkeypatch.setattr("rollcall.leaderboard.runs.own", lambda store, name, metrics: [*made, other])
    monkeypatch.chdir(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in PACKAGE.rglob("*")}
    archive(["sun/fig2"])
    archive(["sun/fig2"], to=Path("elsewhere"))
    assert {file: file.stat().st_mtime_ns for file in PACKAGE.rglob("*")} == before
    digests = {run.tags["rollcall.trial"] for run in made}
    for folder in ("leaderboard", "elsewhere"):
        assert len(unarchive("sun/fig2", tmp_path / folder / "results")) == len(digests)
    assert capsys.readouterr().err.count("sun/fig2: 1 run of other settings than the experiment's left out") == 2


def written(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_report_is_written_into_the_working_directory(tmp_path, monkeypatch, capsys):
    """The only experiment is COMPARED, of which the package has half of the runs."""
    printed_numbers(tmp_path, monkeypatch)
    package = tmp_path / "site-packages"
    keep(runs(COMPARED, ends)[:6], "paper/fig", ["test/accuracy"], package)
    monkeypatch.setattr("rollcall.leaderboard.standing.PACKAGE", PACKAGE)  # the boards stay as they are
    monkeypatch.setattr("rollcall.leaderboard.runs.PACKAGE", package)
    monkeypatch.setattr("rollcall.leaderboard.kept.papers", lambda: [COMPARED])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before = written(package)
    report()
    assert written(here) == ["leaderboard/FINDINGS.md", "leaderboard/REPRODUCTION.md"]
    assert written(package) == before
    assert "leaderboard/REPRODUCTION.md, leaderboard/FINDINGS.md and" in capsys.readouterr().out
