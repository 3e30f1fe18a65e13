"""Basic networks that are not from a paper."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from torch import nn

from tasks.models.base import Shape


def linear(shape: Shape, classes: int) -> nn.Module:
    """Softmax regression: one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


def mlp(shape: Shape, classes: int, *, hidden: Sequence[int] = (64,)) -> nn.Module:
    """Fully connected layers with ReLU.

    Args:
        shape: shape of an input.
        classes: number of logits.
        hidden: number of units of each hidden layer.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise([prod(shape), *hidden]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear([prod(shape), *hidden][-1], classes))
