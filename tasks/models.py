"""Networks. A model takes the shape of an input and the number of classes, and returns a network that gives logits.

Keyword arguments are the options of an experiment file. The networks are those of [PBC] section VII, [Sun] section 6,
[FOCUS] Fig. 9, [CAF] and [HAR] Fig. 1. Initialisation is PyTorch's default unless stated otherwise. Networks of papers
raise ValueError for inputs of another shape. Numbers of parameters are those for ten classes and inputs of 3x32x32 or
1x28x28.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import TypeAlias

from torch import Tensor, nn
from torch.nn.functional import batch_norm

from rollcall.tasks.base import need_least

Shape: TypeAlias = tuple[int, ...]
Model: TypeAlias = Callable[[Shape, int], nn.Module]


def linear(shape: Shape, classes: int) -> nn.Module:
    """Softmax regression: one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


def mlp(shape: Shape, classes: int, *, hidden: Sequence[int] = (64,)) -> nn.Module:
    """Fully connected layers with ReLU.

    Args:
        hidden: number of units of each hidden layer, at least 1.
    """
    for units in hidden:
        need_least(1, hidden=units)
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise([prod(shape), *hidden]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear([prod(shape), *hidden][-1], classes))


def fedpbc_svhn(shape: Shape, classes: int) -> nn.Module:
    """The SVHN network of FedPBC's code: two 3x3 convolutions of 32 channels, each with ReLU and 2x2 pooling, then
    2048-128-classes; 273,706 parameters.
    """
    return _fedpbc("fedpbc_svhn", shape, classes, hidden=(128,))


def fedpbc_cifar10(shape: Shape, classes: int) -> nn.Module:
    """The CIFAR-10 network of FedPBC's code: two 3x3 convolutions of 32 channels, each with ReLU and 2x2 pooling, then
    2048-256-64-classes; 551,786 parameters.
    """
    return _fedpbc("fedpbc_cifar10", shape, classes, hidden=(256, 64))


def fedpbc_cinic10(shape: Shape, classes: int) -> nn.Module:
    """The CINIC-10 network of FedPBC's code: two 3x3 convolutions of 32 channels, each with ReLU and 2x2 pooling, then
    2048-512-256-classes with dropout of 0.2 before each; 1,193,130 parameters.
    """
    return _fedpbc("fedpbc_cinic10", shape, classes, hidden=(512, 256), dropout=0.2)


def _fedpbc(name: str, shape: Shape, classes: int, *, hidden: Sequence[int], dropout: float = 0.0) -> nn.Module:
    """The networks of FedPBC's released code; only the fully connected layers differ. The paper prints none.

    Weights are initialised Kaiming-normal and biases zero, except in the last layer, which has PyTorch's default.
    """
    layers = _convolutions(name, shape, 32, 32)
    for before, after in pairwise([2048, *hidden, classes]):
        layers += [*([nn.Dropout(dropout)] if dropout else []), nn.Linear(before, after), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    for layer in network[:-1]:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return network


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm that accepts a minibatch of one sample.

    Such a minibatch has no variance. It is normalised with the running statistics, which do not change. PyTorch refuses
    it, but a client's epoch may end with one.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) == 1:
            return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


def sun_mnist(shape: Shape, classes: int) -> nn.Module:
    """Debiased FedAvg's MNIST network, three fully connected layers: 784-1568-392-classes (from the authors' code),
    BatchNorm and ReLU between; 1,853,778 parameters.
    """
    _need_shape("sun_mnist", shape, 1, 28, 28)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 1568),
        BatchNorm(1568),
        nn.ReLU(),
        nn.Linear(1568, 392),
        BatchNorm(392),
        nn.ReLU(),
        nn.Linear(392, classes),
    )


def sun_cifar10(shape: Shape, classes: int) -> nn.Module:
    """Debiased FedAvg's CIFAR-10 network, a "CNN with three convolution layers" in the paper.

    The paper says no more; the rest is our choice: 3x3 convolutions of 32, 64 and 64 channels with padding 1, each with
    ReLU and 2x2 pooling, then 1024-64-classes; 122,570 parameters.
    """
    layers = _convolutions("sun_cifar10", shape, 32, 64, 64)
    return nn.Sequential(*layers, nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, classes))


def focus_cifar10(shape: Shape, classes: int) -> nn.Module:
    """The CIFAR-10 network of FOCUS's code: 3x3 convolutions of 16, 32 and 64 channels with padding 1, each with
    ReLU and 2x2 pooling, then 1024-500-classes; 541,094 parameters.
    """
    layers = _convolutions("focus_cifar10", shape, 16, 32, 64)
    return nn.Sequential(*layers, nn.Linear(1024, 500), nn.ReLU(), nn.Linear(500, classes))


def ca_fed_cifar10(shape: Shape, classes: int) -> nn.Module:
    """CA-Fed's CIFAR-10 network, LEAF's for larger images: 5x5 convolutions of 32 and 64 channels without padding, each
    with ReLU and 2x2 pooling, then 1600-2048-classes; 3,353,034 parameters.
    """
    layers = _convolutions("ca_fed_cifar10", shape, 32, 64, kernel=5, padding=0)
    return nn.Sequential(*layers, nn.Linear(1600, 2048), nn.ReLU(), nn.Linear(2048, classes))


def harrak_mnist(shape: Shape, classes: int) -> nn.Module:
    """Harrak's MNIST network, 784-4-classes with tanh between; 3,155 parameters for the digits {0, 1, 2}."""
    _need_shape("harrak_mnist", shape, 1, 28, 28)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 4), nn.Tanh(), nn.Linear(4, classes))


def _convolutions(name: str, shape: Shape, *channels: int, kernel: int = 3, padding: int = 1) -> list[nn.Module]:
    """Convolutions for inputs [channels, 32, 32], each with ReLU and 2x2 pooling, then flattened."""
    _need_shape(name, shape, None, 32, 32)
    layers: list[nn.Module] = []
    for before, after in pairwise([shape[0], *channels]):
        layers += [nn.Conv2d(before, after, kernel, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]
    return [*layers, nn.Flatten()]


def _need_shape(name: str, shape: Shape, *allowed: int | None) -> None:
    """Raise unless the shape of an input has these sizes; None allows any size."""
    if len(shape) != len(allowed) or any(
        size not in (None, actual) for actual, size in zip(shape, allowed, strict=True)
    ):
        wanted = ", ".join("channels" if size is None else str(size) for size in allowed)
        raise ValueError(f"model: {name} is not allowed for inputs {list(shape)}; must be [{wanted}]")


MODELS: dict[str, Callable[..., nn.Module]] = {
    "linear": linear,
    "mlp": mlp,
    "fedpbc_svhn": fedpbc_svhn,
    "fedpbc_cifar10": fedpbc_cifar10,
    "fedpbc_cinic10": fedpbc_cinic10,
    "sun_mnist": sun_mnist,
    "sun_cifar10": sun_cifar10,
    "focus_cifar10": focus_cifar10,
    "ca_fed_cifar10": ca_fed_cifar10,
    "harrak_mnist": harrak_mnist,
}
