"""The ridge penalty of a loss."""

import torch
from torch import Tensor, nn


def half_squares(model: nn.Module, ridge: float) -> Tensor | float:
    """ridge/2 ||x||^2 over all parameters x, including biases; 0.0 if ridge is 0."""
    if not ridge:
        return 0.0
    return 0.5 * ridge * torch.stack([parameter.square().sum() for parameter in model.parameters()]).sum()
