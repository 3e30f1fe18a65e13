"""Synthetic problems of known minimiser x*: quadratics, ridge and robust regression, Cauchy losses; from x = 0."""

from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rollcall.tasks.base import ClientData, Holdings, Samples, Task, half_squares, need_least
from rollcall.tasks.streams import stream

DESCENTS = 6
"""Number of starting points for finding the minimiser of robust regression."""


class KnownOptimum(Task):
    """Base class of tasks with the parameter x [d], from 0, and the minimiser x* [d] of the objective.

    The objective is the mean of all F_i, or for clients of unequal weights alpha the sum of alpha_i F_i.
    """

    optimum: Tensor

    def __init__(self, optimum: Float[Tensor, "d"]) -> None:
        super().__init__(lr=0.1)
        self.x = nn.Parameter(torch.zeros_like(optimum))
        self.register_buffer("optimum", optimum, persistent=False)

    def distance(self) -> Float[Tensor, ""]:
        """||x - x*||."""
        return torch.linalg.vector_norm(self.x - self.optimum)

    def weigh(self, alpha: Float[np.ndarray, "m"], data: ClientData) -> None:
        """Make x* the minimiser of the sum of alpha_i F_i, if the weights are not equal."""
        sizes = data.parts.sizes
        if np.ptp(alpha[sizes > 0]) > 0:
            weights = (alpha / np.maximum(sizes, 1))[data.parts.owners()]
            self.optimum = torch.from_numpy(
                self.minimiser(weights, *(column.numpy() for column in data.splits["train"]))
            )

    def minimiser(self, weights: Float[np.ndarray, "n"], *columns: np.ndarray) -> Float[np.ndarray, "d"]:
        """The minimiser of the sum of the samples' losses times weights, which sum to 1; ValueError if unknown."""
        raise ValueError(
            "unequal weights are not allowed with this task, which knows x* for equal ones; must be uniform"
        )


class Quadratic(KnownOptimum):
    """Quadratics F_i(x) = 0.5 h_i ||x - u_i||^2 + wave ||sin(x - x*)||^2. A sample is (u, h)."""

    def __init__(self, optimum: Float[Tensor, "d"], wave: float = 0.0) -> None:
        super().__init__(optimum)
        self.wave = wave

    def minimiser(self, weights: Float[np.ndarray, "n"], *columns: np.ndarray) -> Float[np.ndarray, "d"]:
        u, h = columns
        return (weights * h) @ u / (weights @ h)

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        u, h = batch
        loss = (0.5 * h * (self.x - u).square().sum(dim=-1)).mean()
        return loss + self.wave * (self.x - self.optimum).sin().square().sum() if self.wave else loss

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """`loss`; `distance`, ||x - x*||; and `bias`, the mean over coordinates of x - x*.

        For a model that fluctuates around x*, the mean distance over rounds and seeds is not 0, but the mean bias may
        be.
        """
        return {"loss": self.loss(batch), "distance": self.distance(), "bias": (self.x - self.optimum).mean()}


