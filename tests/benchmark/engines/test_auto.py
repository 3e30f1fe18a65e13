"""What `auto` computes with: by hand from the numbers of parameters and samples."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised, fastest
from rollcall.benchmark.federation.build import build
from rollcall.tasks import Minibatches, quadratic, ridge
from rollcall.tasks.images import Classification


def images(network, *, clients=3, batch_size=16, side=28):
    """Blank images, 600 a client."""
    pixels = torch.zeros(600 * clients, 1, side, side, dtype=torch.uint8)
    parts = np.split(np.arange(600 * clients), clients)
    labels = torch.zeros(len(pixels), dtype=torch.int64)
    return Classification(network, (0.5,), (0.5,)), (pixels, labels), Minibatches(parts, batch_size, seed=0)


def dense(*widths):
    layers = [nn.Linear(one, other) for one, other in pairwise(widths)]
    return nn.Sequential(nn.Flatten(), *layers)


def drawn(task, data, batch_size="full"):
    samples = tuple(c.float() if c.is_floating_point() else c for c in data.splits["train"])
    return task.float(), samples, Minibatches(data.parts, batch_size, seed=0)


CASES = {
    "quadratic": (lambda: drawn(*quadratic(0, targets=np.ones((5, 100)))), Vectorised),
    "ridge, 500 samples x 51 numbers": (lambda: drawn(*ridge(0)), Vectorised),
    "ridge, 500 samples x 501 numbers": (lambda: drawn(*ridge(0, dimension=500)), Sequential),
    "linear, batch 16": (lambda: images(dense(784, 10)), Vectorised),
    "linear, 76 x 785 = 59,660 numbers": (lambda: images(dense(784, 10), batch_size=76), Vectorised),
    "linear, 77 x 785 = 60,445 numbers": (lambda: images(dense(784, 10), batch_size=77), Sequential),
    "linear, full batch": (lambda: images(dense(784, 10), batch_size="full"), Sequential),
    "784-4-3": (lambda: images(dense(784, 4, 3)), Vectorised),
    "784-314-10, 249,640 parameters": (lambda: images(dense(784, 314, 10)), Vectorised),
    "784-315-10, 250,435 parameters": (lambda: images(dense(784, 315, 10)), Sequential),
    "two clients": (lambda: images(dense(784, 10), clients=2), Sequential),
    "a convolution": (lambda: images(nn.Sequential(nn.Conv2d(1, 1, 28), nn.Flatten())), Sequential),
    "dropout": (lambda: images(nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(784, 10))), Sequential),
    "BatchNorm": (lambda: images(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, 10))), Vectorised),
}


@pytest.mark.parametrize("case", CASES)
def test_the_choice(case):
    make, expected = CASES[case]
    task, samples, minibatches = make()
    for count in (1, 2):
        engine = fastest(FlatTask(task), Feed(task, samples, minibatches), LocalTraining(2), count)
        assert type(engine) is expected


def test_a_trial_computes_with_it_unless_told_otherwise():
    trial = {"task": {"name": "quadratic", "targets": np.ones((5, 2))}, "algorithm": "fedavg", "rounds": 1}
    for engine, expected in {"auto": Vectorised, "sequential": Sequential}.items():
        federation = build(Trial.read(trial | {"numerics": {"engine": engine, "device": "cpu"}}))
        federation.on_fit_start()
        assert type(federation.engine) is expected
