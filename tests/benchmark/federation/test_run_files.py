"""Which folders are run folders."""

import pytest

from rollcall.benchmark.federation.run_folder import run_folders, set_aside


@pytest.fixture
def store(tmp_path):
    for file in ("e/b/status.json", "e/a/status.json", "e/a/lock", "e/c/lock", "e/deep/d/status.json", "e/tuned.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "e" / "x").mkdir()
    (tmp_path / "e" / "x" / "status.json").touch()
    set_aside(tmp_path / "e" / "x")
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "options", "expected"),
    [
        (".", {}, ["e/a", "e/b", "e/deep/d"]),
        ("e", {}, ["e/a", "e/b", "e/deep/d"]),
        ("e/a", {}, ["e/a"]),
        ("e", {"below": False}, ["e/a", "e/b"]),
        (".", {"below": False}, []),
        (".", {"begun": False}, ["e/a", "e/b", "e/c", "e/deep/d"]),
        ("none", {}, []),
    ],
)
def test_run_folders(folder, options, expected, store):
    assert run_folders(store / folder, **options) == [store / name for name in expected]
