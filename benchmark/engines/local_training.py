"""A client's local training in a round: how many steps, and by which optimizer.

The engines compute SGD themselves. Other steps are those of Adam, of AdamW or of a torch optimizer from outside.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

ClientOptimizer: TypeAlias = Callable[[list[Tensor], float], torch.optim.Optimizer]
"""Makes the optimizer of one client in one round from the client's parameters and learning rate."""

MARGIN = 1e-6
"""Added to the norm of a gradient that is clipped, as in `torch.nn.utils.clip_grad_norm_`."""


@dataclass(frozen=True)
class LocalTraining:
    """SGD as in torch: v = momentum * v + g + weight_decay * x, then x -= lr * v; or another optimizer.

    Attributes:
        steps: K, or K_i of each client, [m].
        momentum: of SGD; 0 for none.
        weight_decay: of SGD; 0 for none.
        keep_momentum: whether a client keeps its v from round to round; otherwise every round starts with v = 0.
        optimizer: takes the steps instead of SGD, with a new state in every round; None for SGD.
        clip_norm: a larger norm of a client's minibatch gradient is scaled down to this before a step; None for none.
    """

    steps: int | Int[np.ndarray, "m"]
    momentum: float = 0.0
    weight_decay: float = 0.0
    keep_momentum: bool = False
    optimizer: ClientOptimizer | None = None
    clip_norm: float | None = None

    def of(self, clients: Sequence[int]) -> list[int]:
        """K_i of these clients."""
        if isinstance(self.steps, int):
            return [self.steps] * len(clients)
        steps: list[int] = self.steps[np.asarray(clients, dtype=np.int64)].tolist()
        return steps


def sgd(
    params: Iterable[Tensor], lr: float, *, momentum: float = 0.0, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """SGD as in torch, which the engines compute themselves; at the server, with momentum, it is FedAvgM.

    Args:
        params: the model.
        lr: eta, or eta_g.
        momentum: of the steps.
        weight_decay: w; adds w x to the gradient.
    """
    return torch.optim.SGD(params, lr=lr, momentum=momentum, weight_decay=weight_decay)


def adam(
    params: Iterable[Tensor],
    lr: float,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """Adam as in torch; its moments start at 0 in every round.

    Args:
        params: the client's model.
        lr: eta.
        betas: decay rates of the two moments.
        eps: added to the denominator.
        weight_decay: w; adds w x to the gradient.
    """
    return torch.optim.Adam(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


def adamw(
    params: Iterable[Tensor],
    lr: float,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """AdamW as in torch; its moments start at 0 in every round.

    Args:
        params: the client's model.
        lr: eta.
        betas: decay rates of the two moments.
        eps: added to the denominator.
        weight_decay: w; multiplies x by 1 - lr w before each step. Torch's default is 0.01.
    """
    return torch.optim.AdamW(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"sgd": sgd, "adam": adam, "adamw": adamw}
"""The optimizers of local steps. Each takes the client's model and eta first; keyword arguments are options."""


def is_adam(optimizer: ClientOptimizer | None) -> bool:
    """Whether it is `adam` or `adamw` with options, whose steps `AdamRows` takes for many clients."""
    return isinstance(optimizer, partial) and optimizer.func in (adam, adamw)


class AdamRows:
    """Adam for n clients at once, one row for each as in the models `y`; by `adam` or `adamw` with options."""

    def __init__(self, optimizer: "partial[torch.optim.Optimizer]", y: Float[Tensor, "n d"]) -> None:
        self.decoupled = optimizer.func is adamw
        options: dict[str, Any] = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0} | optimizer.keywords
        self.betas: tuple[float, float] = options["betas"]
        self.eps: float = options["eps"]
        self.decay: float = options["weight_decay"]
        self.m, self.v = torch.zeros_like(y), torch.zeros_like(y)
        self.k = 0

    def step(self, y: Float[Tensor, "a d"], gradients: Float[Tensor, "a d"], lrs: Float[Tensor, "a 1"]) -> None:
        """One step of the first a clients; `y` and `gradients` are changed in place. Call it once for each step."""
        self.k += 1
        (beta_1, beta_2), decay = self.betas, self.decay
        m, v = self.m[: len(y)], self.v[: len(y)]
        if decay and self.decoupled:
            y.mul_(1 - lrs * decay)
        elif decay:
            gradients.add_(y, alpha=decay)
        m.lerp_(gradients, 1 - beta_1)
        v.mul_(beta_2).addcmul_(gradients, gradients, value=1 - beta_2)
        denominator = (v.sqrt() / (1 - beta_2**self.k) ** 0.5).add_(self.eps)
        y.addcdiv_(m * lrs, denominator, value=-1 / (1 - beta_1**self.k))


def clip_gradient(gradient: Sequence[Tensor], norm: float) -> None:
    """Scale the pieces of one client's gradient, in place, so that its norm is at most `norm`."""
    length = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(piece) for piece in gradient]))
    torch._foreach_mul_(list(gradient), (norm / (length + MARGIN)).clamp(max=1))


def clip_rows(gradients: Sequence[Tensor], norm: float) -> list[Tensor]:
    """The gradients of n clients, in pieces [n, ...], scaled so that the norm of each client's is at most `norm`."""
    squares = [piece.flatten(1).square().sum(dim=1) for piece in gradients]
    factors = (norm / (torch.stack(squares).sum(dim=0).sqrt() + MARGIN)).clamp(max=1)
    return [piece * factors.view(-1, *(1,) * (piece.ndim - 1)) for piece in gradients]
