"""A checkout tests its own code, and a copy of it without links says what is missing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rollcall.algorithms  # noqa: F401

ROOT = Path(__file__).parents[1]
LINKED = ("algorithms", "benchmark", "leaderboard", "participation", "tasks")


def test_all_modules_are_of_this_checkout_and_are_imported_once():
    files = {
        name: Path(module.__file__ or next(iter(module.__path__)))  # the latter of a folder of data with modules
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "rollcall"
    }
    assert {name: file for name, file in files.items() if ROOT / "rollcall" not in file.parents} == {}
    assert [name for name in sys.modules if name.partition(".")[0] in LINKED] == []


@pytest.fixture
def copy(tmp_path):
    """The source code of this checkout in another folder; its links are links."""
    packages = {"rollcall", *LINKED, "tests", "docs"}
    for entry in [*(path for path in ROOT.iterdir() if path.name in packages), ROOT / "pyproject.toml"]:
        if entry.is_dir():
            no_results = shutil.ignore_patterns("results", "pictures", "__pycache__")
            shutil.copytree(entry, tmp_path / entry.name, symlinks=True, ignore=no_results)
        else:
            shutil.copy(entry, tmp_path)
    return tmp_path


@pytest.mark.full
def test_another_checkout_does_not_test_the_installed_code(copy):
    test = "tests/test_checkout.py::test_all_modules_are_of_this_checkout_and_are_imported_once"
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_link_that_arrived_as_a_file_is_told_in_one_line(copy):
    (copy / "rollcall" / "benchmark").unlink()
    (copy / "rollcall" / "benchmark").write_text("../benchmark")
    done = subprocess.run([sys.executable, "-c", "import rollcall"], cwd=copy, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: {copy}/rollcall: the symbolic links of the source code are missing (a zip download, or Windows); "
        "clone with git (on Windows: git clone -c core.symlinks=true), or install an sdist or a wheel"
    )
