"""The cross entropy by log-sum-exp against torch's, alone and in the vectorised engine."""

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.nn import functional

from rollcall import simulate
from rollcall.benchmark.engines import loss as module

X = torch.tensor([[3.0, -1.0, 0.5], [1e4, -1e4, 0.0], [0.0, 0.0, 0.0], [-2.0, 7.0, 1.0]], dtype=torch.float64)
Y = torch.tensor([2, 1, -100, 1])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("labels", [Y, Y.clamp(min=0), torch.full((4,), -100)], ids=["some", "all", "none labelled"])
def test_values_and_gradients_are_torchs(labels, reduction):
    """With large logits, equal logits, and samples without a label; `mean` of no label is NaN in both."""

    def total(logits, function):
        return function(logits, labels, reduction=reduction).sum()

    values = [total(X, function) for function in (module.cross_entropy, functional.cross_entropy)]
    slopes = [grad(total)(X, function) for function in (module.cross_entropy, functional.cross_entropy)]
    assert torch.allclose(*values, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert torch.allclose(*slopes, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert bool(values[0].isnan()) == (reduction == "mean" and bool((labels == -100).all()))


def test_large_logits_lose_no_digits():
    logits, labels = torch.tensor([[1000.0, 998.0, 997.0]]), torch.tensor([0])
    for function in (lambda x: module.cross_entropy(x, labels), grad(lambda x: module.cross_entropy(x, labels))):
        exact = function(logits.double())
        assert torch.allclose(function(logits).double(), exact, rtol=3e-7, atol=0)


def test_modules_and_clients_are_computed_by_it(monkeypatch):
    calls = []
    by_log_sum_exp = module.cross_entropy
    monkeypatch.setattr(module, "cross_entropy", lambda *args, **more: calls.append(1) or by_log_sum_exp(*args, **more))
    labels = Y.clamp(min=0)
    with module.FastCrossEntropy():
        one = nn.CrossEntropyLoss()(X, labels)
        many = vmap(nn.CrossEntropyLoss())(torch.stack([X, 2 * X]), torch.stack([labels, labels]))
    assert len(calls) == 2
    assert many[0] == pytest.approx(float(one)) == pytest.approx(float(functional.cross_entropy(X, labels)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"weight": torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)},
        {"label_smoothing": 0.1},
        {"target": torch.full((4, 3), 1 / 3, dtype=torch.float64)},
        {"input": X.T[None], "target": Y.clamp(min=0)[None] % 3},
    ],
    ids=str,
)
def test_everything_else_is_left_to_torch(arguments):
    arguments = {"input": X, "target": Y.clamp(min=0)} | arguments
    assert torch.equal(module.cross_entropy(**arguments), functional.cross_entropy(**arguments))


def test_engines_agree():
    """In float64 to 1e-10, with clients of different sizes, whose minibatches are padded."""
    trial = {
        "task": {"name": "digits", "clients": 5, "model": "linear", "partition": {"name": "dirichlet", "alpha": 0.3}},
        "participation": {"name": "bernoulli", "probability": 0.6},
        "algorithm": "mifa",
        "local": {"steps": 3, "lr": 0.3, "batch_size": 400},
        "rounds": 8,
    }
    models = [
        simulate(trial | {"numerics": {"dtype": "float64", "engine": engine}}).model
        for engine in ("sequential", "vectorised")
    ]
    assert abs(models[0] - models[1]).max() < 1e-10
    assert abs(models[0]).max() > 0.01
