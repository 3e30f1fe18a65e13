"""Problems with a known minimiser: formulas, minimisers and the laws of their data, against NumPy and SciPy."""

import numpy as np
import pytest
import torch
from keys import keyed
from scipy.optimize import approx_fprime, minimize

from rollcall import simulate
from rollcall.tasks import cauchy, fedpbc_quadratic, quadratic, ridge, sun_synthetic


def check_clients(task, data, x, clients, loss, slope, of_loss, of_slope):
    """The loss and the gradient of each client at x are these functions of x and of what the client has."""
    task.x.data = torch.tensor(x)
    for rows, own in zip(data.parts, clients, strict=True):
        found = task.loss(tuple(column[rows] for column in data.splits["train"]))
        assert found.item() == pytest.approx(loss(x, *own), **of_loss)
        (gradient,) = torch.autograd.grad(found, [task.x])
        assert gradient.numpy() == pytest.approx(slope(x, *own), **of_slope)


U, H = np.array([[1.0, -2.0], [3.0, 0.0], [-4.0, 8.0]]), np.array([0.5, 1.0, 2.0])


def test_two_samples_scatter_the_gradient_and_not_the_objective():
    """A minibatch of one has the gradient h (x - u) -+ h scatter: mean that of F_i, standard deviation h scatter."""
    plain, _ = quadratic(0, targets=U, curvature=H)
    task, two = quadratic(0, targets=U, curvature=H, scatter=3.0)
    assert two.parts.sizes.tolist() == [2, 2, 2]
    assert torch.equal(task.optimum, plain.optimum)
    alpha = np.array([0.2, 0.3, 0.5])
    found = task.minimiser(np.repeat(alpha, 2) / 2, *(column.numpy() for column in two.splits["train"]))
    np.testing.assert_allclose(found, (alpha * H) @ U / (alpha @ H))
    x = torch.tensor([0.5, -1.0], dtype=torch.float64)
    for client in range(3):
        gradients = []
        for row in np.flatnonzero(two.parts.owners() == client):
            task.x.data.copy_(x)
            task.zero_grad()
            task.loss(tuple(column[row : row + 1] for column in two.splits["train"])).backward()
            gradients.append(task.x.grad.numpy().copy())
        np.testing.assert_allclose(np.mean(gradients, axis=0), H[client] * (x.numpy() - U[client]), atol=1e-12)
        np.testing.assert_allclose(np.std(gradients, axis=0), H[client] * 3.0, atol=1e-12)


def test_a_wave_makes_the_quadratic_not_convex_and_keeps_its_optimum():
    """With h = 2 and wave 3: F' = 2 y + 3 sin 2y at y = x - x*; PL with mu = 1/32 ([Karimi et al. 2016] section 2.2)."""
    task, data = quadratic(0, targets=[0.0, 4.0], curvature=2.0, wave=3.0)
    y = np.linspace(-6, 6, 1001)
    F, slopes = [], []
    for at in y:
        task.x.data.fill_(2 + at)
        task.zero_grad()
        loss = task.loss(data.splits["train"])
        loss.backward()
        F.append(loss.item())
        slopes.append(task.x.grad.item())
    gap, slopes = np.array(F) - 4, np.array(slopes)  # the two targets are 2 from their mean
    np.testing.assert_allclose(gap, y**2 + 3 * np.sin(y) ** 2, atol=1e-12)
    np.testing.assert_allclose(slopes, 2 * y + 3 * np.sin(2 * y), atol=1e-12)
    assert (np.diff(slopes) < 0).any()  # not convex
    assert (slopes**2 / 2 >= gap / 32).all()


