"""Least squares against NumPy: loss, minimiser, the law of the data, and federated descent."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from rollcall.tasks import ridge

SMALL = {"clients": 3, "samples": 7, "dimension": 4, "noise": 0.5, "ridge": 0.3}


def arrays(data):
    A, b = (column.numpy() for column in data.splits["train"])
    return [(A[rows], b[rows]) for rows in data.parts]


def value(x, A, b, penalty):
    return np.sum((A @ x - b) ** 2) / (2 * len(b)) + penalty / 2 * np.sum(x**2)


def slope(x, A, b, penalty):
    return A.T @ (A @ x - b) / len(b) + penalty * x


def test_loss_and_gradient_of_a_client_are_the_formulas():
    task, data = ridge(1, **SMALL)
    x = np.array([1.0, -2.0, 0.5, 3.0])
    task.x.data = torch.tensor(x)
    for rows, (A, b) in zip(data.parts, arrays(data), strict=True):
        loss = task.loss(tuple(column[rows] for column in data.splits["train"]))
        assert loss.item() == pytest.approx(value(x, A, b, 0.3), rel=1e-14)
        (gradient,) = torch.autograd.grad(loss, [task.x])
        assert gradient.numpy() == pytest.approx(slope(x, A, b, 0.3), rel=1e-13)


@pytest.mark.parametrize("options", [SMALL, SMALL | {"ridge": 0.0, "theta_spread": 2.0, "scale_spread": 1.0}])
def test_the_optimum_minimises_the_mean_over_clients(options):
    task, data = ridge(2, **options)
    clients = arrays(data)

    def mean(x):
        return np.mean([value(x, A, b, options["ridge"]) for A, b in clients])

    found = minimize(mean, np.ones(4), method="BFGS", options={"gtol": 1e-9}).x
    assert task.optimum.numpy() == pytest.approx(found, abs=1e-6)
    whole = np.concatenate([A for A, _ in clients]), np.concatenate([b for _, b in clients])
    assert np.abs(slope(task.optimum.numpy(), *whole, options["ridge"])).max() < 1e-13
    assert task.metrics(data.splits["train"])["loss"].item() == pytest.approx(mean(np.zeros(4)), rel=1e-13)


def test_metrics_are_distances_and_start_at_zero():
    task, data = ridge(0)
    assert data.clients == 16
    assert data.splits["train"][0].shape == (8000, 50)
    metrics = task.metrics(data.splits["train"])
    assert metrics["relative_error"].item() == 1.0  # x = 0
    assert metrics["distance"].item() == pytest.approx(np.linalg.norm(task.optimum.numpy()), rel=1e-14)
    task.x.data = 1.1 * task.optimum
    metrics = task.metrics(data.splits["train"])
    assert metrics["relative_error"].item() == pytest.approx(0.1, rel=1e-12)  # not its square


def test_data_follow_their_law():
    task, data = ridge(5, clients=8, samples=4000, dimension=6, noise=0.1)
    A, b = (column.numpy() for column in data.splits["train"])
    # E[u^2] = 7/12 for u uniform in [0.5, 1]; rows are N(0, I) given u.
    assert A.T @ A / len(A) == pytest.approx(7 / 12 * np.eye(6), abs=0.02)
    norms = (A**2).sum(axis=1)
    # E|row|^4 = E[u^4] d (d + 2) = 31/80 * 48
    assert (norms**2).mean() == pytest.approx(31 / 80 * 48, rel=0.03)
    residual = b - A @ task.optimum.numpy()
    assert residual.std() == pytest.approx(0.1, rel=0.02)
    one, same, other = (ridge(seed, **SMALL)[1].splits["train"][0] for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_clients_differ_by_as_much_as_they_are_told_to():
    def solutions(**spreads):
        _, data = ridge(5, clients=200, samples=60, dimension=6, noise=0.01, **spreads)
        clients = arrays(data)
        theta = np.array([np.linalg.lstsq(A, b)[0] for A, b in clients])
        return theta, np.log([A.std() for A, _ in clients])

    theta, scale = solutions()
    assert np.abs(theta - theta.mean(axis=0)).max() < 0.02
    assert scale.std() < 0.06
    apart, scale = solutions(theta_spread=1.5, scale_spread=0.8)
    assert (apart - apart.mean(axis=0)).std() == pytest.approx(1.5, rel=0.1)
    assert scale.std() == pytest.approx(0.8, rel=0.12)
    # The same draws at twice the strength.
    twice, _ = solutions(theta_spread=3.0, scale_spread=0.8)
    assert twice - theta.mean(axis=0) == pytest.approx(2 * (apart - theta.mean(axis=0)), abs=0.1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"clients": 0}, "clients: 0 is not allowed; must be at least 1"),
        ({"noise": -0.1}, "noise: -0.1 is not allowed; must be at least 0"),
        ({"theta_spread": float("nan")}, "theta_spread: nan is not allowed"),
        ({"scale_spread": float("inf")}, "scale_spread: inf is not allowed"),
        ({"ridge": -1.0}, "ridge: -1.0 is not allowed"),
        ({"clients": 2, "samples": 5, "dimension": 11}, "dimension: 11 is not allowed without ridge; .* at most 10"),
    ],
)
def test_ridge_refuses(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        ridge(0, **options)
