"""The Lightning module and its trainer: a round is a training step, evaluation is exact; dtypes; Yogi and Adam by hand."""

import pickle
import sys
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import CSVLogger
from runs import DIGITS, TRAINER
from torch import nn

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.engines.sequential import Replica
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.checked import WrongReturnError
from rollcall.benchmark.federation.server_optimizers import Yogi
from rollcall.benchmark.federation.simulation import quiet


def test_evaluation_is_exact_over_uneven_batches():
    federation = build(Trial.read(DIGITS | {"algorithm": "fedavg", "numerics": {"dtype": "float64"}}))
    federation.data.evaluation_batch = 100
    with quiet():
        Trainer(**TRAINER).validate(federation, verbose=False)
    for split in ("train", "test"):
        pixels, labels = federation.data.splits[split]
        logits = federation.model.task(pixels)
        loss = nn.functional.cross_entropy(logits, labels).item()
        assert federation.measured[f"{split}/loss"] == pytest.approx(loss, rel=1e-12)
        accuracy = (logits.argmax(1) == labels).double().mean().item()
        assert federation.measured[f"{split}/accuracy"] == pytest.approx(accuracy, rel=1e-12)


@pytest.mark.parametrize(
    ("method", "mean"), [("fedpbc", (1 + 100) / 2), ("fedavg", (1 + 100) / 2), ("local_sgd", (1 + 10 + 100) / 3)]
)
def test_batchnorm_statistics_are_averaged_over_the_clients_that_are_heard(method, mean):
    """Of FedPBC all compute and the active ones send; of local SGD all do both, also in the second round."""
    from rollcall.benchmark.engines import LocalTraining
    from rollcall.benchmark.federation.module import Federation
    from rollcall.participation import Population, Trace
    from rollcall.tasks import ClientData, Minibatches, Task

    class Norm(Task):
        def __init__(self):
            super().__init__(lr=0.1)
            self.norm = nn.BatchNorm1d(1, momentum=1.0)

        def loss(self, batch):
            return self.norm(batch[0]).square().mean()

        def metrics(self, batch):
            return {"loss": self.loss(batch)}

    means = torch.tensor([1.0, 10.0, 100.0])
    samples = (torch.stack([means - 1, means + 1], dim=1).flatten()[:, None],)
    mask, parts = np.array([[1, 0, 1], [0, 0, 0]]), list(np.arange(6).reshape(3, 2))
    federation = Federation(
        Norm(),
        ClientData({"train": samples}, parts),
        Trace(Population(3), mask=mask),
        ALGORITHMS[method](),
        minibatches=Minibatches(parts, "full", seed=0),
        local=LocalTraining(1),
        lr=lambda t: 0.0,
        alpha=np.full(3, 1 / 3),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        splits_at=lambda t: ["train"],
        seed=0,
    )
    with quiet():
        Trainer(max_steps=2, max_epochs=1, limit_val_batches=0, **TRAINER).fit(federation)
    norm = federation.model.task.norm
    assert norm.running_mean.item() == pytest.approx(mean)
    assert norm.running_var.item() == pytest.approx(2.0)


class Patch(Callback):
    """Replaces the gradient after the engine was made and tried."""

    def __init__(self, monkeypatch, function):
        self.apply = lambda: monkeypatch.setattr(Replica, "differentiate", function)

    def on_train_start(self, *_):
        self.apply()


def test_a_round_comes_to_a_gradient_in_six_hops(monkeypatch):
    hops = 0

    def differentiate(self, batch):
        nonlocal hops
        frame = sys._getframe()
        while frame.f_code.co_name != "training_step":  # the checks of types in tests have frames too
            hops += "rollcall" in Path(frame.f_code.co_filename).parts
            frame = frame.f_back
        raise ZeroDivisionError

    trial = DIGITS | {"algorithm": "fedavg", "numerics": {"engine": "auto", "device": "cpu"}}
    with pytest.raises(ZeroDivisionError):
        simulate(trial, callbacks=[Patch(monkeypatch, differentiate)])
    assert hops == 4  # between `training_step` and this function


