"""`target`: every method that weights clients ends at the optimum of the weighted objective; the others refuse it."""

import numpy as np
import pytest
import torch

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS, KNOWLEDGE, Round
from rollcall.benchmark.config.trial import Trial

U = torch.tensor([[0.0], [1.0], [10.0]], dtype=torch.float64)
ALPHA = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
OPTIONS = {"amplified_fedavg": {"eta": 1.0}, "ca_fed": {"losses": "minibatch", "kappa2": 1e12}}


class Work:
    """One local step on F_i = (x - u_i)^2 / 2 at the rate 0.1."""

    steps = 1

    def steps_of(self, clients):
        return torch.ones_like(clients)

    def gradients(self, clients, x, step):
        return x - U[clients], ((x - U[clients]) ** 2).sum(dim=1) / 2

    def losses(self, clients, x, split):
        raise AssertionError

    def sgd(self, clients, start, *, scale=None, correct=None):
        g = start - U[clients] + (0 if correct is None else correct)
        return start - 0.1 * g * (1 if scale is None else scale[:, None])


def end(name, alpha, weighted, rounds=400):
    method = ALGORITHMS[name](**OPTIONS.get(name, {}))
    x = torch.full((1,), 4.0, dtype=torch.float64)
    state = method.init(x, 3)
    known = {name: torch.ones(3, dtype=torch.float64) for name in KNOWLEDGE}
    known |= {name: 0 * known[name] for name in ("correlation", "least_loss")}
    for t in range(rounds):
        update, state = method.round(
            state, x, Round(t, torch.arange(3), 0.1, alpha, weighted=weighted, **known), Work()
        )
        x = x if update is None else x + update
    return x.item()


WEIGHT = [name for name, kind in ALGORITHMS.items() if kind().properties.weights]


@pytest.mark.parametrize("name", WEIGHT)
def test_the_end_is_the_optimum_of_the_weighted_objective(name):
    near = 0.1 if name in ("fedadam", "fedyogi") else 1e-3
    assert end(name, ALPHA, True) == pytest.approx(0.2 * 1 + 0.1 * 10, abs=near)
    assert end(name, torch.full((3,), 1 / 3, dtype=torch.float64), False) == pytest.approx(11 / 3, abs=near)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in WEIGHT])
def test_a_method_that_does_not_weight_refuses(name):
    task = {"name": "quadratic", "targets": U.numpy()}
    trial = {"task": task, "algorithm": name, "rounds": 1, "target": "samples"}
    with pytest.raises(SettingError, match=f"^target: samples is not allowed with {name}, which does not weight"):
        Trial.read(trial)


def test_given_weights_and_half_of_the_clients():
    """FedAvg with two of three clients, by hand: alpha_i / sum over A of alpha_j."""
    targets = np.array([[0.0], [1.0], [10.0]])
    trial = {
        "task": {"name": "quadratic", "targets": targets},
        "algorithm": "fedavg",
        "rounds": 1,
        "local": {"lr": 0.5},
    }
    trial |= {"participation": {"name": "trace", "mask": np.array([[1, 0, 1]])}, "numerics": {"dtype": "float64"}}
    assert simulate(trial | {"target": [3.0, 5.0, 1.0]}).model == pytest.approx(0.5 * 10 / 4)
    assert simulate(trial | {"target": [2, 0, 2]}).model.tobytes() == simulate(trial).model.tobytes()
    for target, complaint in (
        ([1, 2], "2 weights are not allowed; must be 3"),
        ([0, 0, 0], "not all 0"),
        ("size", "must be"),
    ):
        with pytest.raises(SettingError, match=f"target: .*{complaint}"):
            simulate(trial | {"target": target})
