"""The clustered data against the law of their generator, and the logistic gradient against NumPy."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch.nn.utils import parameters_to_vector

from rollcall.tasks import synthetic_clustered


def test_loss_accuracy_and_gradient_are_the_formulas():
    task, data = synthetic_clustered(0, clients=2, ridge=0.3)
    task = task.double()
    w, b = task.logits.weight.detach().numpy()[0], task.logits.bias.item()
    x, y = (column.numpy() for column in data.splits["train"])
    p = expit(x @ w + b)
    value = task.loss(data.splits["train"])
    assert value.item() == pytest.approx(-np.log(np.where(y, p, 1 - p)).mean() + 0.15 * (w @ w + b * b), rel=1e-12)
    slope = np.append((p - y) @ x / len(y) + 0.3 * w, (p - y).mean() + 0.3 * b)
    gradients = torch.autograd.grad(value, list(task.parameters()))
    assert parameters_to_vector(gradients).numpy() == pytest.approx(slope, abs=1e-12)
    assert task.metrics(data.splits["train"])["accuracy"].mean().item() == pytest.approx(((p > 0.5) == y).mean())


def test_half_of_the_clients_have_flipped_labels():
    """The logistic regression of many samples gives theta; half of the clients' labels agree less with it, as the law says."""
    _, data = synthetic_clustered(3, clients=8, train=20_000, test=150, flipped=0.2)
    assert data.parts.sizes.tolist() == [20_000] * 8
    assert [(data.owners["test"] == k).sum() for k in range(8)] == [150] * 8
    x, y = (column.numpy() for column in data.splits["train"])
    assert x.mean(axis=0) == pytest.approx(np.zeros(10), abs=0.01)
    assert np.cov(x.T) == pytest.approx(np.eye(10), abs=0.02)
    moments = np.array(
        [x[rows].T @ (y[rows] - 0.5) / len(rows) for rows in data.parts]
    )  # E[x (p - 1/2)] is along theta
    strength = np.linalg.norm(moments, axis=1)
    weak = strength < strength.max() * 0.8
    assert weak.sum() == 4
    # flipping a share of 0.2 multiplies p - 1/2 by 0.6
    assert strength[weak] / strength[~weak].mean() == pytest.approx(np.full(4, 0.6), abs=0.03)
    assert synthetic_clustered(4, clients=8)[1].splits["train"][0][0, 0] != x[0, 0]
