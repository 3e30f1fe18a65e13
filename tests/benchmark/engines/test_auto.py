"""What `auto` computes with: by hand from the numbers of parameters, samples and clients; sequential where it must."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from rollcall import simulate
from rollcall.benchmark.engines import FEWEST, Auto, Feed, FlatTask, LocalTraining, Sequential, Vectorised
from rollcall.tasks import Minibatches, supervised
from rollcall.tasks.images import Classification


def images(network, *, clients=20, batch_size=16):
    """Blank images of 28 x 28, 600 a client."""
    pixels = torch.zeros(600 * clients, 1, 28, 28, dtype=torch.uint8)
    parts = np.split(np.arange(600 * clients), clients)
    labels = torch.zeros(len(pixels), dtype=torch.int64)
    task = Classification(network, (0.5,), (0.5,))
    return Auto(FlatTask(task), Feed(task, (pixels, labels), Minibatches(parts, batch_size, seed=0)), LocalTraining(2))


def dense(*widths):
    return nn.Sequential(nn.Flatten(), *(nn.Linear(one, other) for one, other in pairwise(widths)))


CASES = {
    "linear, 76 x 785 = 59,660 numbers": (dense(784, 10), 76, Vectorised),
    "linear, 77 x 785 = 60,445 numbers": (dense(784, 10), 77, Sequential),
    "784-314-10, 249,640 parameters": (dense(784, 314, 10), 16, Vectorised),
    "784-315-10, 250,435 parameters": (dense(784, 315, 10), 16, Sequential),
    "a convolution": (nn.Sequential(nn.Conv2d(1, 1, 28), nn.Flatten()), 16, Sequential),
    "dropout": (nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(784, 10)), 16, Sequential),
    "BatchNorm": (nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, 10)), 16, Vectorised),
}


@pytest.mark.parametrize("case", CASES)
def test_the_choice(case):
    network, batch_size, expected = CASES[case]
    auto = images(network, batch_size=batch_size)
    assert type(auto.of(FEWEST)) is type(auto.of(20)) is expected
    assert type(auto.of(FEWEST - 1)) is type(auto.of(0)) is Sequential


class Last(nn.Module):
    """A network for sequences [n, 5, 2], from a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.out = layer, nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.layer(x)[0][:, -1])


class Attentive(nn.Module):
    """Keeps the weights of its last call."""

    def __init__(self):
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(2, 1, batch_first=True), nn.Linear(2, 2)

    def forward(self, x):
        x, self.weights = self.attention(x, x, x)
        return self.out(x.mean(dim=1))


class Counting(nn.Module):
    """Counts its calls in Python, and looks at a value."""

    def __init__(self):
        super().__init__()
        self.out, self.calls = nn.Linear(10, 2), 0

    def forward(self, x):
        self.calls += 1
        y = self.out(x.flatten(1))
        return 2 * y if y.sum().item() > 0 else y


NETWORKS = {
    "gru": lambda: Last(nn.GRU(2, 3, batch_first=True)),
    "attention": Attentive,
    "parametrized": lambda: nn.Sequential(nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(10, 2))),
    "BatchNorm": lambda: nn.Sequential(nn.Flatten(), nn.Linear(10, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
    "a value": Counting,
}
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(80, 5, 2)).astype(np.float32)
Y = (X[:, -1, 0] > 0).astype(int)


@pytest.mark.parametrize(("name", "dtype"), [*((name, "float32") for name in NETWORKS), ("BatchNorm", "bf16_mixed")])
def test_any_network_runs_with_auto(name, dtype):
    """Eight clients in a round. Both engines agree, or the sequential one has computed."""
    task = supervised((X, Y), None, lambda seed: NETWORKS[name](), clients=8)
    trial = {"task": task, "algorithm": "fedavg", "local": {"steps": 3, "lr": 0.1, "batch_size": 4}, "rounds": 2}
    auto, sequential = (
        simulate(trial | {"numerics": {"engine": engine, "dtype": dtype, "device": "cpu"}})
        for engine in ("auto", "sequential")
    )
    assert np.allclose(auto.server, sequential.server, rtol=0, atol=1e-5 if dtype == "float32" else 1e-2)
    assert np.abs(auto.server).max() > 0
