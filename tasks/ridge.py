"""Ridge regression, the problem of [FOCUS] Fig. 4, whose minimiser is known."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rollcall.tasks.base import ClientData, Samples, Task, half_squares, need_least
from rollcall.tasks.streams import stream


class Ridge(Task):
    """Ridge regression F_i(x) = 1/(2n) ||A_i x - b_i||^2 + ridge/2 ||x||^2 on a client's n rows, from x = 0.

    Args:
        ridge: weight of the penalty, at least 0.
        optimum: [d], x*, the minimiser of the mean of all F_i.
    """

    optimum: Tensor

    def __init__(self, ridge: float, optimum: Float[Tensor, "d"]) -> None:
        super().__init__(lr=0.1)
        self.ridge = ridge
        self.x = nn.Parameter(torch.zeros_like(optimum))
        self.register_buffer("optimum", optimum, persistent=False)

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        A, b = batch
        return 0.5 * (A @ self.x - b).square().mean() + half_squares(self, self.ridge)

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """`loss`; `distance`, ||x - x*||; and [FOCUS]'s `relative_error`, ||x - x*|| / ||x*||, not squared."""
        distance = torch.linalg.vector_norm(self.x - self.optimum)
        relative = distance / torch.linalg.vector_norm(self.optimum)
        return {"loss": self.loss(batch), "distance": distance, "relative_error": relative}


def ridge(
    seed: int,
    *,
    clients: int = 16,
    samples: int = 500,
    dimension: int = 50,
    noise: float = 0.1,
    ridge: float = 0.0,
    theta_spread: float = 0.0,
    scale_spread: float = 0.0,
) -> tuple[Ridge, ClientData]:
    """Ridge regression ([FOCUS] Fig. 4) on b_i = A_i theta_i + noise * N(0, 1).

    A row of A_i is u N(0, I) with u uniform in [0.5, 1], and theta is N(0, I), the same for all clients, as in the
    authors' code. Its loss is the sum 1/2 ||A_i x - b_i||^2, so its learning rates times `samples` are those here. The
    two spreads make clients differ, with the same draws for all values of the spreads:
    theta_i = theta + theta_spread * N(0, I), and A_i is multiplied by exp(scale_spread * N(0, 1)).

    Args:
        seed: of all draws.
        clients: m, the number of clients.
        samples: n, the number of samples of each client.
        dimension: d, the number of parameters.
        noise: standard deviation of the noise.
        ridge: weight of the penalty 1/2 ||x||^2.
        theta_spread: standard deviation of the clients' solutions theta_i; 0: the same for all.
        scale_spread: standard deviation of the log of the clients' feature scales, which gives different curvatures; 0:
            the same for all.

    Raises:
        ValueError: an option out of range, or too few samples for a unique solution.
    """
    need_least(1, clients=clients, samples=samples, dimension=dimension)
    need_least(0, noise=noise, ridge=ridge, theta_spread=theta_spread, scale_spread=scale_spread)
    if ridge == 0 and clients * samples < dimension:
        raise ValueError(
            f"dimension: {dimension} is not allowed without ridge; must be at most {clients * samples}, all samples"
        )
    theta = stream(seed, "ridge theta").standard_normal(dimension)
    rows, values = np.empty((clients, samples, dimension)), np.empty((clients, samples))
    for i in range(clients):
        draw = stream(seed, "ridge client", i)
        theta_i = theta + theta_spread * draw.standard_normal(dimension)
        scale = np.exp(scale_spread * draw.standard_normal()) * draw.uniform(0.5, 1, (samples, 1))
        rows[i] = scale * draw.standard_normal((samples, dimension))
        values[i] = rows[i] @ theta_i + noise * draw.standard_normal(samples)
    A, b = rows.reshape(-1, dimension), values.reshape(-1)
    optimum = np.linalg.solve(A.T @ A / len(A) + ridge * np.eye(dimension), A.T @ b / len(A))
    parts = np.split(np.arange(len(A)), clients)
    data = ClientData({"train": (torch.from_numpy(A), torch.from_numpy(b))}, parts, seed=seed)
    return Ridge(ridge, torch.from_numpy(optimum)), data
