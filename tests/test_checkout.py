"""A checkout tests its own code, and checks the shapes of arrays while tests run."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import typecheck
from jaxtyping import TypeCheckError

import rollcall.algorithms  # noqa: F401
from rollcall.algorithms import Rows
from rollcall.algorithms.fedpbc import LocalModels

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
    packages = {"rollcall", *LINKED, "tests"}
    for entry in [*(path for path in ROOT.iterdir() if path.name in packages), ROOT / "pyproject.toml"]:
        if entry.is_dir():
            no_data = shutil.ignore_patterns("results", "pictures", "experiments", "__pycache__")
            shutil.copytree(entry, tmp_path / entry.name, symlinks=True, ignore=no_data)
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


def test_wrong_shapes_are_refused():
    rows = Rows.begin(torch.zeros(2), 3)
    clients = torch.tensor([0, 2])
    assert rows.put(clients, torch.ones(2, 2)).dense().sum() == 4
    for call in (
        lambda: Rows.begin(torch.zeros(2, 2), 3),  # of a class method
        lambda: rows.put(clients, torch.ones(1, 2)),  # of two arguments that do not fit each other
        lambda: rows[torch.tensor([0.0])],  # the type of the numbers
        lambda: LocalModels(torch.zeros(3)),  # of a dataclass
    ):
        with pytest.raises(TypeCheckError):
            call()


def test_the_first_calls_in_a_test_are_checked():
    rows = Rows.begin(torch.zeros(2), 1)
    for _ in range(typecheck.CHECKED - 1):
        rows.put(torch.tensor([0]), torch.ones(1, 2))
    with pytest.raises(TypeCheckError):
        rows.put(torch.tensor([0.0]), torch.ones(1, 2))
    with pytest.raises(IndexError):  # of torch
        rows.put(torch.tensor([0.0]), torch.ones(1, 2))