def test_quadratic_loss_gradient_and_optimum():
    task, data = quadratic(0, targets=U, curvature=H)
    point = np.array([0.5, 2.0])

    def F(x, u, h):
        return 0.5 * h * np.sum((x - u) ** 2)

    clients = [*zip(U, H, strict=True)]
    check_clients(task, data, point, clients, F, lambda x, u, h: h * (x - u), {"rel": 1e-15}, {"rel": 1e-15})
    optimum = np.array([(0.5 + 3 - 8) / 3.5, (-1 + 0 + 16) / 3.5])
    metrics = task.metrics(data.splits["train"])
    assert metrics["distance"].item() == pytest.approx(np.linalg.norm(point - optimum), rel=1e-14)
    # 1/2 + 9/7 and 2 - 30/7: of both signs, and their mean keeps it.
    assert metrics["bias"].item() == pytest.approx((25 / 14 - 16 / 7) / 2)
    assert metrics["loss"].item() == pytest.approx(np.mean([F(point, *own) for own in clients]))


def test_the_optimum_of_a_weighted_objective():
    """Against SciPy's minimum of sum alpha_i F_i, from the losses of the clients alone."""
    for (task, data), alpha in (
        (quadratic(0, targets=U, curvature=H), np.array([0.5, 0.5, 0.0])),
        (ridge(1, clients=3, samples=7, dimension=4, ridge=0.1, theta_spread=1.0), np.array([0.7, 0.1, 0.2])),
    ):
        equal = task.optimum
        task.weigh(np.full(3, 1 / 3), data)
        assert task.optimum is equal

        def objective(x, task=task, data=data, alpha=alpha):
            task.x.data = torch.from_numpy(x)
            rows = [tuple(column[mine] for column in data.splits["train"]) for mine in data.parts]
            return sum(a * task.loss(one).item() for a, one in zip(alpha, rows, strict=True))

        found = minimize(objective, np.zeros(len(equal)), tol=1e-12).x
        task.weigh(alpha, data)
        assert task.optimum.numpy() == pytest.approx(found, abs=1e-6)
        assert np.abs(found - equal.numpy()).max() > 0.1
    for task, data in (cauchy(0, targets=[0.0, 1.0, 5.0]), ridge(0, clients=3, samples=4, dimension=5)):
        with pytest.raises(ValueError, match=r"must be (uniform|at least 5)$"):
            task.weigh(np.array([0.0, 0.0, 1.0]), data)


def test_targets_follow_the_law():
    task, data = fedpbc_quadratic(3, clients=50, dimension=20)
    u, h = (column.numpy() for column in data.splits["train"])
    assert (h == 1).all()
    assert [rows.tolist() for rows in data.parts] == [[i] for i in range(50)]
    draw = keyed(3, "fedpbc quadratic").normal(size=(50, 20))
    assert u == pytest.approx(np.arange(1, 51)[:, None] / 1000 + 0.1 * draw, rel=1e-12)  # client 0 is the paper's i = 1
    assert task.optimum.numpy() == pytest.approx(u.mean(axis=0), rel=1e-12)


RIDGE = {"clients": 3, "samples": 7, "dimension": 4, "noise": 0.5, "ridge": 0.3}


def arrays(data):
    A, b = (column.numpy() for column in data.splits["train"])
    return [(A[rows], b[rows]) for rows in data.parts]


def ridge_loss(x, A, b, penalty):
    return np.sum((A @ x - b) ** 2) / (2 * len(b)) + penalty / 2 * np.sum(x**2)


def ridge_slope(x, A, b, penalty):
    return A.T @ (A @ x - b) / len(b) + penalty * x


def test_ridge_loss_and_gradient_of_a_client_are_the_formulas():
    task, data = ridge(1, **RIDGE)
    x = np.array([1.0, -2.0, 0.5, 3.0])
    clients = [(*own, 0.3) for own in arrays(data)]
    check_clients(task, data, x, clients, ridge_loss, ridge_slope, {"rel": 1e-14}, {"rel": 1e-13})
    optimum = task.optimum.numpy()
    relative = np.sqrt(((x - optimum) ** 2).sum() / (optimum**2).sum())
    assert task.metrics(data.splits["train"])["relative_error"].item() == pytest.approx(relative, rel=1e-13)