def test_who_reads_metrics_finds_them(tmp_path):
    trial = {"task": {"name": "quadratic", "targets": np.array([[1.0], [3.0]])}, "algorithm": "fedavg", "rounds": 4}
    trial |= {"evaluation": {"every": 1}, "numerics": {"dtype": "float64"}, "local": {"lr": 0.5}}
    # x = 0, 1, 1.5, 1.75, 1.875: the first distance from 2 below 0.3 is the third.
    stop = EarlyStopping("train/distance", stopping_threshold=0.3, patience=9)
    assert simulate(trial, callbacks=[stop]).server.tolist() == [1.75]
    assert simulate(trial, callbacks=[]).server.tolist() == [1.875]
    simulate(trial, logger=CSVLogger(tmp_path, name="", version=""))
    logged = pd.read_csv(tmp_path / "metrics.csv")
    assert logged["train/distance"].dropna().tolist()[:4] == [2.0, 1.0, 0.5, 0.25]


def test_rounding_is_that_of_the_bits():
    trial = DIGITS | {"algorithm": "fedavg", "rounds": 3}
    exact, singles, halves = (
        simulate(trial | {"numerics": {"dtype": dtype, "device": "cpu"}}).server
        for dtype in ("float64", "float32", "bf16_mixed")
    )
    assert singles.dtype == halves.dtype == np.float32
    assert 1e-9 < np.linalg.norm(singles - exact) / np.linalg.norm(exact) < 1e-6
    assert 1e-6 < np.linalg.norm(halves - exact) / np.linalg.norm(exact) < 1e-2  # bfloat16 has eight bits


@pytest.mark.parametrize("method", ["fedau", "fedstale", "unbiased"])
def test_only_layers_are_computed_in_half_precision(method):
    """The quadratic has none, so that the method's own products show."""
    task = {"name": "quadratic", "targets": [[0.3, 1.7], [4.1, 5.9], [100.3, -3.1]]}
    trial = {"task": task, "algorithm": method, "rounds": 6, "participation": {"name": "bernoulli", "probability": 0.6}}
    full, half = (
        simulate(trial | {"numerics": {"dtype": dtype, "device": "cpu"}}) for dtype in ("float32", "bf16_mixed")
    )
    assert np.array_equal(full.server, half.server)


def test_two_steps_by_hand():
    x = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = Yogi([x], lr=0.5, betas=(0.9, 0.75), eps=0.1)
    expected, m, v = [1.0, -2.0], [0.0, 0.0], [0.01, 0.01]
    for gradient in ([0.2, -0.05], [-0.04, 0.3]):
        x.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        for i, g in enumerate(gradient):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] -= 0.25 * g**2 * (1 if v[i] > g**2 else -1)
            expected[i] -= 0.5 * m[i] / (sqrt(v[i]) + 0.1)
        assert x.tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("told", [{}, {"betas": (0.8, 0.6), "eps": 0.5}])
def test_two_rounds_of_fedadam_by_hand(told):
    """The update is 0.5 (2 - x), with 2 the mean of the targets."""
    trial = {"task": {"name": "quadratic", "targets": np.array([[1.0], [3.0]])}, "algorithm": "fedavg", "rounds": 2}
    trial |= {"local": {"steps": 1, "lr": 0.5}, "numerics": {"dtype": "float64"}}
    (b1, b2), eps = told.get("betas", (0.9, 0.99)), told.get("eps", 1e-3)
    x = m = v = 0.0
    for t in (1, 2):
        g = -0.5 * (2 - x)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        x -= 0.3 * m / (1 - b1**t) / (sqrt(v / (1 - b2**t)) + eps)
    adam = {"optimizer": "adam", "lr": 0.3} | told
    assert simulate(trial | {"server": adam}).server == pytest.approx([x], rel=1e-12)


def test_a_wrong_value_passes_between_processes():
    error = WrongReturnError("own.py:3: Mine.round returned 1", "round", "a pair", "1")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), vars(copied)) == (str(error), vars(error))
