"""Where the methods end on heterogeneous quadratics when uplinks are biased."""

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS, Round
from rollcall.benchmark.conformance.subject import Quadratics
from rollcall.participation import MODELS, Population

DRAW = np.random.default_rng(3)
U, H = DRAW.normal(size=(4, 3)), DRAW.uniform(0.5, 1.5, 4)
OPTIMUM = H @ U / H.sum()
P = np.array([0.05, 0.3, 0.6, 0.9])


def trial(algorithm, rounds, steps, lr, p=P):
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "bernoulli", "probability": p},
        "algorithm": algorithm,
        "local": {"steps": steps, "lr": lr},
        "rounds": rounds,
        "evaluation": {"every": rounds},
        "numerics": {"dtype": "float64"},
    }


@pytest.mark.parametrize(
    ("algorithm", "lr"),
    [
        ("focus", 0.03),
        ({"name": "scaffold", "option": "I"}, 0.1),
        ({"name": "scaffold", "option": "II"}, 0.1),
        ({"name": "feddyn", "alpha": 4.0}, 0.1),
        ({"name": "amplified_scaffold", "P": 10}, 0.1),
    ],
    ids=str,
)
def test_gradient_tracking_and_control_variates_reach_the_optimum(algorithm, lr):
    """To 1e-10, with K = 3 and uplinks as rare as one round in twenty, where FedAvg ends more than 0.1 away."""
    found = simulate(trial(algorithm, 700, 3, lr))
    assert np.abs(found.model - OPTIMUM).max() < 1e-10


@pytest.mark.parametrize(
    ("algorithm", "lr"),
    [("mifa", 0.1), ("fedvarp", 0.1), ("mimic", 0.1), ({"name": "fedstale", "beta": 1.0}, 0.05)],
    ids=str,
)
def test_memory_of_updates_reaches_the_optimum_of_single_steps(algorithm, lr):
    found = simulate(trial(algorithm, 700, 1, lr))
    assert np.abs(found.model - OPTIMUM).max() < 1e-10


def end(name, rounds, K, p):
    """The model after these rounds with eta = 0.1, without the suite: one method, one model of participation."""
    method, x = ALGORITHMS[name](), torch.zeros(3, dtype=torch.float64)
    work = Quadratics(torch.tensor(U), torch.tensor(H), torch.full((4,), K), 0.1)
    participation = MODELS["bernoulli"](Population(4), probability=p)
    state, alpha = method.init(x, 4), torch.full((4,), 0.25, dtype=torch.float64)
    for t in range(rounds):
        update, state = method.round(state, x, Round(t, torch.from_numpy(participation.active(t)), 0.1, alpha), work)
        x = x if update is None else x + update
    return x.numpy()


@pytest.mark.parametrize("name", ["mifa", "fedvarp", "mimic"])
def test_memory_of_updates_ends_where_full_participation_does_with_more_steps(name):
    """K exact steps move client i by (1 - (1 - eta h_i)^K) (u_i - x): memory of updates weighs the targets so."""
    weights = 1 - (1 - 0.1 * H) ** 3
    limit = weights @ U / weights.sum()
    assert np.abs(limit - OPTIMUM).max() > 0.005
    assert np.abs(end(name, 900, 3, P) - limit).max() < 1e-10


def test_scaffnew_diverges_unless_all_clients_participate():
    assert np.abs(end("scaffnew", 300, 1, 1.0) - OPTIMUM).max() < 1e-10
    assert np.abs(end("scaffnew", 300, 1, P)).max() > 1e10


class Path(Callback):
    """The server's model after every round."""

    def __init__(self):
        self.models = []

    def on_train_batch_end(self, trainer, federation, *_):
        self.models.append(federation.server.detach().numpy().copy())


def long_run(settings, burn):
    """Mean over rounds after burn-in, and the standard error of 20 batch means."""
    path = Path()
    simulate(settings, callbacks=[path])
    batches = np.array(path.models[burn:]).reshape(20, -1, path.models[0].shape[0]).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(20)


def test_fedavg_with_two_clients():
    """[PBC] Proposition 1: for u = (0, 100), p_1 = 0.5 the limit of E[x] is 150 p_2 / (1 + p_2), whatever eta and K."""
    for p2, K, eta in [(0.2, 1, 0.2), (0.9, 3, 0.05)]:
        settings = trial("fedavg", 1_800, K, eta, p=[0.5, p2]) | {
            "task": {"name": "quadratic", "targets": np.array([[0.0], [100.0]])}
        }
        mean, error = long_run(settings, burn=200)
        limit = 150 * p2 / (1 + p2)
        assert abs(mean[0] - limit) < 4 * error[0]
        assert abs(50 - limit) > 6 * error[0]  # the right answer, 50, is far away
