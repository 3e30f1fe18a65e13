"""Quadratic objectives with targets u_i: a task whose solution is known in closed form."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rollcall.tasks.base import ClientData, Holdings, Samples, Task, need_least
from rollcall.tasks.streams import stream


class Quadratic(Task):
    """Quadratic objectives F_i(x) = 0.5 h_i ||x - u_i||^2, from x = 0. The only sample of client i is (u_i, h_i).

    Args:
        optimum: [d], x*, the minimiser of the mean of all F_i.
    """

    optimum: Tensor

    def __init__(self, optimum: Float[Tensor, "d"]) -> None:
        super().__init__(lr=0.1)
        self.x = nn.Parameter(torch.zeros_like(optimum))
        self.register_buffer("optimum", optimum, persistent=False)

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        u, h = batch
        return (0.5 * h * (self.x - u).square().sum(dim=-1)).mean()

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """`loss`; `distance`, ||x - x*||; and `bias`, the mean over coordinates of x - x*.

        For a model that fluctuates around x*, the mean distance over rounds and seeds is not 0, but the mean bias may
        be.
        """
        error = self.x - self.optimum
        return {"loss": self.loss(batch), "distance": torch.linalg.vector_norm(error), "bias": error.mean()}


def quadratic(seed: int, *, targets: np.ndarray, curvature: np.ndarray | float = 1.0) -> tuple[Quadratic, ClientData]:
    """Quadratics F_i = 0.5 h_i ||x - u_i||^2 with given targets u_i and curvatures h_i, one client for each target.

    Args:
        seed: not used, nothing is drawn.
        targets: [m, d], u, or [m] for d = 1.
        curvature: [m], h, or one number for all clients; positive.

    Raises:
        ValueError: a shape or value that is not allowed.
    """
    u = np.asarray(targets, dtype=np.float64)
    u = u[:, None] if u.ndim == 1 else u
    if u.ndim != 2 or u.size == 0 or not np.isfinite(u).all():
        raise ValueError(f"targets: shape {u.shape} is not allowed; must be finite numbers [clients, d]")
    h = np.asarray(curvature, dtype=np.float64)
    if h.shape not in ((), (len(u),)):
        raise ValueError(f"curvature: shape {h.shape} is not allowed; must be one number or [{len(u)}]")
    if not (h > 0).all():
        raise ValueError(f"curvature: {h[~(h > 0)].flat[0]:g} is not allowed; must be greater than 0")
    h = np.broadcast_to(h, len(u))
    # The targets without a copy, for the sake of a million clients. They are never written to.
    samples = (torch.from_numpy(np.require(u, requirements=["C", "W"])), torch.from_numpy(h.copy()))
    task = Quadratic(torch.from_numpy(h @ u / h.sum()))
    return task, ClientData({"train": samples}, Holdings(np.arange(len(u)), np.ones(len(u), dtype=np.int64)), seed=seed)


def fedpbc_quadratic(
    seed: int, *, clients: int = 100, dimension: int = 100, slope: float = 0.001, spread: float = 0.1
) -> tuple[Quadratic, ClientData]:
    """FedPBC's quadratics F_i = 0.5 ||x - u_i||^2 with u_i ~ N(slope i 1, spread^2 I), i from 1 ([PBC] Fig. 3).

    Args:
        seed: of the draw.
        clients: m, the number of clients.
        dimension: d, the number of parameters.
        slope: difference between the means of consecutive clients; 1/1000 in the paper.
        spread: standard deviation of a coordinate; its square is 0.01 in the paper.
    """
    need_least(1, clients=clients, dimension=dimension)
    need_least(0, spread=spread)
    i = np.arange(1, clients + 1)[:, None]
    draw = stream(seed, "fedpbc quadratic").standard_normal((clients, dimension))
    return quadratic(seed, targets=slope * i + spread * draw)