@pytest.mark.parametrize("options", [RIDGE, RIDGE | {"ridge": 0.0, "theta_spread": 2.0, "scale_spread": 1.0}])
def test_the_ridge_optimum_minimises_the_mean_over_clients(options):
    task, data = ridge(2, **options)
    clients = arrays(data)

    def mean(x):
        return np.mean([ridge_loss(x, A, b, options["ridge"]) for A, b in clients])

    found = minimize(mean, np.ones(4), method="BFGS", options={"gtol": 1e-9}).x
    assert task.optimum.numpy() == pytest.approx(found, abs=1e-6)
    whole = np.concatenate([A for A, _ in clients]), np.concatenate([b for _, b in clients])
    assert np.abs(ridge_slope(task.optimum.numpy(), *whole, options["ridge"])).max() < 1e-13
    assert task.metrics(data.splits["train"])["loss"].item() == pytest.approx(mean(np.zeros(4)), rel=1e-13)


@pytest.mark.parametrize(("theta_spread", "scale_spread"), [(0.0, 0.0), (2.0, 0.7)])
def test_ridge_data_by_hand(theta_spread, scale_spread):
    """theta_i = theta + theta_spread N(0, I), and A_i times exp(scale_spread N(0, 1)), from the keyed numbers."""
    _, data = ridge(5, **RIDGE, theta_spread=theta_spread, scale_spread=scale_spread)
    theta = keyed(5, "ridge theta").normal(size=4)
    for i, (A, b) in enumerate(arrays(data)):
        draw = keyed(5, "ridge client", i)
        own, scale = theta + theta_spread * draw.normal(size=4), np.exp(scale_spread * draw.normal())
        u, rows, noise = draw.uniform(0.5, 1, 7), draw.normal(size=(7, 4)), draw.normal(size=7)
        for j in range(7):
            assert A[j] == pytest.approx(scale * u[j] * rows[j], rel=1e-12)
            assert b[j] == pytest.approx(A[j] @ own + 0.5 * noise[j], rel=1e-12)


def sun_loss(x, A, b):
    return np.mean(np.log(0.5 * (A @ x + b) ** 2 + 1))


def sun_slope(x, A, b):
    r = A @ x + b
    return A.T @ (r / (0.5 * r**2 + 1)) / len(r)


def test_robust_loss_gradient_and_metrics_are_the_formulas():
    task, data = sun_synthetic(1, clients=4, samples=6, dimension=3)
    x = np.array([0.5, -1.0, 2.0])

    def slope(x, A, b):
        return approx_fprime(x, sun_loss, 1e-7, A, b)

    check_clients(task, data, x, arrays(data), sun_loss, slope, {"rel": 1e-14}, {"abs": 1e-5})
    metrics = task.metrics(data.splits["train"])
    mean, optimum = np.mean([sun_loss(x, A, b) for A, b in arrays(data)]), task.optimum.numpy()
    least = np.mean([sun_loss(optimum, A, b) for A, b in arrays(data)])
    assert metrics["loss"].item() == pytest.approx(mean, rel=1e-14)
    assert metrics["gap"].item() == pytest.approx(mean - least, rel=1e-12)
    assert metrics["distance"].item() == pytest.approx(np.linalg.norm(x - optimum), rel=1e-14)


def test_robust_data_by_hand():
    """Variances: 100 of a, 1 of mu_i and of theta_i, (2/i)^2 of A_i, and 0.25 of the noise; from the keyed numbers."""
    _, data = sun_synthetic(3, clients=4, samples=5, dimension=2)
    a = 10 * keyed(3, "sun a").normal()
    for i, (A, b) in enumerate(arrays(data), start=1):
        draw = keyed(3, "sun client", i)
        mu = a + draw.normal()
        theta = mu + draw.normal(size=2)
        assert A == pytest.approx(2 / i * draw.normal(size=(5, 2)), rel=1e-12)
        assert b == pytest.approx(A @ theta + 0.5 * draw.normal(size=5), rel=1e-12)