def quadratic(
    seed: int, *, targets: np.ndarray, curvature: np.ndarray | float = 1.0, wave: float = 0.0, scatter: float = 0.0
) -> tuple[Quadratic, ClientData]:
    """Quadratics F_i = 0.5 h_i ||x - u_i||^2 with given targets u_i and curvatures h_i, one client for each target.

    Client i has one sample, (u_i, h_i), or with `scatter` two.

    Args:
        seed: not used, nothing is drawn.
        targets: [m, d], u, or [m] for d = 1.
        curvature: [m], h, or one number for all clients; positive.
        wave: at least 0. With h = 2 and wave 3, F is not convex and satisfies the Polyak-Lojasiewicz condition.
        scatter: distance in each coordinate of the two samples from u_i, at least 0. F_i changes by a constant only.
            The gradient of one sample has noise of standard deviation h_i scatter in each coordinate.
    """
    need_least(0, wave=wave, scatter=scatter)
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
    clients, task = len(u), Quadratic(torch.from_numpy(h @ u / h.sum()), wave)
    if scatter:
        u, h = np.stack([u - scatter, u + scatter], axis=1).reshape(-1, u.shape[1]), np.repeat(h, 2)
    # The targets without a copy, for the sake of a million clients. They are never written to.
    samples = (torch.from_numpy(np.require(u, requirements=["C", "W"])), torch.from_numpy(h.copy()))
    holdings = Holdings(np.arange(len(u)), np.full(clients, len(u) // clients, dtype=np.int64))
    return task, ClientData({"train": samples}, holdings, seed=seed)


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


class Ridge(KnownOptimum):
    """Ridge regression F_i(x) = 1/(2n) ||A_i x - b_i||^2 + ridge/2 ||x||^2 on a client's n rows, ridge at least 0."""

    def __init__(self, ridge: float, optimum: Float[Tensor, "d"]) -> None:
        super().__init__(optimum)
        self.ridge = ridge

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        A, b = batch
        return 0.5 * (A @ self.x - b).square().mean() + half_squares(self, self.ridge)

    def minimiser(self, weights: Float[np.ndarray, "n"], *columns: np.ndarray) -> Float[np.ndarray, "d"]:
        A, b = columns
        d, n = A.shape[1], int((weights > 0).sum())
        if self.ridge == 0 and n < d:
            raise ValueError(
                f"{n} samples of clients with a weight are not allowed without ridge; must be at least {d}"
            )
        return np.linalg.solve(A.T @ (weights[:, None] * A) + self.ridge * np.eye(d), A.T @ (weights * b))

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """`loss`; `distance`, ||x - x*||; and [FOCUS]'s `relative_error`, ||x - x*|| / ||x*||, not squared."""
        relative = self.distance() / torch.linalg.vector_norm(self.optimum)
        return {"loss": self.loss(batch), "distance": self.distance(), "relative_error": relative}


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


class SunSynthetic(KnownOptimum):
    """Robust regression f_i(x) = mean_j log((<A_ij, x> + b_ij)^2 / 2 + 1) over a client's rows j ([Sun] Fig. 2).

    The plus sign is as printed in the paper, so a client's minimiser is near -theta_i. `least` is the mean of all f_i
    at the best minimiser found, x*.
    """

    def __init__(self, optimum: Float[Tensor, "d"], least: float) -> None:
        super().__init__(optimum)
        self.least = least

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        A, b = batch
        return torch.log1p(0.5 * (A @ self.x + b).square()).mean()

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """`loss`; `gap`, the loss minus its least value; and `distance`, ||x - x*||."""
        loss = self.loss(batch)
        return {"loss": loss, "gap": loss - self.least, "distance": self.distance()}


class Cauchy(SunSynthetic):
    """Cauchy losses F_i(x) = log((x - u_i)^2 / 2 + 1) of a number x, [Sun]'s with one row. Client i's sample is u_i.

    They are not convex, beta = 1 bounds |F_i''|, and D = 1/2 bounds the squared gradient of each.
    """

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        (u,) = batch
        return torch.log1p(0.5 * (self.x - u).square()).mean()

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """`loss`; `gap`, the loss minus its least value; `distance`, |x - x*|; and `gradient`, F'(x)^2."""
        r = self.x - batch[0]
        slope = (r / (1 + 0.5 * r.square())).mean()
        return super().metrics(batch) | {"gradient": slope.square()}


def cauchy(seed: int, *, targets: np.ndarray) -> tuple[Cauchy, ClientData]:
    """Cauchy losses F_i = log((x - u_i)^2 / 2 + 1) of a number x with given targets u_i, one client for each target.

    Args:
        seed: not used, nothing is drawn.
        targets: [m], u.
    """
    u = np.asarray(targets, dtype=np.float64)
    if u.ndim != 1 or u.size == 0 or not np.isfinite(u).all():
        raise ValueError(f"targets: shape {u.shape} is not allowed; must be finite numbers [clients]")
    optimum, least = _cauchy_minimum(u)
    # Evaluated at once: the square of the mean slope is no mean over batches.
    data = ClientData(
        {"train": (torch.from_numpy(u[:, None].copy()),)},
        [np.array([i]) for i in range(len(u))],
        seed=seed,
        evaluation_batch=len(u),
    )
    return Cauchy(torch.tensor([optimum], dtype=torch.float64), least), data


def _cauchy_minimum(u: Float[np.ndarray, "m"]) -> tuple[float, float]:
    """The global minimiser of the mean of log((x - u_i)^2 / 2 + 1), and the least value.

    All stationary points lie between the targets. Newton's method starts at the best point of a grid. If its steps are
    wide, the grid surrounds the targets: a minimum lies within sqrt(2) of one, for elsewhere all F_i are concave.
    """
    grid = np.linspace(u.min(), u.max(), 10_001)
    if grid[1] - grid[0] > 0.1:
        grid = (u[:, None] + np.linspace(-1.5, 1.5, 31)).ravel()
    x = grid[np.log1p(0.5 * (grid[:, None] - u) ** 2).mean(axis=1).argmin()]
    for _ in range(20):
        r = x - u
        x -= (r / (1 + 0.5 * r**2)).sum() / ((1 - 0.5 * r**2) / (1 + 0.5 * r**2) ** 2).sum()
    return float(x), float(np.log1p(0.5 * (x - u) ** 2).mean())


def sun_synthetic(
    seed: int, *, clients: int = 100, samples: int = 100, dimension: int = 20
) -> tuple[SunSynthetic, ClientData]:
    """Non-convex robust regression in which the data scale decreases with the client number ([Sun] Fig. 2).

    Client i, from 1, has A_i with entries N(0, (2/i)^2) and b_i = A_i theta_i + N(0, 0.25), where theta_i ~ N(mu_i 1,
    I), mu_i ~ N(a, 1) and a ~ N(0, 100). Second arguments are variances. That a and mu_i are scalars is our choice.

    Args:
        seed: of all draws.
        clients: m, the number of clients.
        samples: number of rows of each client.
        dimension: d, the number of parameters.
    """
    need_least(1, clients=clients, samples=samples, dimension=dimension)
    *arrays, least = _problem(seed, clients, samples, dimension)
    A, b, optimum = (torch.from_numpy(array.copy()) for array in arrays)
    data = ClientData({"train": (A, b)}, np.split(np.arange(len(A)), clients), seed=seed)
    return SunSynthetic(optimum, least), data


@cache
def _problem(
    seed: int, clients: int, samples: int, dimension: int
) -> tuple[Float[np.ndarray, "mn d"], Float[np.ndarray, "mn"], Float[np.ndarray, "d"], float]:
    """A and b of all clients, the minimiser x* and the objective at x*; computed once in each process.

    BFGS in float64 starts from 0, from the least-squares solution and from the best of the -theta_i. Newton's method
    refines the best result. The objective is not convex, and there is no proof that this is the global minimum. But
    none of 100 descents from random starts, near and far, ended elsewhere (tests, and by hand on seeds 0 to 5).
    """
    from scipy.optimize import minimize  # takes a third of a second, which other tasks need not wait for

    a = 10 * stream(seed, "sun a").standard_normal()
    theta, A, b = [], [], []
    for i in range(1, clients + 1):
        draw = stream(seed, "sun client", i)
        theta.append(a + draw.standard_normal() + draw.standard_normal(dimension))
        A.append(2 / i * draw.standard_normal((samples, dimension)))
        b.append(A[-1] @ theta[-1] + 0.5 * draw.standard_normal(samples))
    rows, shifts = np.concatenate(A), np.concatenate(b)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        r = rows @ x + shifts
        return np.log1p(0.5 * r**2).mean(), rows.T @ (r / (1 + 0.5 * r**2)) / len(r)

    near = sorted((-point for point in theta), key=lambda x: objective(x)[0])[: DESCENTS - 2]
    starts = [np.zeros(dimension), -np.linalg.lstsq(rows, shifts, rcond=None)[0], *near]
    ends = [minimize(objective, start, jac=True, method="BFGS").x for start in starts]
    x = min(ends, key=lambda end: objective(end)[0])
    for _ in range(5):
        r = rows @ x + shifts
        curvature = (1 - 0.5 * r**2) / (1 + 0.5 * r**2) ** 2
        x = x - np.linalg.solve(rows.T @ (curvature[:, None] * rows) / len(r), objective(x)[1])
    return rows, shifts, x, float(objective(x)[0])
