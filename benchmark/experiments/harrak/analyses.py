"""Analyses of [HAR]: participation itself and single statements, exact or on roll calls; claims bound their columns."""

from functools import reduce
from itertools import product
from math import lcm

import numpy as np
import pandas as pd

from rollcall.participation.analyses import row
from rollcall.participation.weights import Reading, effective_weights_independent, group_counts, l1_distance, normalised
from rollcall.tasks.streams import stream


def fedsgd_bounds(
    seed: int,
    *,
    sizes: tuple[int, ...],
    events: np.ndarray,
    inside: float | np.ndarray,
    targets: np.ndarray,
    rounds: int,
    delta: float = 0.01,
) -> pd.DataFrame:
    """The bounds of [HAR] on the mean squared gradient of FedSGD with full gradients, at a rate of 1/sqrt(T).

    The clients' losses are those of the task `cauchy`: F_m = log((x - u_m)^2 / 2 + 1), so that beta = 1, and D = 1/2
    for F and for each F_m, which the proofs use. sigma^2 of Assumption 2 is M D times the largest variance of a weight.

    Columns: `bound`, of Theorem 1; `weighted`, of the weights 1/(M c^) with c^_m = max(c_m, delta) (Eq. 10, 23);
    `floor` and `left`, their last terms, which do not fall with T.

    Args:
        seed: not used.
        sizes, events, inside: as in `group_weights`.
        targets: u, [M].
        rounds: T.
        delta: the lower bound of the estimates.
    """
    u = np.asarray(targets, dtype=np.float64)
    M, beta, D = sum(sizes), 1.0, 0.5
    counts = group_counts(list(sizes), np.asarray(events, dtype=np.float64), inside, None, "collision")
    k = np.array(list(product(*map(range, map(len, counts)))))  # [S, G], active clients of each group
    chance, a = reduce(np.multiply.outer, counts).ravel(), np.maximum(k.sum(axis=1), 1)
    active = k / np.array(sizes)
    c, square = (np.repeat(chance @ (active / a[:, None] ** power), sizes) for power in (1, 2))
    sigma2 = M * D * (square - c**2).max()
    grid = np.linspace(u.min(), u.max(), 10_001)
    gap = np.log1p(u**2 / 2).mean() - np.log1p((grid[:, None] - u) ** 2 / 2).mean(axis=1).min()
    falling = 1 / np.sqrt(rounds)
    floor = M * D * ((1 / M - c) ** 2).sum()
    left = M * D * ((1 / M - c / (M * np.maximum(c, delta))) ** 2).sum()
    return row(
        bound=2 * gap * falling + 2 * M * beta * sigma2 * falling + floor,
        weighted=2 * gap * falling + 2 * beta * sigma2 / (M * delta**2) * falling + left,
        floor=floor,
        left=left,
    )


def theorem1_gradient(seed: int, *, rounds: int, slope: float = 5.5) -> pd.DataFrame:
    """FedSGD where a bound D on the gradient of F is none on those of the F_m, and the bound of Theorem 1 ([HAR]).

    F_m = sqrt(1 + x^2) +- slope x of two clients, so that F = sqrt(1 + x^2), beta = 1 and D = 1. In a round one of them
    is active, the first one with probability 0.6: c = (0.6, 0.4). Full gradients, a rate of 1/sqrt(T), from the optimum
    x = 0.

    Columns: `gradient`, the mean of F'(x)^2 over the rounds, and `bound`, of Theorem 1, with the largest variance in
    Assumption 2, c (1 - c) F_m'^2 <= (1 + slope)^2 / 4.

    Args:
        seed: of the participation.
        rounds: T.
        slope: of the two linear terms.
    """
    c = np.array([0.6, 0.4])
    sides = np.where(stream(seed, "theorem 1").random(rounds) < c[0], slope, -slope)
    x, total, eta = 0.0, 0.0, 1 / np.sqrt(rounds)
    for side in sides.tolist():
        gradient = x / np.sqrt(1 + x * x)
        total += gradient**2
        x -= eta * (gradient + side)
    sigma2 = 2 * (1 + slope) ** 2 / 4
    return row(gradient=total / rounds, bound=2 * 2 * sigma2 * eta + 2 * ((1 / 2 - c) ** 2).sum())


def group_weights(
    seed: int,
    *,
    sizes: tuple[int, ...],
    events: np.ndarray,
    inside: float | np.ndarray,
    targets: np.ndarray | None = None,
    max_active: int | None = None,
    reading: Reading = "collision",
    rounds: int = 1,
    delta: float = 0.01,
) -> pd.DataFrame:
    """c_m = E[1{m in A} / |A|] of clients in groups of common events, and what follows, exact ([HAR] Eq. 6, 11, 13).

    Columns: `sum` of c; `bias`, ||c - 1/M||_1; `unequal`, the same of c over its sum; `correlated`, the distance
    ||.||_1 from the c of independent clients with the same shares; `train/bias`, as in `prop1_limit`; `lost`, the
    share of activities that fail for `max_active`; `update_variance`, that of debiased FedSGD's update with weights
    1/(M max(c_m, delta)) at the optimum: the sum of `spread`, from the draw of clients (targets are equal within a
    group), and `noise`, from gradient noise of variance 1;
    `tail`, the largest P(mean of 1{m in A} / |A| over `rounds` <= delta) minus 2 exp(-2 rounds (c_m - delta)^2).
    """
    events = np.asarray(events, dtype=np.float64)
    counts = group_counts(list(sizes), events, inside, max_active, reading)
    k = np.array(list(product(*map(range, map(len, counts)))))  # [S, G], active clients of each group
    chance, a = reduce(np.multiply.outer, counts).ravel(), np.maximum(k.sum(axis=1), 1)
    shares, M = k / a[:, None], sum(sizes)
    of_group = chance @ shares / sizes
    c, uniform = np.repeat(of_group, sizes), np.full(M, 1 / M)
    alone = effective_weights_independent(np.repeat(events * inside, sizes))
    u = np.zeros(M) if targets is None else np.asarray(targets, dtype=np.float64)
    weights = 1 / (M * np.maximum(of_group, delta))
    step = shares @ ((u.mean() - u[np.cumsum(sizes) - 1]) * weights)
    whole = lcm(*range(1, M + 1))  # 1 / |A| in these parts
    law = np.zeros((len(sizes), whole * rounds + 1))
    for one, active, size in zip(law, k.T, sizes, strict=True):
        np.add.at(one, whole // a, chance * active / size)
        one[0] += 1 - one.sum()
    total = np.fft.irfft(np.fft.rfft(law) ** rounds, n=law.shape[1])
    below = total[:, : int(delta * whole * rounds + 1e-9) + 1].sum(axis=1)
    spread, noise = chance @ step**2 - (chance @ step) ** 2, chance @ (shares / a[:, None] @ weights**2)
    return row(
        sum=c.sum(),
        bias=np.abs(uniform - c).sum(),
        unequal=l1_distance(uniform, normalised(c)),
        correlated=np.abs(alone - c).sum(),
        lost=1 - chance @ k.sum(axis=1) / (events * inside @ sizes),
        update_variance=spread + noise,
        spread=spread,
        noise=noise,
        tail=(below - 2 * np.exp(-2 * rounds * (of_group - delta) ** 2)).max(),
        **{"train/bias": normalised(c) @ u - u.mean()},
    )
