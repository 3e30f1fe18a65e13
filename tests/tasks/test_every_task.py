"""One trial of every task without files, a few rounds, through the whole suite."""

import numpy as np
import pytest

from rollcall import simulate
from rollcall.tasks import TASKS

QUADRATIC = {"targets": np.array([[0.0, 1.0], [2.0, -1.0], [1.0, 3.0], [0.5, 0.5]])}
PLAIN = {
    "quadratic": QUADRATIC,
    "fedpbc_quadratic": {"clients": 4, "dimension": 3},
    "ridge": {"clients": 4, "samples": 20, "dimension": 5},
    "cauchy": {"targets": np.array([0.5, 2.0, 1.0, 3.0])},
    "sun_synthetic": {"clients": 4, "samples": 20, "dimension": 3},
    "leaf_synthetic": {"clients": 4},
    "synthetic_clustered": {"clients": 4},
    "digits": {"clients": 4, "model": "linear"},
}
IMAGES = ["fashion_mnist", "svhn", "cifar100", "cinic10", "mnist", "cifar10"]


def first_rounds(name, options, lr=0.05):
    trial = {
        "task": {"name": name} | options,
        "participation": {"name": "trace", "mask": np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0]])},
        "algorithm": "fedavg",
        "local": {"steps": 2, "lr": lr, "batch_size": 8},
        "rounds": 3,
        "evaluation": {"every": 1},
    }
    return simulate(trial)


def check(history):
    """The first round moves the model downhill, the empty one does not move it, and nothing is out of range."""
    losses = history["train/loss"].to_numpy()
    assert np.isfinite(history.to_numpy()).all()
    assert losses[1] < losses[0]
    assert losses[1] == losses[2] != losses[3]
    for name in history.columns:
        if name.endswith("accuracy"):
            assert history[name].between(0, 1).all()


@pytest.mark.parametrize("name", PLAIN)
def test_tasks_without_files(name):
    check(first_rounds(name, PLAIN[name], lr=0.002 if name == "sun_synthetic" else 0.05).history)


def test_none_is_left_out():
    assert {*PLAIN, *IMAGES, "table"} == set(TASKS)  # the last ones have tests of their own
