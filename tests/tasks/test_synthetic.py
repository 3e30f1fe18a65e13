"""Synthetic(gamma, delta) and the clustered data against the laws of their generators; gradients against NumPy."""

import numpy as np
import pytest
import torch
from keys import keyed
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from rollcall.tasks import leaf_synthetic, synthetic_clustered
from rollcall.tasks.leaf_synthetic import heterogeneity


def clients_of(data):
    x, y = (column.numpy() for column in data.splits["train"])
    return [(x[rows], y[rows]) for rows in data.parts]


def loss(W, b, x, y, ridge):
    hit = log_softmax(x @ W.T + b, axis=1)[np.arange(len(y)), y]
    return -hit.mean() + ridge / 2 * ((W**2).sum() + (b**2).sum())


def slope(W, b, x, y, ridge):
    away = (softmax(x @ W.T + b, axis=1) - np.eye(10)[y]) / len(y)
    return np.concatenate([(away.T @ x + ridge * W).ravel(), away.sum(axis=0) + ridge * b])


def test_loss_accuracy_and_gradient_are_the_formulas():
    task, data = leaf_synthetic(0, clients=3, ridge=0.7)
    task = task.to(torch.float64)
    W, b = (parameter.detach().numpy() for parameter in (task.logits.weight, task.logits.bias))
    for rows, (x, y) in zip(data.parts, clients_of(data), strict=True):
        batch = tuple(column[rows] for column in data.splits["train"])
        value = task.loss(batch)
        assert value.item() == pytest.approx(loss(W, b, x, y, 0.7), rel=1e-12)
        gradients = torch.autograd.grad(value, list(task.parameters()))
        assert parameters_to_vector(gradients).numpy() == pytest.approx(slope(W, b, x, y, 0.7), abs=1e-12)
        metrics = task.metrics(batch)
        assert metrics["loss"].mean().item() == pytest.approx(loss(W, b, x, y, 0.7), rel=1e-12)
        assert metrics["accuracy"].mean().item() == pytest.approx(((x @ W.T + b).argmax(axis=1) == y).mean())


def test_sizes_are_lognormal_above_fifty():
    _, data = leaf_synthetic(1, clients=1000, test=0.0)
    drawn = np.array([len(rows) for rows in data.parts]) - 50
    assert drawn.min() >= 0
    middle = np.quantile(drawn, [0.25, 0.5, 0.75])
    # Quartiles of e^N(4, 2^2): 4 and 4 -+ 0.6745 * 2 in logs; their standard error is about 0.09.
    assert np.log(middle + 0.5) == pytest.approx([4 - 1.349, 4, 4 + 1.349], abs=0.3)


@pytest.mark.parametrize(("gamma", "delta", "own"), [(0.0, 0.0, 0), (0.5, 0.25, 0), (0.5, 0.5, 0.25), (0.5, 0.25, 1)])
def test_the_shared_rule_and_its_deviations_by_hand(gamma, delta, own):
    """W_k = W + gamma U_k, b_k = b + gamma c_k and x ~ N(B_k, Sigma), from the keyed numbers; or a part of the way to own.

    With `own` rules gamma changes no label: its number is added to all logits.
    """
    labelling = {0: "shared", 1: "own"}.get(own, own)
    _, data = leaf_synthetic(11, gamma=gamma, delta=delta, clients=6, test=0.0, labelling=labelling)
    common = keyed(11, "leaf rule")
    W, b = common.normal(size=(60, 10)), common.normal(size=10)
    for k, (x, y) in enumerate(clients_of(data)):
        draw = keyed(11, "leaf client", k)
        _, B = draw.normal(), draw.normal()
        U, c = draw.normal(size=(60, 10)), draw.normal(size=10)
        v = own * draw.normal(size=60) if own else np.zeros(60)
        noise = draw.normal(size=x.shape)
        logits = np.empty((len(x), 10))
        for j in range(60):
            assert x[:, j] == pytest.approx(delta * B + v[j] + (j + 1) ** -0.6 * noise[:, j])
        for label in range(10):
            by_common = x @ (W[:, label] + gamma * U[:, label]) + b[label] + gamma * c[label]
            by_own = x @ U[:, label] + c[label]
            logits[:, label] = own * by_own + (1 - own) * by_common
        assert np.array_equal(y, logits.argmax(axis=1))
        assert data.histogram[k].tolist() == [(y == c).sum() for c in range(10)]
        assert data.classes[k] == pytest.approx([(y == c).mean() for c in range(10)])


