"""The networks of the FedPBC paper ([PBC] section VII), one for each data set; only the fully connected layers differ.

Weights are initialised Kaiming-normal and biases zero, except in the last layer, which has PyTorch's default.
"""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from tasks.models.base import Shape, need_shape


def fedpbc_svhn(shape: Shape, classes: int) -> nn.Module:
    """The FedPBC paper's SVHN network: two 3x3 convolutions of 32 channels, each with ReLU and 2x2 pooling, then
    2048-128-classes; 273,706 parameters for 3x32x32 inputs and ten classes.

    Raises:
        ValueError: inputs that are not [channels, 32, 32].
    """
    return _network("fedpbc_svhn", shape, classes, hidden=(128,))


def fedpbc_cifar10(shape: Shape, classes: int) -> nn.Module:
    """The FedPBC paper's CIFAR-10 network: two 3x3 convolutions of 32 channels, each with ReLU and 2x2 pooling, then
    2048-256-64-classes; 551,786 parameters for 3x32x32 inputs and ten classes.

    Raises:
        ValueError: inputs that are not [channels, 32, 32].
    """
    return _network("fedpbc_cifar10", shape, classes, hidden=(256, 64))


def fedpbc_cinic10(shape: Shape, classes: int, *, dropout: float = 0.2) -> nn.Module:
    """The FedPBC paper's CINIC-10 network: two 3x3 convolutions of 32 channels, each with ReLU and 2x2 pooling, then
    2048-512-256-classes with dropout before each; 1,193,130 parameters for 3x32x32 inputs and ten classes.

    Args:
        shape: of an input.
        classes: number of logits.
        dropout: share of units dropped in training, in [0, 1). With 0 there are no dropout layers.

    Raises:
        ValueError: inputs that are not [channels, 32, 32], or dropout out of range.
    """
    if not 0 <= dropout < 1:
        raise ValueError(f"model.dropout: {dropout} is not allowed; must be in [0, 1)")
    return _network("fedpbc_cinic10", shape, classes, hidden=(512, 256), dropout=dropout)


def _network(name: str, shape: Shape, classes: int, *, hidden: Sequence[int], dropout: float = 0.0) -> nn.Module:
    need_shape(name, shape, None, 32, 32)
    layers: list[nn.Module] = []
    for channels in (shape[0], 32):
        layers += [nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    for before, after in pairwise([2048, *hidden, classes]):
        layers += [*([nn.Dropout(dropout)] if dropout else []), nn.Linear(before, after), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    for layer in network[:-1]:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return network
