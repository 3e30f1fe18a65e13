"""Convolutions as matrix products, for networks of many clients at once.

`torch.func.vmap` turns the convolutions of clients with different weights into one grouped convolution. On some devices
a batched matrix product of the unfolded images is faster (Chellapilla, Puri, Simard 2006).
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import unfold

from benchmark.engines.replaced import Replaced


def convolutions_by_matmul() -> Replaced:
    """A context in which two-dimensional convolutions are computed as matrix products where they can be."""
    return Replaced({torch.conv2d: conv2d})


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """`torch.conv2d` of images [n, c, h, w] with weights [o, c, kh, kw], by one product; arguments as in torch.

    Grouped convolutions and padding by name ('same') are left to torch.
    """
    if groups != 1 or isinstance(padding, str) or input.ndim != 4:
        return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
    strides, paddings, dilations = _pair(stride), _pair(padding), _pair(dilation)
    patches = unfold(input, weight.shape[2:], dilations, paddings, strides)  # [n, c kh kw, positions]
    # The weights come last, in two dimensions: so the samples of a client go into one product, also under vmap.
    products = patches.transpose(1, 2) @ weight.flatten(1).t()
    if bias is not None:
        products = products + bias
    height, width = (
        (size + 2 * pad - apart * (kernel - 1) - 1) // step + 1
        for size, pad, apart, kernel, step in zip(
            input.shape[2:], paddings, dilations, weight.shape[2:], strides, strict=True
        )
    )
    return products.transpose(1, 2).reshape(len(input), len(weight), height, width)


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    """A number for both dimensions, or one for each. nn.Conv2d and torch.conv2d take (n,) for both as well."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return (values[0], values[-1])
