"""Properties of losses, against losses whose properties are known; the cross entropy against torch's."""

import pytest
import torch
from engine_rigs import Normalising, Standardising
from torch.func import grad
from torch.nn import functional

from rollcall.benchmark.engines import FlatTask
from rollcall.benchmark.engines import loss as module
from rollcall.benchmark.engines.loss import Loss, is_mean_of_samples
from rollcall.tasks import Task, digits


def test_what_a_loss_depends_on_is_found_out():
    task, data = digits(0, clients=2)
    samples = tuple(column[:8] for column in data.splits["train"])
    for wrap, expected in (
        (lambda task: task, True),
        (Task.double, True),
        (Standardising, False),
        (Normalising, False),
    ):
        names = FlatTask(wrap(task)).parameter_names
        assert is_mean_of_samples(Loss(wrap(task)), names, samples) == expected
        assert is_mean_of_samples(Loss(wrap(task)), names[:1], samples) == expected


X = torch.tensor([[3.0, -1.0, 0.5], [1e4, -1e4, 0.0], [0.0, 0.0, 0.0], [-2.0, 7.0, 1.0]], dtype=torch.float64)
Y = torch.tensor([2, 1, -100, 1])


@pytest.mark.parametrize(
    ("labels", "reduction"),
    [(Y, "mean"), (Y.clamp(min=0), "sum"), (Y, "none"), (torch.full((4,), -100), "mean")],
    ids=["some labelled", "all, sum", "each", "none labelled"],
)
def test_values_and_gradients_are_torchs(labels, reduction):
    """With large logits, equal logits, and samples without a label; `mean` of no label is NaN in both."""

    def total(logits, function):
        return function(logits, labels, reduction=reduction).sum()

    values = [total(X, function) for function in (module.cross_entropy, functional.cross_entropy)]
    slopes = [grad(total)(X, function) for function in (module.cross_entropy, functional.cross_entropy)]
    assert torch.allclose(*values, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert torch.allclose(*slopes, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert bool(values[0].isnan()) == (reduction == "mean" and bool((labels == -100).all()))


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