def test_heterogeneity_at_the_minimisers_of_scipy():
    """Gamma = max_k F_k(x*) - F_k*, x* of equal weights; and of weights 9 and 1."""
    _, data = leaf_synthetic(4, gamma=0.5, delta=0.5, clients=2, ridge=0.1)
    clients = [(x.astype(float), y) for x, y in clients_of(data)]

    def split(flat):
        return flat[:600].reshape(10, 60), flat[600:]

    def least(weights):
        """The losses of both clients at the minimiser of their weighted sum."""

        def total(flat):
            terms = [
                (w * loss(*split(flat), x, y, 0.1), w * slope(*split(flat), x, y, 0.1))
                for w, (x, y) in zip(weights, clients, strict=True)
            ]
            return sum(value for value, _ in terms), sum(gradient for _, gradient in terms)

        found = minimize(total, np.zeros(610), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-7})
        return np.array([loss(*split(found.x), x, y, 0.1) for x, y in clients])

    alone = np.array([least([1, 0])[0], least([0, 1])[1]])
    expected = [(least(weights) - alone).max() for weights in ([0.5, 0.5], [0.9, 0.1])]
    found = heterogeneity(4, gamma=0.5, delta=0.5, clients=2, ridge=0.1)
    assert found[["gamma", "gamma_biased"]].to_numpy()[0] == pytest.approx(expected, rel=1e-4)


def test_every_client_holds_out_its_share():
    _, whole = leaf_synthetic(6, clients=20, test=0.0)
    _, data = leaf_synthetic(6, clients=20, test=0.1, validation=0.2)
    assert set(whole.splits) == {"train"}
    assert set(data.splits) == {"train", "validation", "test"}
    held = {"validation": 0.2, "test": 0.1}
    start = dict.fromkeys(held, 0)
    for mine, rows in zip(whole.parts, data.parts, strict=True):
        everything = whole.splits["train"][0][mine]
        pieces = [data.splits["train"][0][rows]]
        for split, share in held.items():
            size = round(share * len(mine))
            pieces.append(data.splits[split][0][start[split] : start[split] + size])
            start[split] += size
        assert torch.equal(torch.cat(pieces), everything)
    assert {split: len(data.splits[split][0]) for split in held} == start


@pytest.mark.parametrize("seed", [1, 3])  # seed 1 has a client with more than two classes
def test_the_least_loss_of_a_client_against_plain_descent(seed):
    task, data = leaf_synthetic(seed, clients=3)
    found = task.least_losses(data)
    for rows, value in zip(data.parts, found, strict=True):
        x, y = (column[rows] for column in data.splits["train"])
        x, classes = x.double(), torch.unique(y)
        if len(classes) == 1:
            assert value == 0
            continue
        y = torch.searchsorted(classes, y)
        W = torch.zeros(len(classes), 60, dtype=torch.float64, requires_grad=True)
        b = torch.zeros(len(classes), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([W, b], max_iter=2000, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

        def objective(x=x, y=y, W=W, b=b):
            W.grad = b.grad = None
            total = cross_entropy(x @ W.T + b, y, reduction="sum") + 0.5 * W.square().sum()
            total.backward()
            return total

        optimizer.step(objective)
        with torch.no_grad():
            expected = cross_entropy(x @ W.T + b, y).item()
        assert value == pytest.approx(expected, rel=1e-2)  # scikit-learn stops at a tolerance of 1e-4


def test_the_clustered_loss_accuracy_and_gradient_are_the_formulas():
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
    metrics = task.metrics(data.splits["train"])
    assert metrics["accuracy"].mean().item() == pytest.approx(((p > 0.5) == y).mean())
    assert metrics["loss"].mean().item() == pytest.approx(value.item(), rel=1e-12)


def test_half_of_the_clients_have_flipped_labels():
    """The logistic regression of many samples gives theta; half of the clients' labels agree less with it, as the law says."""
    _, data = synthetic_clustered(3, clients=8, train=20_000, test=150, flipped=0.2)
    assert data.parts.sizes.tolist() == [20_000] * 8
    assert [(data.owners["test"] == k).sum() for k in range(8)] == [150] * 8
    x, y = (column.numpy() for column in data.splits["train"])
    assert x.mean(axis=0) == pytest.approx(np.zeros(10), abs=0.01)
    assert np.cov(x.T) == pytest.approx(np.eye(10), abs=0.02)
    # E[x (p - 1/2)] is along theta
    strength = np.array([np.linalg.norm(x[rows].T @ (y[rows] - 0.5) / len(rows)) for rows in data.parts])
    weak = strength < strength.max() * 0.8
    assert weak.sum() == 4
    # flipping a share of 0.2 multiplies p - 1/2 by 0.6
    assert strength[weak] / strength[~weak].mean() == pytest.approx(np.full(4, 0.6), abs=0.03)
    assert synthetic_clustered(4, clients=8)[1].splits["train"][0][0, 0] != x[0, 0]
