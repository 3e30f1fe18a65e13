"""Functions of torch in other kernels, where those are faster for many clients at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

FEW = 64
"""Classes. With more of them torch's own kernel of the cross entropy is as fast."""


PLAIN = (("size_average", None), ("reduce", None), ("reduction", "mean"), ("label_smoothing", 0))
"""Arguments of the cross entropy at their defaults."""


class FastKernels(TorchFunctionMode):
    """A context in which cross entropies and convolutions are computed by the functions below.

    It also applies inside `torch.nn` modules and `torch.func.vmap`.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        faster: Callable[..., Any] = FASTER.get(function, function)
        return faster(*args, **(kwargs or {}))


def cross_entropy(input: Tensor, target: Tensor, *rest: Any, **options: Any) -> Tensor:
    """`torch.nn.functional.cross_entropy`, arguments as in torch.

    For logits x [b, c] and labels y [b] on a CPU the mean is computed as log(sum_c exp x_c) - x_y. Over a last
    dimension of ten numbers, torch's kernel of log_softmax computes one exponential after another; these kernels
    compute several at once. A step of softmax regression takes three quarters of the time (docs/speed.md). Class
    weights, label smoothing, sums, probabilities as targets, many classes and other shapes are left to torch.
    """
    plain = not rest and options.get("weight") is None and all(options.get(key, one) == one for key, one in PLAIN)
    by_label = input.ndim == 2 and target.ndim == 1 and not target.is_floating_point()
    if not plain or not by_label or input.device.type != "cpu" or input.shape[1] > FEW:
        return functional.cross_entropy(input, target, *rest, **options)
    labelled = target != options.get("ignore_index", -100)
    below = input - input.detach().amax(1, keepdim=True)  # exact for large logits, which torch.logsumexp is not
    losses = below.exp().sum(1).log() - below.gather(1, (target * labelled)[:, None]).squeeze(1)
    # Weights rather than a mean: they depend on the data alone, so that they are not computed in every step.
    weights = labelled.to(losses.dtype)
    number = weights.sum()
    if len(input) > 1:  # the weight of one sample is 1, or 0
        weights = weights / number.clamp(min=1)
    # As in torch, the mean of no labelled sample is NaN, and its gradient 0.
    return (losses * weights).sum() + (number / number - 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """`torch.conv2d`, arguments as in torch.

    On a GPU, images x [n, c, h, w] are computed as a product of their patches and the weights. Clients with weights of
    their own then take one batched product, whereas cuDNN launches kernels for each client. On a CPU it would be
    slower. Dilated and grouped convolutions, and padding by name, are left to torch.
    """
    unlike = groups != 1 or pair(dilation) != (1, 1) or input.ndim != 4
    if unlike or isinstance(padding, str) or input.device.type == "cpu":
        return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return product_of_patches(input, weight, bias, pair(stride), pair(padding))


def product_of_patches(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: tuple[int, int], padding: tuple[int, int]
) -> Tensor:
    """The convolution as one matrix product (Chellapilla, Puri and Simard 2006)."""
    (up, across), (down, right), kernel = padding, stride, weight.shape[2:]
    image = functional.pad(input.permute(0, 2, 3, 1), (0, 0, across, across, up, up))  # channels last: [n, h, w, c]
    height, width = (image.shape[1] - kernel[0]) // down + 1, (image.shape[2] - kernel[1]) // right + 1
    shifted = [
        image[:, i : i + down * (height - 1) + 1 : down, j : j + right * (width - 1) + 1 : right]
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    # The weights come last, in two dimensions: so the samples of a client go into one product, also under vmap.
    product = torch.cat(shifted, dim=3) @ weight.permute(2, 3, 1, 0).flatten(0, 2)
    if bias is not None:
        product = product + bias
    return product.permute(0, 3, 1, 2).contiguous()  # a model may use `view` on it


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """A number for both dimensions, or one for each."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values[0], values[-1]


FASTER: Mapping[Any, Callable[..., Tensor]] = {functional.cross_entropy: cross_entropy, torch.conv2d: conv2d}
