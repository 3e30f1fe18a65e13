"""The quadratic task against its own formulas, and the targets of FedPBC's Fig. 3 against their law."""

import numpy as np
import pytest
import torch

from rollcall.tasks import fedpbc_quadratic, quadratic

U, H = np.array([[1.0, -2.0], [3.0, 0.0], [-4.0, 8.0]]), np.array([0.5, 1.0, 2.0])


def test_loss_gradient_and_optimum():
    task, data = quadratic(0, targets=U, curvature=H)
    point = np.array([0.5, 2.0])
    task.x.data = torch.tensor(point)
    assert data.clients == 3
    for i in range(3):
        batch = tuple(column[data.parts[i]] for column in data.splits["train"])
        loss = task.loss(batch)
        assert loss.item() == pytest.approx(0.5 * H[i] * np.sum((point - U[i]) ** 2), rel=1e-15)
        (gradient,) = torch.autograd.grad(loss, [task.x])
        assert gradient.numpy() == pytest.approx(H[i] * (point - U[i]), rel=1e-15)
    optimum = np.array([(0.5 + 3 - 8) / 3.5, (-1 + 0 + 16) / 3.5])
    metrics = task.metrics(data.splits["train"])
    assert metrics["distance"].item() == pytest.approx(np.linalg.norm(point - optimum), rel=1e-14)
    # 1/2 + 9/7 and 2 - 30/7: of both signs, and their mean keeps it.
    assert metrics["bias"].item() == pytest.approx((25 / 14 - 16 / 7) / 2)
    assert metrics["loss"].item() == pytest.approx(
        np.mean([0.5 * H[i] * np.sum((point - U[i]) ** 2) for i in range(3)])
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"targets": np.zeros((2, 2, 2))}, "targets: shape"),
        ({"targets": np.array([[np.nan]])}, "targets: shape .* must be finite"),
        ({"targets": U, "curvature": np.ones(2)}, r"curvature: shape \(2,\).*\[3\]"),
        ({"targets": U, "curvature": np.array([1, 0.0, 1])}, "curvature: 0 is not allowed; must be greater than 0"),
    ],
)
def test_quadratic_refuses(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        quadratic(0, **options)


def targets(data):
    u, h = (column.numpy() for column in data.splits["train"])
    assert (h == 1).all()
    return u


def test_targets_follow_the_law():
    task, data = fedpbc_quadratic(3, clients=50, dimension=2000)
    u = targets(data)
    assert u.shape == (50, 2000)
    assert [rows.tolist() for rows in data.parts] == [[i] for i in range(50)]
    # 2000 draws of sd 0.1: means within 4 standard errors, 0.009; client 0 is the paper's i = 1.
    assert u.mean(axis=1) == pytest.approx(np.arange(1, 51) / 1000, abs=0.009)
    assert u.std(axis=1) == pytest.approx(np.full(50, 0.1), rel=0.08)
    assert abs(np.corrcoef(u)[np.triu_indices(50, 1)]).max() < 0.12  # clients are drawn apart
    assert task.optimum.numpy() == pytest.approx(u.mean(axis=0), rel=1e-12)


def test_without_spread_nothing_is_drawn():
    _, data = fedpbc_quadratic(0, clients=3, dimension=2, slope=0.5, spread=0.0)
    assert targets(data).tolist() == [[0.5, 0.5], [1.0, 1.0], [1.5, 1.5]]
    first, again, other = (targets(fedpbc_quadratic(seed)[1]) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).all()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"clients": 0}, "clients: 0 is not allowed; must be at least 1"),
        ({"dimension": 0}, "dimension: 0 is not allowed; must be at least 1"),
        ({"spread": -0.1}, "spread: -0.1 is not allowed; must be at least 0"),
    ],
)
def test_fedpbc_quadratic_refuses(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        fedpbc_quadratic(0, **options)
