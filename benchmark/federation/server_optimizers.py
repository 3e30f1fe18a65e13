"""The suite's server optimizer. Any other is a class like those of torch.optim, such as `torch.optim:Adam`."""

from collections.abc import Callable, Iterable

import torch
from torch import nn


def sgd(
    params: Iterable[nn.Parameter], lr: float, *, momentum: float = 0.0, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """SGD of the server's model with rate eta_g; with momentum it is FedAvgM; weight decay w adds w x."""
    return torch.optim.SGD(params, lr=lr, momentum=momentum, weight_decay=weight_decay)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"sgd": sgd}
