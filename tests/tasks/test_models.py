"""Networks: layers from the papers, parameters counted by hand, initialisation by its moments."""

import pytest
import torch
from torch import nn

from rollcall.tasks import MODELS
from rollcall.tasks.models import fedpbc_cifar10, fedpbc_cinic10, fedpbc_svhn

BLOCK = ["Conv2d", "ReLU", "MaxPool2d"]
DENSE = ["Linear", "ReLU"]
DROPPED = ["Dropout", "Linear", "ReLU"]
# Layers, and weights by layer: inputs x outputs (x 9 or 25 for convolutions) + biases.
PAPERS = {
    "fedpbc_svhn": ([*BLOCK, *BLOCK, "Flatten", *DENSE, "Linear"], [3 * 32 * 9 + 32, 32 * 32 * 9 + 32, 2048 * 128 + 128, 128 * 10 + 10]),
    "fedpbc_cifar10": ([*BLOCK, *BLOCK, "Flatten", *DENSE, *DENSE, "Linear"], [3 * 32 * 9 + 32, 32 * 32 * 9 + 32, 2048 * 256 + 256, 256 * 64 + 64, 64 * 10 + 10]),
    "fedpbc_cinic10": ([*BLOCK, *BLOCK, "Flatten", *DROPPED, *DROPPED, "Dropout", "Linear"], [3 * 32 * 9 + 32, 32 * 32 * 9 + 32, 2048 * 512 + 512, 512 * 256 + 256, 256 * 10 + 10]),
    "sun_mnist": (["Flatten", "Linear", "BatchNorm", "ReLU", "Linear", "BatchNorm", "ReLU", "Linear"], [784 * 1568 + 1568, 2 * 1568, 1568 * 392 + 392, 2 * 392, 392 * 10 + 10]),
    "sun_cifar10": ([*BLOCK, *BLOCK, *BLOCK, "Flatten", *DENSE, "Linear"], [3 * 32 * 9 + 32, 32 * 64 * 9 + 64, 64 * 64 * 9 + 64, 1024 * 64 + 64, 64 * 10 + 10]),
    "focus_cifar10": ([*BLOCK, *BLOCK, *BLOCK, "Flatten", *DENSE, "Linear"], [3 * 16 * 9 + 16, 16 * 32 * 9 + 32, 32 * 64 * 9 + 64, 1024 * 500 + 500, 500 * 10 + 10]),
    "ca_fed_cifar10": ([*BLOCK, *BLOCK, "Flatten", *DENSE, "Linear"], [3 * 32 * 25 + 32, 32 * 64 * 25 + 64, 1600 * 2048 + 2048, 2048 * 10 + 10]),
    "harrak_mnist": (["Flatten", "Linear", "Tanh", "Linear"], [784 * 4 + 4, 4 * 3 + 3]),
}  # fmt: skip


def shape(name):
    return (1, 28, 28) if name.endswith("mnist") else (3, 32, 32)


def build(name):
    return MODELS[name](shape(name), 3 if name == "harrak_mnist" else 10)


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", PAPERS)
def test_layers_and_parameters_of_the_papers_networks(name):
    kinds, parameters = PAPERS[name]
    network = build(name)
    assert [type(layer).__name__ for layer in network] == kinds
    assert [count(layer) for layer in network if count(layer)] == parameters
    assert [layer.p for layer in network if isinstance(layer, nn.Dropout)] == [0.2] * kinds.count("Dropout")
    assert network(torch.zeros(2, *shape(name))).shape == (2, 3 if name == "harrak_mnist" else 10)
    # The numbers that documentation tells.
    assert f"{sum(parameters):,} parameters" in MODELS[name].__doc__


@pytest.mark.parametrize("hidden", [(0,), (8, -1)])
def test_a_layer_without_units_is_refused(hidden):
    with pytest.raises(ValueError, match=f"^hidden: {hidden[-1]} is not allowed; must be at least 1"):
        MODELS["mlp"]((4,), 2, hidden=hidden)


def test_inputs_that_a_network_is_not_made_for_are_refused():
    for name in PAPERS:
        for wrong in ((3, 8, 8), (784,), (1, 32, 28)):
            with pytest.raises(ValueError, match=rf"^model: {name} is not allowed for inputs \[{wrong[0]}.*must be \["):
                MODELS[name](wrong, 10)


@pytest.mark.parametrize("model", [fedpbc_svhn, fedpbc_cifar10, fedpbc_cinic10])
def test_fedpbcs_networks_start_kaiming_normal_but_for_the_last_layer(model):
    torch.manual_seed(0)
    layers = [layer for layer in model((3, 32, 32), 10) if hasattr(layer, "weight")]
    for layer in layers[:-1]:
        fan_in = layer.weight[0].numel()
        n = layer.weight.numel()
        assert layer.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=4 / (2 * n) ** 0.5)
        assert not layer.bias.any()
        # Normal, not uniform: a uniform variable of this spread ends at 1.73 deviations.
        assert layer.weight.abs().max() > 2.5 * layer.weight.std()
    bound = layers[-1].weight[0].numel() ** -0.5
    assert 0.9 * bound < layers[-1].weight.abs().max() <= bound  # PyTorch's default is uniform with this bound
    assert layers[-1].bias.any()


def test_batchnorm_lets_a_single_sample_pass():
    network = build("sun_mnist")
    layer, ours = nn.BatchNorm1d(1568), network[2]
    x = torch.randn(8, 1568) * 3 + 1
    assert torch.equal(layer(x), ours(x))
    assert torch.equal(layer.running_var, ours.running_var)
    # One sample: with the statistics so far, which stay.
    expected = (x[:1] - layer.running_mean) / (layer.running_var + 1e-5).sqrt()
    assert torch.allclose(ours(x[:1]), expected, atol=1e-6)
    assert torch.equal(layer.running_mean, ours.running_mean)
    layer.eval(), ours.eval()
    assert torch.equal(layer(x), ours(x))
