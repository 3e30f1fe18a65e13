"""The trained model as a module: its predictions give what was recorded; buffers and the user's code in run folders."""

import numpy as np
import pytest
import torch
from runs import DIGITS
from torch import nn

from rollcall import SettingError, load, simulate
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.damage import examine, set_aside
from rollcall.tasks import TASKS

TASK = {"name": "digits", "clients": 6, "partition": "iid", "model": "linear"}
TRIAL = DIGITS | {"algorithm": "fedpbc", "task": TASK, "rounds": 4}
TRIAL |= {"participation": {"name": "bernoulli", "probability": 0.5}}


def normed(shape, classes):
    """A network whose predictions depend on its buffers."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 12), nn.BatchNorm1d(12), nn.Linear(12, classes))


def with_batchnorm():
    trial = Trial.read(TRIAL)
    options = trial.task.options | {"model": Choice("normed", {}, normed)}
    return trial.model_copy(update={"task": Choice("digits", options, trial.task.factory)})


def measured(module):
    """Loss and accuracy on the test split, by hand."""
    _, data = TASKS["digits"](0, clients=6)
    pixels, labels = data.splits["test"]
    with torch.no_grad():
        logits = module(pixels)
    return nn.functional.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).double().mean().item()


@pytest.mark.parametrize("trial", [TRIAL, with_batchnorm()], ids=["linear", "batchnorm"])
def test_predictions_of_the_module_give_the_recorded_metrics(trial):
    result = simulate(trial)
    last = result.history.iloc[-1]
    loss, accuracy = measured(result.module())
    assert accuracy == last["test/accuracy"]
    assert loss == pytest.approx(last["test/loss"], rel=1e-6)
    assert accuracy != result.history.iloc[0]["test/accuracy"]
    assert not result.module().training
    vector = torch.cat([parameter.detach().flatten() for parameter in result.module().parameters()])
    assert np.array_equal(vector.numpy(), result.model)


def test_the_module_has_the_weights_of_the_objective():
    """alpha = (1/2, 1/2, 0) on targets 0, 10 and 20: the optimum is 5, by equal weights 10."""
    task = {"name": "quadratic", "targets": np.array([[0.0], [10.0], [20.0]])}
    trial = {"task": task, "target": np.array([1.0, 1.0, 0.0]), "participation": "full", "algorithm": "fedavg"}
    result = simulate(trial | {"rounds": 3, "local": {"steps": 1, "lr": 0.1}, "numerics": {"dtype": "float64"}})
    batch = result.trial.task.build(0)[1].splits["train"]
    distance = result.module().metrics(tuple(column.double() for column in batch))["distance"].item()
    assert distance == pytest.approx(abs(result.model[0] - 5), rel=1e-12)
    assert distance == pytest.approx(result.history["train/distance"].iloc[-1], rel=1e-12)


def test_the_buffers_are_in_the_run_folder(tmp_path):
    trial, folder = with_batchnorm(), tmp_path / "run"
    returned = simulate(trial, folder=folder)
    stored = simulate(trial, folder=folder)  # finished: read from the folder
    assert list(stored.buffers) == list(returned.buffers) != []
    for name, value in returned.module().state_dict().items():
        assert torch.equal(stored.module().state_dict()[name], value)
    assert measured(stored.module())[1] == returned.history.iloc[-1]["test/accuracy"]


NETWORK = """
from torch import nn


def network(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, classes))
"""


@pytest.fixture
def own_network(tmp_path):
    """A run with a network of the user's, whose file is then edited; and the accuracy of the run."""
    file = tmp_path / "net.py"
    file.write_text(NETWORK.replace("WIDTH", "12"))
    task = {"name": "digits", "clients": 6, "model": f"{file}:network"}
    result = simulate({"task": task, "algorithm": "fedavg", "rounds": 8}, folder=tmp_path / "run")
    file.write_text(NETWORK.replace("WIDTH", "12").replace("nn.ReLU()", "nn.Tanh()"))
    return tmp_path / "run", result.history["test/accuracy"].iloc[-1]


@pytest.mark.fault
def test_foreign_code_runs_only_if_it_is_trusted(own_network):
    folder, _ = own_network
    with pytest.raises(SettingError, match=r"names code that is not the suite's: .*net.py:network. To run it, read"):
        load(folder)
    assert examine(folder) == []  # without the code


@pytest.mark.fault
@pytest.mark.parametrize("damage", ["changed", "gone", "set aside"])
def test_a_changed_copy_does_not_run_and_is_written_again(damage, own_network, capsys):
    """Nor does the user's file in its place, which may have another name by then."""
    folder, accuracy = own_network
    copy, file, said = folder / "source" / "net.py", folder.parent / "net.py", "print('IT RUNS')\n"
    code = copy.read_text()
    (copy.parent / ".net.py.swp").write_text("of an editor")
    assert examine(folder) == []
    file.write_text(said + code)
    if damage == "gone":
        copy.unlink()
    else:
        copy.write_text(said + code)
    (finding,) = examine(folder)
    assert finding.problem == ("net.py is missing" if damage == "gone" else "net.py changed after the run wrote it")
    if damage == "set aside":
        assert set_aside(folder) == [folder / "source.damaged"]
        assert set_aside(folder) == []
    with pytest.raises(SettingError, match=r"run/source: net.py .*; rerun the command"):
        load(folder, trust=True)
    assert "IT RUNS" not in capsys.readouterr().out
    other = file.rename(file.with_name("other.py"))
    other.write_text(code)
    task = {"name": "digits", "clients": 6, "model": f"{other}:network"}
    simulate({"task": task, "algorithm": "fedavg", "rounds": 8}, folder=folder)  # it has ended
    assert examine(folder) == []
    assert measured(load(folder, trust=True).module())[1] == accuracy


@pytest.mark.fault
@pytest.mark.parametrize("file", ["edited", "gone"])
def test_a_run_is_loaded_with_the_code_that_it_had(own_network, file):
    """Also where the file is not, as on another machine."""
    folder, accuracy = own_network
    if file == "gone":
        (folder.parent / "net.py").unlink()
    assert measured(load(folder, trust=True).module())[1] == accuracy
