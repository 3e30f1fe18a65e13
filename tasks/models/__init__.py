"""Networks. A model takes the shape of an input and the number of classes, and returns a network that gives logits.

Keyword arguments are the options of an experiment file.
"""

from collections.abc import Callable

from torch import nn

from tasks.models.base import Model, Shape
from tasks.models.basic import linear, mlp
from tasks.models.ca_fed import ca_fed_cifar10
from tasks.models.fedpbc import fedpbc_cifar10, fedpbc_cinic10, fedpbc_svhn
from tasks.models.focus import focus_cifar10
from tasks.models.harrak import harrak_mnist
from tasks.models.sun import sun_cifar10, sun_mnist

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

__all__ = [
    "MODELS",
    "Model",
    "Shape",
    "ca_fed_cifar10",
    "fedpbc_cifar10",
    "fedpbc_cinic10",
    "fedpbc_svhn",
    "focus_cifar10",
    "harrak_mnist",
    "linear",
    "mlp",
    "sun_cifar10",
    "sun_mnist",
]
