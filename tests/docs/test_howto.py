"""The code of the how-to pages works as it stands."""

from pathlib import Path

import numpy as np
import pytest
import torch
from pages import blocks

from rollcall import simulate
from rollcall.benchmark.config.choice import read
from rollcall.participation import Population


def code(page: str, first: int = 1) -> str:
    """The first Python blocks of a page."""
    return "\n".join(blocks(f"docs/howto/{page}")[:first])


def test_method(tmp_path):
    file = tmp_path / "my_method.py"
    file.write_text(code("method.md"))
    trial = {"task": {"name": "quadratic", "targets": [0.0, 4.0]}, "algorithm": {"name": f"{file}:Half"}}
    trial |= {"local": {"steps": 1, "lr": 0.5}, "rounds": 1}
    # From x = 0: D is 0 and 0.5 * 4, its mean 1, and half of that is taken.
    assert simulate(trial).model == pytest.approx([0.5])


def test_a_trial_with_a_callback(tmp_path, monkeypatch):
    """The page's trial.yaml is one, and measures what the callback watches."""
    monkeypatch.chdir(tmp_path)
    (trial,) = blocks("docs/howto/libraries.md", language="yaml")
    Path("trial.yaml").write_text(trial.replace("rounds: 100", "rounds: 20"))
    (block,) = blocks("docs/howto/libraries.md", "trial.yaml")
    exec(block, {})


def test_task_of_plain_parts():
    names: dict = {}
    exec(code("task.md", first=2), names)
    task, data = names["wine"](seed=3, clients=5)
    inputs, labels = (column.numpy() for column in data.splits["test"])
    logits = inputs @ task.network.weight.detach().numpy().T + task.network.bias.detach().numpy()
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -np.log(chances[np.arange(len(labels)), labels]).mean()
    assert task.loss(data.splits["test"]).item() == pytest.approx(expected, rel=1e-5)
    assert [data.clients, names["wine"](seed=3)[1].clients] == [5, 8]


def test_task_of_a_loss():
    names: dict = {}
    (block,) = blocks("docs/howto/task.md", "def median")
    exec(block, names)
    task, data = names["median"](seed=3, clients=4, samples=5)
    points = data.splits["train"][0]
    assert task.loss((points,)).item() == pytest.approx(np.hypot(*points.numpy().T).mean())
    assert torch.equal(points, names["median"](seed=3, clients=4, samples=5)[1].splits["train"][0])
    assert [len(part) for part in data.parts] == [5, 5, 5, 5]


def test_participation_model():
    names: dict = {"__name__": "weekend"}
    exec(code("participation-model.md"), names)
    model = names["Weekend"](Population(1000, seed=1), work=0.2, rest=0.8)
    share = [len(model.active(t)) / 1000 for t in range(7)]
    # Four standard errors of a share of 1,000 clients are 0.05.
    assert share == pytest.approx([0.2] * 5 + [0.8] * 2, abs=0.05)
    assert model.stationary[0] == pytest.approx(np.mean([0.2] * 5 + [0.8] * 2))
    exec(code("participation-model.md", first=2), names)
    plain = read("participation", names["participation"]).build(Population(10, seed=1))
    shares = [np.mean([len(plain.active(7 * week + day)) / 10 for week in range(400)]) for day in (0, 6)]
    assert shares == pytest.approx([0.2, 0.8], abs=0.03)


def test_results(tmp_path, monkeypatch):
    task = {"name": "digits", "clients": 5, "partition": "iid", "model": "linear"}
    trial = {"task": task, "algorithm": "mifa", "rounds": 2}
    result = simulate(trial, folder=tmp_path / "runs" / "quickstart" / "mifa-seed0-5910b21616")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code("results.md", first=4), names)
    assert names["means"]["mifa"].iloc[-1] == pytest.approx(0.957, abs=1e-3)  # of the kept runs: this one is shorter
    assert names["accuracy"].item() == pytest.approx(result.history["test/accuracy"].iloc[-1])
