"""The non-convex problem against its formula, its law, and descents from elsewhere."""

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime, minimize

from rollcall.tasks import sun_synthetic


def objective(x, A, b):
    return np.mean(np.log(0.5 * (A @ x + b) ** 2 + 1))


def slope(x, A, b):
    r = A @ x + b
    return A.T @ (r / (0.5 * r**2 + 1)) / len(r)


def arrays(data):
    A, b = (column.numpy() for column in data.splits["train"])
    return [(A[rows], b[rows]) for rows in data.parts]


def test_loss_gradient_and_metrics_are_the_formulas():
    task, data = sun_synthetic(1, clients=4, samples=6, dimension=3)
    x = np.array([0.5, -1.0, 2.0])
    task.x.data = torch.tensor(x)
    for rows, (A, b) in zip(data.parts, arrays(data), strict=True):
        loss = task.loss(tuple(column[rows] for column in data.splits["train"]))
        assert loss.item() == pytest.approx(objective(x, A, b), rel=1e-14)
        (gradient,) = torch.autograd.grad(loss, [task.x])
        assert gradient.numpy() == pytest.approx(approx_fprime(x, objective, 1e-7, A, b), abs=1e-5)
    metrics = task.metrics(data.splits["train"])
    mean, optimum = np.mean([objective(x, A, b) for A, b in arrays(data)]), task.optimum.numpy()
    least = np.mean([objective(optimum, A, b) for A, b in arrays(data)])
    assert metrics["loss"].item() == pytest.approx(mean, rel=1e-14)
    assert metrics["gap"].item() == pytest.approx(mean - least, rel=1e-12)
    assert metrics["distance"].item() == pytest.approx(np.linalg.norm(x - optimum), rel=1e-14)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_descent_from_anywhere_beats_the_optimum(seed):
    task, data = sun_synthetic(seed)
    A, b = (column.numpy() for column in data.splits["train"])
    optimum = task.optimum.numpy()
    assert np.linalg.norm(slope(optimum, A, b)) < 1e-14
    assert task.least == pytest.approx(objective(optimum, A, b), rel=1e-14)
    draw = np.random.default_rng(seed)
    for far in [0.5, 2, 10, 100] * 8:
        start = optimum + far * draw.standard_normal(20)
        assert minimize(objective, start, (A, b), jac=slope, method="L-BFGS-B").fun > task.least - 1e-12


def test_data_follow_their_law():
    seeds, pairs = range(12), []
    for seed in seeds:
        task, data = sun_synthetic(seed, samples=200)
        assert data.clients == 100
        clients = arrays(data)
        spread = np.array([A.std() for A, _ in clients])
        assert spread == pytest.approx(2 / np.arange(1, 101), rel=0.06)
        first = clients[:8]  # where entries are large enough to tell theta
        theta = np.array([np.linalg.lstsq(A, b)[0] for A, b in first])
        noise = [b - A @ x for (A, b), x in zip(first, theta, strict=True)]
        assert np.std(noise) == pytest.approx(0.5 * (1 - 20 / 200) ** 0.5, rel=0.06)
        pairs.append((theta.mean(), theta.mean(axis=1).std(ddof=1), theta.std(axis=1).mean()))
        # With the plus sign the minimiser is on the other side.
        assert np.sign(task.optimum.mean().item()) == -np.sign(theta.mean())
    a, mu, within = np.array(pairs).T
    assert within.mean() == pytest.approx(1, rel=0.1)  # theta_i ~ N(mu_i, I), error of the fit besides
    assert (mu**2).mean() == pytest.approx(1 + 1 / 20, rel=0.4)  # 84 degrees of freedom
    assert 4 < a.std() < 18  # deviation 10 from 12 draws


def test_data_are_ones_own_and_refused_where_there_are_none():
    one, two = (sun_synthetic(0, clients=2, samples=3, dimension=1) for _ in range(2))
    one[1].splits["train"][0].zero_()
    one[0].optimum.zero_()
    assert two[1].splits["train"][0].all()
    assert sun_synthetic(0, clients=2, samples=3, dimension=1)[0].optimum == two[0].optimum != 0
    with pytest.raises(ValueError, match="dimension: 0 is not allowed; must be at least 1"):
        sun_synthetic(0, dimension=0)
