"""One file outside the repository with a choice of every kind: Ray workers that lack the file, and Python objects."""

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from command import rollcall

from rollcall import Trial, simulate
from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep import ray_executor, run
from rollcall.benchmark.sweep.jobs import Job

FILE = Path(__file__).parents[2] / "support" / "own.py"


def settings(named):
    """The trial and its roll calls; `named` makes a choice from its name in the file."""
    trial = {
        "task": {
            "name": "digits",
            "clients": 6,
            "model": {"name": named("network"), "width": 4},
            "partition": {"name": named("stripes"), "offset": 1},
        },
        "algorithm": named("Halved"),
        "local": {"batch_size": 8},
        "server": {"optimizer": {"name": named("SignSGD"), "scale": 0.5}, "lr": 0.01},
        "evaluation": {"metrics": [named("Errors")]},
        "rounds": 3,
    }
    roll_calls = {
        "class": {"name": named("Alternating"), "first": 1},
        "source": {"name": "bernoulli", "probability": {"name": named("ramp"), "low": 0.4}},
        "function": {"name": named("lottery"), "chance": 0.7},
    }
    return trial, roll_calls


def write(folder):
    """Write the user's two files: the code, and the experiment."""
    code, experiment = folder / "own.py", folder / "every_kind.yaml"
    code.write_text(FILE.read_text())
    trial, roll_calls = settings(lambda name: f"{code}:{name}")
    experiment.write_text(
        yaml.safe_dump(
            {"title": "Own", "trial": trial, "grid": {"participation": roll_calls, "seed": [0]}}, sort_keys=False
        )
    )


@pytest.fixture
def objects(tmp_path, monkeypatch):
    """The trials of `write` with Python objects."""
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path)
    import own

    trial, roll_calls = settings(lambda name: getattr(own, name))
    yield [Trial.read(trial | {"participation": roll_call}) for roll_call in roll_calls.values()]
    sys.modules.pop("own", None)


@pytest.mark.usefixtures("one_ray")
def test_workers_without_the_file_give_the_numbers_of_objects_in_python(objects, store, tmp_path, capsys, monkeypatch):
    by_name = [place.trial.name for place in places(Experiment.read(str(tmp_path / "every_kind.yaml")))]
    assert by_name == [trial.name for trial in objects]
    assert len(set(by_name)) == 3

    turns = SimpleNamespace(active=[[0], [1, 2], [0, 2], []].__getitem__)  # no address leads to it
    quadratic = {"task": {"name": "quadratic", "targets": [0.0, 1.0, 4.0]}, "algorithm": "fedavg", "rounds": 4}
    shipped = quadratic | {"local": {"schedule": partial(pow, 0.5)}, "participation": turns}
    of_no_file = Job(Trial.read(shipped), "every_kind", store)
    whole = ray_executor.Plan.__init__

    def elsewhere(plan, jobs):
        whole(plan, [*jobs, of_no_file])
        (tmp_path / "own.py").unlink()  # as on another machine

    monkeypatch.setattr(ray_executor.Plan, "__init__", elsewhere)
    found = run.find_spec
    monkeypatch.setattr(run, "find_spec", lambda name: None if name == "mlflow" else found(name))
    here = [simulate(trial) for trial in (*objects, of_no_file.trial)]
    code, _, err = rollcall(capsys, "run", str(tmp_path / "every_kind.yaml"), "--executor", "ray")
    assert code == 0, err
    for result in here:
        folder = RunFolder(store / "every_kind" / result.trial.name)
        assert folder.status["state"] == "finished"
        assert folder.history().equals(result.history)
        assert np.array_equal(folder.models()[1], result.server)
    assert {"test/Errors/count", "test/Errors/largest"} <= set(here[0].history)
    assert (store / "every_kind" / here[0].trial.name / "source" / "own.py").read_text() == FILE.read_text()
