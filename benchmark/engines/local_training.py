"""A client's local training in a round: how many steps, and by which optimizer.

The engines compute SGD themselves. Other steps are those of Adam or AdamW.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

ClientOptimizer: TypeAlias = partial[torch.optim.Optimizer]
"""One of `OPTIMIZERS` with its options: makes the optimizer of a client in a round from its parameters and rate."""

MARGIN = 1e-6
"""Added to the norm of a gradient that is clipped, as in `torch.nn.utils.clip_grad_norm_`."""


@dataclass(frozen=True)
class LocalTraining:
    """SGD as in torch: v = momentum * v + g + weight_decay * x, then x -= lr * v; or Adam or AdamW.

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


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
"""The optimizers of local steps besides SGD. Each takes the client's model and eta first; the rest are options."""


class AdamRows:
    """Adam for n clients at once, one row for each as in the models `y`."""

    def __init__(self, optimizer: ClientOptimizer, y: Float[Tensor, "n d"]) -> None:
        self.decoupled = optimizer.func is torch.optim.AdamW
        self.betas: tuple[float, float] = optimizer.keywords["betas"]
        self.eps: float = optimizer.keywords["eps"]
        self.decay: float = optimizer.keywords["weight_decay"]
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
