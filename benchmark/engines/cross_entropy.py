"""The cross entropy of few classes, for many clients at once on a CPU.

Over a last dimension of ten numbers, torch's kernel of log_softmax computes one exponential after another. The
log-sum-exp below uses kernels that compute several at once. A step of softmax regression takes three quarters of the
time (docs/speed.md).
"""

import torch
from torch import Tensor
from torch.nn import functional

from benchmark.engines.replaced import Replaced

FEW = 64
"""Classes. With more of them torch's own kernel is as fast."""


def cross_entropy_by_log_sum_exp() -> Replaced:
    """A context in which cross entropies are computed by log-sum-exp where that is faster."""
    return Replaced({functional.cross_entropy: cross_entropy})


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`torch.nn.functional.cross_entropy`, arguments as in torch.

    For logits x [b, c] and labels y [b] on a CPU it is computed as log(sum_c exp x_c) - x_y. Class weights, label
    smoothing, probabilities as targets, many classes and other shapes are left to torch.
    """
    plain = weight is None and size_average is None and reduce is None and label_smoothing == 0
    by_label = input.ndim == 2 and target.ndim == 1 and not target.is_floating_point()
    if not plain or not by_label or input.device.type != "cpu" or input.shape[1] > FEW:
        return functional.cross_entropy(
            input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing
        )
    labelled = target != ignore_index
    below = input - input.detach().amax(1, keepdim=True)  # exact for large logits, which torch.logsumexp is not
    losses = below.exp().sum(1).log() - below.gather(1, torch.where(labelled, target, 0)[:, None])[:, 0]
    if reduction == "none":
        return losses * labelled
    # Weights rather than a mean: they depend on the data alone, so that they are not computed in every step.
    weights = labelled.to(losses.dtype)
    if reduction == "sum":
        return (losses * weights).sum()
    number = weights.sum()
    # As in torch, the mean of no labelled sample is NaN, and its gradient 0.
    return (losses * (weights / number.clamp(min=1))).sum() + (number / number - 1)
