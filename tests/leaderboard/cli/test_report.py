"""`rollcall report` writes into the working directory, from the results of the package and of the user."""

from pathlib import Path

import pytest

from rollcall.leaderboard import archive
from rollcall.leaderboard.cli.report import report
from rollcall.leaderboard.cli.shared import FOLDER, RESULTS
from tests.support.results import COMPARED, ends, printed_numbers, runs


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A working directory; the only experiment is COMPARED, of which the package has half of the runs."""
    printed_numbers(tmp_path, monkeypatch)
    package = tmp_path / "site-packages"
    archive(runs(COMPARED, ends)[:6], "paper/fig", ["test/accuracy"], package)
    monkeypatch.setattr("rollcall.leaderboard.results.PACKAGE", package)
    monkeypatch.setitem(report.__globals__, "papers", lambda: [COMPARED])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def written(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_report_is_written_into_the_working_directory(there, capsys):
    package = written(there.parent / "site-packages")
    report()
    assert written(there) == [
        "leaderboard/REPRODUCTION.md",
        "leaderboard/figures/paper/fig.png",
        "leaderboard/reproduction/paper/fig.md",
    ]
    assert written(there.parent / "site-packages") == package
    assert "\n6 runs, " in (there / "leaderboard/reproduction/paper/fig.md").read_text()
    assert "leaderboard/REPRODUCTION.md, leaderboard/reproduction and leaderboard/figures" in capsys.readouterr().out


def test_the_users_own_archive_counts(there):
    archive(runs(COMPARED, ends)[6:], "paper/fig", ["test/accuracy"], FOLDER / RESULTS)
    report()
    assert "\n12 runs, " in (there / "leaderboard/reproduction/paper/fig.md").read_text()
    report(to=Path("elsewhere"))
    assert "\n6 runs, " in (there / "elsewhere/reproduction/paper/fig.md").read_text()
