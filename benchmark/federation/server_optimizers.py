"""The torch optimizers for the server's model."""

from collections.abc import Callable, Iterable

import torch
from torch import nn


def sgd(
    params: Iterable[nn.Parameter], lr: float, *, momentum: float = 0.0, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """SGD; with momentum it is FedAvgM.

    Args:
        momentum: of the steps.
        weight_decay: w; adds w x to the gradient.
    """
    return torch.optim.SGD(params, lr=lr, momentum=momentum, weight_decay=weight_decay)


class Yogi(torch.optim.Optimizer):
    """Yogi as a server optimizer (Reddi et al., *Adaptive Federated Optimization*, ICLR 2021, Algorithm 2).

        m  = beta_1 m + (1 - beta_1) g
        v -= (1 - beta_2) g^2 sign(v - g^2)     v = eps^2 at first
        x -= lr m / (sqrt(v) + eps)             no bias correction

    Args:
        betas: beta_1, beta_2.
        eps: tau of the paper, the degree of adaptivity.
    """

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.99), eps: float = 1e-3
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None if closure is None else closure()
        for group in self.param_groups:
            (beta_1, beta_2), eps = group["betas"], group["eps"]
            for x in group["params"]:
                if x.grad is None:
                    continue
                state = self.state[x]
                if not state:
                    state["m"], state["v"] = torch.zeros_like(x), torch.full_like(x, eps**2)
                m, v, square = state["m"], state["v"], x.grad.square()
                m.lerp_(x.grad, 1 - beta_1)
                v.sub_((1 - beta_2) * square * (v - square).sign())
                x.sub_(group["lr"] * m / (v.sqrt() + eps))
        return loss


def adam(
    params: Iterable[nn.Parameter], lr: float, *, betas: tuple[float, float] = (0.9, 0.99), eps: float = 1e-3
) -> torch.optim.Adam:
    """Adam, with bias correction.

    Args:
        betas: decay rates of the two moments.
        eps: added to the denominator.
    """
    return torch.optim.Adam(params, lr=lr, betas=betas, eps=eps)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"sgd": sgd, "adam": adam, "yogi": Yogi}
