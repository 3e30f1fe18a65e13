"""The interface of a model."""

from collections.abc import Callable
from typing import TypeAlias

from torch import nn

Shape: TypeAlias = tuple[int, ...]
Model: TypeAlias = Callable[[Shape, int], nn.Module]


def need_shape(name: str, shape: Shape, *allowed: int | None) -> None:
    """Refuse input shapes that a network does not support.

    Args:
        name: name of the network.
        shape: shape of an input.
        allowed: size of each dimension; None for any.

    Raises:
        ValueError: another shape.
    """
    if len(shape) != len(allowed) or any(
        size not in (None, actual) for actual, size in zip(shape, allowed, strict=True)
    ):
        wanted = ", ".join("channels" if size is None else str(size) for size in allowed)
        raise ValueError(f"model: {name} is not allowed for inputs {list(shape)}; must be [{wanted}]")
