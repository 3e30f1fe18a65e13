"""An installed package offers choices through entry points."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.sweep.jobs import Job

PACKAGE = Path(__file__).parents[1] / "support" / "example_plugin"
TRIAL = {
    "task": {"name": "quadratic", "targets": [0.0, 4.0]},
    "participation": {"name": "bernoulli", "probability": [1.0, 1.0]},
    "algorithm": "square_root",
    "local": {"steps": 1, "lr": 0.5},
    "rounds": 1,
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example package as an installer leaves it: its module, and a folder with its metadata."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    (tmp_path / "rollcall_example.py").write_text((PACKAGE / "rollcall_example.py").read_text())
    info = tmp_path / "rollcall_example-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [f"{name} = {value}" for name, value in project["entry-points"]["rollcall"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[rollcall]", *points, ""]))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("rollcall_example", None)


def test_a_trial_uses_it(installed):
    # From x = 0 with all p = 1: D is 0 and 2, each weighted by 1/2.
    assert simulate(TRIAL).model == pytest.approx([1.0])
    assert len(read("partition", "every_nth").build(np.array([0, 1, 0]), 2, 0).rows) == 2
    with pytest.raises(SettingError, match=r"must be one of local_sgd, .*square_root; or your own as"):
        read("algorithm", "square_roots")


def test_a_new_version_of_its_code_is_told(installed):
    """The digest has the name of an entry point alone."""
    trial = Trial.read(TRIAL)
    job = Job(trial, "own", installed)
    simulate(trial, folder=job.folder.path)
    assert (job.finished, job.changed) == (True, [])
    file = installed / "rollcall_example.py"
    file.write_text(file.read_text() + "# another version\n")
    sys.modules.pop("rollcall_example")  # as in another process
    after = Job(Trial.read(TRIAL), "own", installed)
    assert (after.trial.digest, after.changed) == (trial.digest, ["rollcall_example.py"])
