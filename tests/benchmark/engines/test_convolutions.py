"""Convolutions as matrix products against torch's own, with gradients, alone and for clients with different weights."""

import pytest
import torch
from engine_rigs import WRAPS, rigs
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.flop_counter import FlopCounterMode

from benchmark.engines.convolutions import convolutions_by_matmul

CASES = [
    {},
    {"stride": 2, "padding": 1},
    {"stride": (1, 2), "padding": (2, 0), "dilation": (2, 1), "bias": False},
    {"padding": "same"},
    {"groups": 2},
]


def layer(**options):
    torch.manual_seed(1)
    return nn.Conv2d(4, 6, (3, 2), dtype=torch.float64, **options)


@pytest.mark.parametrize("options", CASES)
def test_values_and_gradients_of_a_layer(options):
    convolution, x = layer(**options), torch.randn(5, 4, 9, 8, dtype=torch.float64, requires_grad=True)
    results = []
    for by_matmul in (False, True):
        y = run(convolution, x, by_matmul)
        slopes = torch.autograd.grad((y**3).sum(), [x, *convolution.parameters()])
        results.append([y, *slopes])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)


def run(convolution, x, by_matmul):
    if not by_matmul:
        return convolution(x)
    with convolutions_by_matmul():
        return convolution(x)


def test_clients_with_weights_of_their_own():
    convolution, x = layer(padding=1), torch.randn(3, 5, 4, 7, 6, dtype=torch.float64)
    weights = {name: torch.randn(3, *p.shape, dtype=torch.float64) for name, p in convolution.named_parameters()}

    def loss(parameters, batch):
        with convolutions_by_matmul():
            return (functional_call(convolution, parameters, (batch,)) ** 3).sum()

    slopes = vmap(grad(loss))(weights, x)
    for i in range(3):
        alone = {name: weight[i].clone().requires_grad_() for name, weight in weights.items()}
        value = (functional_call(convolution, alone, (x[i],)) ** 3).sum()
        for name, expected in zip(alone, torch.autograd.grad(value, list(alone.values())), strict=True):
            torch.testing.assert_close(slopes[name][i], expected, rtol=1e-11, atol=1e-11)


def test_no_convolution_of_torch_is_called():
    x = torch.randn(2, 4, 9, 8, dtype=torch.float64)
    convolution = layer()
    expected = convolution(x)
    with FlopCounterMode(display=False) as counter:
        ours = run(convolution, x, by_matmul=True)
    names = {str(operator) for operator in counter.get_flop_counts()["Global"]}
    assert names == {"aten.mm"} or names == {"aten.bmm"}
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrap", WRAPS)
def test_local_work(wrap):
    clients = torch.tensor([5, 4, 3])
    sequential, work, x = rigs(wrap=WRAPS[wrap], context=convolutions_by_matmul)
    ends = work.sgd(clients, x.expand(3, -1))
    torch.testing.assert_close(ends, sequential.sgd(clients, x.expand(3, -1)), rtol=1e-10, atol=1e-10)
