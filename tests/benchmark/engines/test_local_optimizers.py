"""Local Adam, AdamW, clipped gradients and a torch optimizer from outside: against torch.optim and a NumPy loop."""

import copy

import numpy as np
import pytest
import torch
from engine_rigs import LR, WRAPS, T, rigs
from torch import nn

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS, Setting
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.engines import Adam, LocalTraining, Sequential, Vectorised, fastest

STEPS = np.array([2, 6, 1, 10, 6, 4])
OPTIMIZERS = {
    "sgd": (None, lambda parameters, lr: torch.optim.SGD(parameters, lr=lr)),
    "adam": (
        Adam((0.8, 0.95), 1e-3, 0.2),
        lambda parameters, lr: torch.optim.Adam(parameters, lr=lr, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2),
    ),
    "adamw": (
        Adam((0.8, 0.95), 1e-3, 0.2, decoupled=True),
        lambda parameters, lr: torch.optim.AdamW(parameters, lr=lr, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2),
    ),
}


def by_torch(work, make, start, client, lr, clip_norm=None, correction=0.0):
    """The client's steps of round T by torch's own optimizer and clipping."""
    model = copy.deepcopy(work.model.task)
    nn.utils.vector_to_parameters(start.clone(), model.parameters())
    optimizer = make(model.parameters(), lr)
    for step in range(T * STEPS[client], (T + 1) * STEPS[client]):
        optimizer.zero_grad()
        model.loss(work.engine.batch(client, step)).backward()
        parameters = list(model.parameters())
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, clip_norm)
        if isinstance(correction, torch.Tensor):
            for parameter, piece in zip(parameters, work.model.split(correction), strict=True):
                parameter.grad += piece
        optimizer.step()
    return nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("clip_norm", [None, 0.7])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_engines_against_torch(name, clip_norm, wrap):
    optimizer, make = OPTIMIZERS[name]
    local = LocalTraining(STEPS, optimizer=optimizer, clip_norm=clip_norm)
    sequential, vectorised, x = rigs(local=local, wrap=WRAPS[wrap])
    clients = torch.tensor([3, 0, 4, 1, 5])
    draw = torch.Generator().manual_seed(1)
    start = x + 0.1 * torch.randn(5, len(x), generator=draw, dtype=torch.float64)
    correct = 0.02 * torch.randn(start.shape, generator=draw, dtype=torch.float64)
    scale = torch.tensor([0.5, 3.0, 1.5, 1.0, 0.2], dtype=torch.float64)
    before = start.clone()
    for options in ({}, {"correct": correct, "scale": scale}):
        one, other = (work.sgd(clients, start, **options) for work in (sequential, vectorised))
        assert torch.equal(start, before)
        assert (one - other).abs().max() < 1e-10
        if wrap == "batchnorm" and options:
            continue  # the buffers of the first call go on in the second
        for row, client in enumerate(clients.tolist()):
            lr = LR * (scale[row].item() if options else 1.0)
            correction = correct[row] if options else 0.0
            expected = by_torch(sequential, make, start[row], client, lr, clip_norm, correction)
            assert (one[row] - expected).abs().max() < 1e-10
            assert (one[row] - start[row]).abs().max() > 1e-3


def test_memory_decides_only_how_many_are_computed_at_once():
    local = LocalTraining(STEPS, optimizer=Adam(), clip_norm=0.5)
    _, roomy, x = rigs(local=local)
    _, tight, _ = rigs(local=local, memory=0)
    start = x.expand(6, -1)
    assert len(list(tight._chunks(torch.arange(6), 10))) == 6
    assert (roomy.sgd(torch.arange(6), start) - tight.sgd(torch.arange(6), start)).abs().max() < 1e-12


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


class SignDescent(torch.optim.Optimizer):
    """Replaces the parameters instead of changing them in place."""

    def __init__(self, params, lr, *, sharpness=1.0):
        super().__init__(params, {"lr": lr, "sharpness": sharpness})

    def step(self, closure=None):
        for group in self.param_groups:
            for x in group["params"]:
                x.data = x.data - group["lr"] * torch.tanh(group["sharpness"] * x.grad)


def outside(**options):
    return Choice("signs.py:SignDescent", options, SignDescent)


def test_an_optimizer_from_outside():
    x = np.zeros(2)
    for mask in MASK:
        ends = []
        for i in np.flatnonzero(mask):
            y = x
            for _ in range(3):
                y = y - 0.1 * np.tanh(2.0 * H[i] * (y - U[i]))
            ends.append(y)
        x = np.mean(ends, axis=0) if ends else x
    trial = QUADRATIC | {"algorithm": "fedavg", "local": {"steps": 3, "lr": 0.1, "optimizer": outside(sharpness=2.0)}}
    assert np.abs(simulate(trial).model - x).max() < 1e-12
    with pytest.raises(SettingError, match="'vectorised' is not allowed with a local optimizer from outside"):
        simulate(trial | {"numerics": {"engine": "vectorised"}})
    with pytest.raises(SettingError, match=r"local\.momentum: 0.9 is not allowed with SignDescent"):
        Trial.read(trial | {"local": {"optimizer": outside(), "momentum": 0.9}})


def test_auto_computes_an_optimizer_from_outside_one_client_after_another():
    work = rigs()[0]
    for optimizer, engine in ((SignDescent, Sequential), (Adam(), Vectorised)):
        assert isinstance(fastest(work.model, work.engine.feed, LocalTraining(5, optimizer=optimizer)), engine)


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
    assert plain.digest == "4da5d0c0be"  # as before there were local optimizers
    one = Trial.read(QUADRATIC | {"algorithm": "fedavg", "local": {"optimizer": {"name": "adam", "eps": 0.1}}})
    other = Trial.read(QUADRATIC | {"algorithm": "fedavg", "local": {"optimizer": "adam", "eps": 0.1}})
    assert one.digest == other.digest != plain.digest
    for local, message in (
        ({"eps": 0.1}, r"local\.eps: 0.1 is not allowed with sgd"),
        ({"optimizer": "adam", "momentum": 0.9}, r"local\.momentum: 0.9 is not allowed with adam"),
        ({"clip_norm": 0.0}, r"local\.clip_norm: 0.0 is not allowed"),
        ({"optimizer": "lamb"}, r"local\.optimizer\.name: 'lamb' is not allowed; must be one of sgd, adam, adamw"),
    ):
        with pytest.raises(SettingError, match=message):
            Trial.read(QUADRATIC | {"algorithm": "fedavg", "local": local})
