"""Faster kernels against torch's own: values and gradients, alone and for clients with weights of their own."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from rollcall.benchmark.engines import kernels
from rollcall.benchmark.engines.kernels import FastKernels


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1}, {"stride": (1, 2), "padding": (2, 0), "bias": False}], ids=str
)
def test_patches_times_weights_is_the_convolution(options, monkeypatch):
    torch.manual_seed(1)
    layer = nn.Conv2d(4, 6, (3, 2), dtype=torch.float64, **options)
    images = torch.randn(3, 5, 4, 9, 8, dtype=torch.float64)
    weights = {name: torch.randn(3, *p.shape, dtype=torch.float64) for name, p in layer.named_parameters()}
    products = []

    def by_product(input, weight, bias=None, stride=1, padding=0, *rest):
        products.append(input.shape)
        return kernels.product_of_patches(input, weight, bias, kernels.pair(stride), kernels.pair(padding))

    monkeypatch.setattr(kernels, "FASTER", {torch.conv2d: by_product})

    def of_sample(weights, image):
        with FastKernels():
            return (functional_call(layer, weights, image[None]).view(1, -1) ** 3).sum()

    def of_client(weights, images):
        return vmap(of_sample, (None, 0))(weights, images).sum()

    slopes, image_slopes = vmap(grad(of_client, (0, 1)))(weights, images)
    assert products
    for i in range(3):
        own = {name: weight[i].clone().requires_grad_() for name, weight in weights.items()}
        x = images[i].clone().requires_grad_()
        torch.autograd.backward((functional_call(layer, own, x) ** 3).sum())
        torch.testing.assert_close(image_slopes[i], x.grad, rtol=1e-11, atol=1e-11)
        for name, parameter in own.items():
            torch.testing.assert_close(slopes[name][i], parameter.grad, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("device", "options", "products"),
    [
        ("meta", {"padding": 1}, 1),  # a device that is no CPU
        ("cpu", {"padding": 1}, 0),
        ("meta", {"padding": "same"}, 0),
        ("meta", {"groups": 2}, 0),
        ("meta", {"dilation": 2}, 0),
    ],
    ids=str,
)
def test_which_convolutions_are_products(device, options, products, monkeypatch):
    called, product = [], kernels.product_of_patches
    monkeypatch.setattr(kernels, "product_of_patches", lambda *arguments: called.append(1) or product(*arguments))
    layer, images = nn.Conv2d(4, 6, 3, device=device, **options), torch.randn(5, 4, 9, 8, device=device)
    with FastKernels():
        ours = layer(images)
    assert ours.shape == layer(images).shape
    assert len(called) == products


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

    values = [total(X, function) for function in (kernels.cross_entropy, functional.cross_entropy)]
    slopes = [grad(total)(X, function) for function in (kernels.cross_entropy, functional.cross_entropy)]
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
    assert torch.equal(kernels.cross_entropy(**arguments), functional.cross_entropy(**arguments))
