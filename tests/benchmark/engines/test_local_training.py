"""Local training in trials: epochs, momentum, Adam and clipped gradients; against loops by hand."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS, Setting
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


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
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


@pytest.mark.parametrize(
    ("local", "algorithm", "complaint"),
    [
        (
            {"steps": 2, "epochs": 1},
            "fedavg",
            r"local.epochs: 1 is not allowed together with steps; set only one of the two",
        ),
        ({"steps": None}, "fedavg", "local.steps: null is not allowed without epochs"),
        ({"keep_momentum": True}, "fedavg", "local.keep_momentum: true is not allowed without momentum"),
        ({"momentum": 1.0}, "fedavg", "local.momentum: 1.0 is not allowed; must be less than 1"),
        ({"momentum": 0.9}, "focus", "local.momentum: 0.9 is not allowed with focus, which changes the direction"),
        ({"epochs": 1, "batch_size": 8}, "fedsgd", "local.epochs is not allowed with fedsgd, which uses one gradient"),
    ],
)
def test_what_makes_no_sense_is_refused(local, algorithm, complaint):
    with pytest.raises(SettingError, match=complaint):
        Trial.read(DIGITS | {"algorithm": algorithm, "local": local})


U, H = np.array([[1.0, -2.0], [4.0, 0.5], [-3.0, 2.0]]), np.array([0.5, 1.0, 2.0])
MASK = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1]])
QUADRATIC = {
    "task": {"name": "quadratic", "targets": U, "curvature": H},
    "participation": {"name": "trace", "mask": MASK},
    "rounds": 4,
    "numerics": {"dtype": "float64", "engine": "sequential"},
}


def clipped(g, norm):
    return g * min(1.0, norm / (np.linalg.norm(g) + 1e-6))


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("decoupled", [False, True])
def test_fedavg_with_adam_is_a_numpy_loop_that_starts_anew_in_each_round(engine, decoupled):
    lr, (b1, b2), eps, decay, clip = 0.05, (0.7, 0.9), 1e-4, 0.1, 1.5
    x = np.zeros(2)
    for mask in MASK:
        ends = []
        for i in np.flatnonzero(mask):
            y, m, v = x.copy(), np.zeros(2), np.zeros(2)
            for k in range(1, 6):
                g = clipped(H[i] * (y - U[i]), clip)
                y, g = (y * (1 - lr * decay), g) if decoupled else (y, g + decay * y)
                m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
                y = y - lr * m / (1 - b1**k) / (np.sqrt(v / (1 - b2**k)) + eps)
            ends.append(y)
        x = np.mean(ends, axis=0) if ends else x
    local = {"steps": 5, "lr": lr, "betas": [b1, b2], "eps": eps, "weight_decay": decay, "clip_norm": clip}
    local["optimizer"] = "adamw" if decoupled else "adam"
    numerics = {"dtype": "float64", "engine": engine}
    result = simulate(QUADRATIC | {"algorithm": "fedavg", "local": local, "numerics": numerics})
    assert np.abs(result.model - x).max() < 1e-10


OWN_DIRECTIONS = ["fedprox", "scaffold", "scaffnew", "focus", "feddyn", "fedsgd", "fedsgd_iw"]


@pytest.mark.parametrize("name", OWN_DIRECTIONS)
def test_methods_with_directions_of_their_own_refuse(name):
    method = ALGORITHMS[name]()
    with pytest.raises(ValueError, match=rf"local\.optimizer: adam is not allowed with {name}, .*; must be sgd"):
        method.check(Setting(1, local_optimizer="adam"))
    with pytest.raises(ValueError, match=rf"local\.clip_norm: 2 is not allowed with {name}, .*; must be null"):
        method.check(Setting(1, clip_norm=2.0))


def test_fednova_takes_clipped_gradients_but_no_adam():
    ALGORITHMS["fednova"]().check(Setting(1, clip_norm=2.0))
    with pytest.raises(ValueError, match=r"local\.optimizer: adam is not allowed with fednova"):
        ALGORITHMS["fednova"]().check(Setting(1, local_optimizer="adam"))
    with pytest.raises(ValueError, match=r"local\.keep_momentum: true is not allowed with fednova"):
        Trial.read(
            {
                "task": {"name": "quadratic", "targets": [[0.0], [1.0]]},
                "algorithm": {"name": "fednova", "rho": 0.9},
                "local": {"momentum": 0.9, "keep_momentum": True},
                "rounds": 1,
            }
        )


def test_settings():
    plain = Trial.read(QUADRATIC | {"algorithm": "fedavg"})
    one = Trial.read(QUADRATIC | {"algorithm": "fedavg", "local": {"optimizer": {"name": "adam", "eps": 0.1}}})
    other = Trial.read(QUADRATIC | {"algorithm": "fedavg", "local": {"optimizer": "adam", "eps": 0.1}})
    assert one.complete() == other.complete() != plain.complete()
    for local, message in (
        ({"eps": 0.1}, r"local\.eps: 0.1 is not allowed with sgd"),
        ({"optimizer": "adam", "momentum": 0.9}, r"local\.momentum: 0.9 is not allowed with adam"),
        ({"clip_norm": 0.0}, r"local\.clip_norm: 0.0 is not allowed"),
        ({"optimizer": "lamb"}, r"local\.optimizer: 'lamb' is not allowed; must be 'sgd', 'adam' or 'adamw'"),
    ):
        with pytest.raises(SettingError, match=message):
            Trial.read(QUADRATIC | {"algorithm": "fedavg", "local": local})
