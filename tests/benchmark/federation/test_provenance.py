"""The commit that a run records is that of the checkout which has the suite's code."""

import shutil
import subprocess
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from rollcall.benchmark.federation import run_folder

FILE = "lib/benchmark/run_folder.py"


@pytest.fixture
def git(tmp_path):
    """Runs git in a repository that holds a copy of the module."""
    (tmp_path / FILE).parent.mkdir(parents=True)
    shutil.copy(run_folder.__file__, tmp_path / FILE)

    def run(*arguments):
        name = ["-c", "user.name=x", "-c", "user.email=x@x"]
        command = ["git", *name, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    run("init", "--quiet")
    return run


def commit(folder):
    """What the copy in this folder records."""
    spec = spec_from_file_location("copied_run_folder", folder / FILE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.commit()


def test_the_checkout_of_the_code(git, tmp_path):
    git("add", "--all")
    git("commit", "--quiet", "--message", "all")
    head = git("rev-parse", "--short=12", "HEAD")
    assert commit(tmp_path) == head
    with (tmp_path / FILE).open("a") as file:
        file.write("# changed\n")
    assert commit(tmp_path) == f"{head}+"


def test_an_environment_inside_a_checkout_of_other_code(git, tmp_path):
    (tmp_path / ".gitignore").write_text("lib\n")
    git("add", "--all")
    git("commit", "--quiet", "--message", "other code")
    assert commit(tmp_path) is None


def test_no_checkout(git, tmp_path):
    shutil.rmtree(tmp_path / ".git")
    assert commit(tmp_path) is None
