"""Local training in trials: epochs and momentum, against loops by hand."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rollcall import simulate
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build

ROLL_CALL = np.array(
    [[1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0], [1, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 1]]
)
DIGITS = {
    "task": {"name": "digits", "clients": 6, "partition": "iid", "model": "linear"},
    "participation": {"name": "trace", "mask": ROLL_CALL},
    "rounds": 5,
    "numerics": {"dtype": "float64"},
}


@pytest.mark.parametrize(("keep", "engine"), [(False, "sequential"), (True, "sequential"), (True, "vectorised")])
def test_fedavg_with_an_optimizer_of_each_client(keep, engine, tmp_path):
    """Rounds of FedAvg by hand; with `keep` every client has one torch optimizer for the whole run."""
    local = {"epochs": 1, "batch_size": 64, "lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "keep_momentum": keep}
    trial = DIGITS | {"algorithm": "fedavg", "local": local, "numerics": {"dtype": "float64", "engine": engine}}
    federation = build(Trial.read(trial))
    data, minibatches, task = federation.data, federation.minibatches, federation.model.task
    steps = minibatches.per_epoch
    assert len(set(minibatches.parts.sizes.tolist())) > 1
    x = federation.server.detach().clone()
    models = [copy.deepcopy(task) for _ in range(6)]
    make = lambda model: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)  # noqa: E731
    optimizers = [make(model) for model in models]
    for t, active in enumerate(ROLL_CALL):
        ends = []
        for i in np.flatnonzero(active).tolist():
            nn.utils.vector_to_parameters(x.clone(), models[i].parameters())
            optimizer = optimizers[i] if keep else make(models[i])
            for step in range(t * int(steps[i]), (t + 1) * int(steps[i])):
                optimizer.zero_grad()
                models[i].loss(tuple(c[minibatches.rows(i, step)] for c in data.splits["train"])).backward()
                optimizer.step()
            ends.append(nn.utils.parameters_to_vector(models[i].parameters()).detach())
        if ends:
            x = torch.stack(ends).mean(dim=0)
    assert np.abs(simulate(trial).server - x.numpy()).max() < 1e-10
    # Stopped in the middle, the clients' momentum goes through the checkpoint.
    simulate(trial | {"rounds": 3}, folder=tmp_path)
    assert np.abs(simulate(trial, folder=tmp_path).server - x.numpy()).max() < 1e-10


def test_the_server_decays_the_model():
    quadratic = {"task": {"name": "quadratic", "targets": [[1.0], [3.0]]}, "algorithm": "fedavg", "rounds": 2}
    local = {"steps": 1, "lr": 0.5}
    trial = quadratic | {"local": local, "server": {"lr": 0.5, "weight_decay": 0.1, "momentum": 0.5}}
    # Update 0.5 (2 - x). v = 0.1 x - update: -1 at x = 0, so x = 0.5; then 0.5 (-1) + 0.05 - 0.75 = -1.2, x = 1.1.
    assert simulate(trial | {"numerics": {"dtype": "float64"}}).server == pytest.approx([1.1])


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize(
    ("engine", "method"), [("sequential", "fedavg"), ("sequential", "fedprox"), ("vectorised", "fedavg")]
)
def test_gradients_are_clipped_to_a_norm(engine, method, decay):
    """The first client's gradient, (3, 4), has norm 5 and is scaled to 1; the second's, (0.3, 0.4), is not. Two steps.

    The weight decay of the second step is added to what was clipped.
    """
    trial = {"task": {"name": "quadratic", "targets": np.array([[-3.0, -4.0], [-0.3, -0.4]])}, "rounds": 1}
    trial |= {"algorithm": method, "local": {"steps": 2, "lr": 0.1, "clip": 1.0, "weight_decay": decay}}
    trial |= {"numerics": {"dtype": "float64", "engine": engine}}
    if method == "fedprox":
        trial["algorithm"] = {"name": "fedprox", "mu": 0.0}
    far, near = (0.2 - 0.01 * decay) * np.array([-0.6, -0.8]), (0.19 - 0.01 * decay) * np.array([-0.3, -0.4])
    assert simulate(trial).model == pytest.approx((far + near) / 2, abs=1e-6)