def test_no_descent_from_anywhere_beats_the_optimum():
    task, data = sun_synthetic(seed := 1)
    A, b = (column.numpy() for column in data.splits["train"])
    optimum = task.optimum.numpy()
    assert np.linalg.norm(sun_slope(optimum, A, b)) < 1e-14
    assert task.least == pytest.approx(sun_loss(optimum, A, b), rel=1e-14)
    draw = np.random.default_rng(seed)
    for far in [0.5, 2, 10, 100] * 8:
        start = optimum + far * draw.standard_normal(20)
        assert minimize(sun_loss, start, (A, b), jac=sun_slope, method="L-BFGS-B").fun > task.least - 1e-12


def test_cauchy_losses_against_differences_and_a_search():
    u = np.array([4.0, 4.5, 5.0, 12.0, 13.0])
    task, data = cauchy(0, targets=u)

    def F(x):
        return np.mean(np.log(((np.ravel(x)[0] - u) ** 2) / 2 + 1))

    starts = [minimize(F, [start]) for start in np.linspace(2, 15, 15)]
    best = min(starts, key=lambda end: end.fun)
    assert max(end.fun for end in starts) > best.fun + 0.05  # there is another local minimum
    assert task.optimum.item() == pytest.approx(best.x[0], abs=1e-5)
    assert data.clients == 5
    for x in (-2.0, 0.7, 3.0):
        task.x.data = torch.tensor([x], dtype=torch.float64)
        metrics = task.metrics(data.splits["train"])
        assert metrics["loss"].item() == pytest.approx(F(x), rel=1e-14)
        assert metrics["gap"].item() == pytest.approx(F(x) - best.fun, abs=1e-9)
        assert metrics["distance"].item() == pytest.approx(abs(x - best.x[0]), abs=1e-5)
        assert metrics["gradient"].item() == pytest.approx(approx_fprime([x], F)[0] ** 2, rel=1e-4, abs=1e-12)
        of_clients = [task.loss((data.splits["train"][0][part],)) for part in data.parts]
        slopes = [torch.autograd.grad(one, [task.x])[0].item() for one in of_clients]
        assert np.square(slopes).max() <= 0.5  # D
        assert np.mean(slopes) == pytest.approx(approx_fprime([x], F)[0], rel=1e-4, abs=1e-7)
    many = simulate(
        {"task": {"name": "cauchy", "targets": [-1.0] * 1000 + [2.0] * 1000}, "algorithm": "fedavg", "rounds": 1}
    )
    assert many.history["train/gradient"][0] == pytest.approx(((1 / 1.5 - 2 / 3) / 2) ** 2, abs=1e-15)
    with pytest.raises(ValueError, match=r"targets: shape \(2, 2\)"):
        cauchy(0, targets=np.ones((2, 2)))


@pytest.mark.parametrize("u", [[0, 50037, 1e5], [0, 0, 1.4, 1.4, 1e6, 1e6 + 2, 1e6 + 2, 1e6 + 2]])
def test_the_best_of_far_minima_is_found(u):
    """In the second case the values at the targets rank the minima wrongly."""

    def F(x):
        return np.mean(np.log((x - np.array(u)) ** 2 / 2 + 1))

    found = [minimize(F, [start], method="Nelder-Mead", tol=1e-9) for start in u]
    best = min(found, key=lambda end: end.fun)
    task, _ = cauchy(0, targets=u)
    assert task.optimum.item() == pytest.approx(best.x[0], abs=1e-3)
    assert task.least == pytest.approx(best.fun, rel=1e-12)


def test_the_best_minimum_beside_a_far_target():
    """By a search in steps of 1e-4."""
    u = np.array([4.1, 0.7, 4.1, 1.1, 5000.0])
    grid = np.linspace(0, 6, 60_001)
    best = grid[np.log1p(0.5 * (grid[:, None] - u) ** 2).mean(axis=1).argmin()]
    assert cauchy(0, targets=u)[0].optimum.item() == pytest.approx(best, abs=1e-4)
