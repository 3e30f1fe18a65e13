"""Analyses of [CAF], exact or on roll calls; `decisions`, of Fig. 5, trains. Claims put bounds on their columns."""

from functools import reduce
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Num
from lightning.pytorch import Callback

from rollcall.benchmark.federation.simulation import simulate
from rollcall.participation.analyses import row
from rollcall.participation.base import stream
from rollcall.participation.markov import transitions
from rollcall.tasks.partitions import Parts, dirichlet_by_class
from rollcall.tasks.streams import stream as data_stream


def two_states(seed: int, *, stationary: np.ndarray, correlation: np.ndarray) -> pd.DataFrame:
    """Independent on-off chains with pi_k and lambda_k, together as one chain ([CAF] sections III-D, V).

    Columns: `excess`, the second largest eigenvalue modulus of the whole over the largest |lambda_k|; `hitting`, the
    largest mean number of rounds until an absent client is active; `mixing`, the mixing time of the whole, which is
    the smallest t at which the total variation distance from the stationary law is at most 0.01, whatever the first
    state; `keeps`, the chance that the first client keeps its state in a round.
    """
    pi, eigenvalue = (np.asarray(values, dtype=np.float64) for values in (stationary, correlation))
    on_on, off_on = transitions(pi, eigenvalue)
    whole = product_chain(on_on, off_on)
    second = np.sort(np.abs(np.linalg.eigvals(whole)))[-2]
    if second > 1 - 1e-12:
        raise ValueError("correlation: the chain never mixes; must be inside (-1, 1)")
    law = np.where(list(product([0, 1], repeat=len(pi))), pi, 1 - pi).prod(axis=1)
    power, mixing = np.eye(len(whole)), 0
    while np.abs(power - law).sum(axis=1).max() / 2 > 0.01:
        power, mixing = power @ whole, mixing + 1
    return row(
        excess=second - np.abs(eigenvalue).max(),
        hitting=(1 / off_on).max(),
        mixing=mixing,
        keeps=pi[0] * on_on[0] + (1 - pi[0]) * (1 - off_on[0]),
    )


def averaging(
    seed: int,
    *,
    stationary: np.ndarray,
    correlation: np.ndarray,
    weights: np.ndarray,
    rounds: int,
    lr: float = 0.05,
    decay: float = 0.0,
    start: float = 3.0,
    spread: float = 0.5,
    targets: np.ndarray | None = None,
) -> pd.DataFrame:
    """x <- x - eta_t sum over A of q_k h_k (x - u_k) under independent on-off chains, exact ([CAF] Theorem 2).

    F_k = h_k (x - u_k)^2 / 2; F is the mean of the F_k, F_B has the weights pi_k q_k. Columns: `limit` and `bias`,
    E[x_T] minus the minimiser of F_B and of F; `left`, the expected F_B(x_T) - F_B* over F_B(x_0) - F_B*; `error`, the
    expected F(x_T) - F*; `pull`, the part of the way from E[x_T] to u_0 by which x_T is nearer to it if client 0 is
    active in the last round; `noise`, the variance of the direction at the minimiser of F_B; `gamma`, max_k F_k - F*_k
    at the minimiser of F.

    Args:
        seed: of h_k, which are exp(N(0, spread^2)), and of the targets.
        stationary: pi, [m].
        correlation: lambda, [m].
        weights: q, [m], up to a factor; they are scaled to sum pi_k q_k = 1, so that all take equal steps on average.
        rounds: T.
        lr: eta; eta_t = eta / (1 + t / 10)^decay.
        decay: the exponent.
        start: x_0.
        spread: of log h_k; 0: all h_k are 1.
        targets: u, [m]; by default N(0, 1).
    """
    pi, eigenvalue, q = (np.asarray(values, dtype=np.float64) for values in (stationary, correlation, weights))
    m, q, draw = len(pi), q / (pi @ q), stream(seed, "averaging")
    h, u = np.exp(spread * draw.standard_normal(m)), draw.standard_normal(m)
    u = u if targets is None else np.asarray(targets, dtype=np.float64)
    on = np.array(list(product([0, 1], repeat=m)))
    law, a, b = np.where(on, pi, 1 - pi).prod(axis=1), on @ (q * h), on @ (q * h * u)
    rates = lr / (1 + np.arange(rounds) / 10) ** decay
    transition = product_chain(*transitions(pi, eigenvalue))
    # E[x_t^i 1{S_t-1 = s}], i = 0, 1, 2, of x <- (1 - eta_t a(S_t)) x + eta_t b(S_t) along the chain of states S_t.
    moments = np.array([law, start * law, start * start * law])
    for t, eta in enumerate(rates):
        one, first, second = moments @ transition if t else moments
        keep, add = 1 - eta * a, eta * b
        moments = np.array([one, keep * first + add * one, keep**2 * second + 2 * keep * add * first + add**2 * one])
    (_, x, square), near = moments.sum(axis=1), moments[1] @ on[:, 0] / pi[0]
    best, biased = ((w * h) @ u / (w @ h) for w in (np.ones(m), pi * q))
    return row(
        limit=x - biased,
        bias=x - best,
        left=(square - 2 * x * biased + biased**2) / (start - biased) ** 2,
        error=h.mean() / 2 * (square - 2 * x * best + best**2),
        pull=(near - x) / (u[0] - x),
        noise=law @ (b - a * biased) ** 2,
        gamma=(h * (best - u) ** 2).max() / 2,
    )


def error_bounds(seed: int, *, draws: int = 10_000, clients: int = 3) -> pd.DataFrame:
    """The bounds of [CAF] Theorems 1 and 3 on random scalar quadratics F_k = h_k (x - u_k)^2 / 2: error minus bound.

    Each column is the largest value over the draws, relative to the error: `as_copied`, with the factor 2 kappa^2 on
    the optimisation error alone (Eq. 10 in our copy); `on_both`, with the factor on both errors; `chi_square`,
    `total_variation`, the bias error (Eq. 11, 15). Guideline C, weights alpha / pi after client 0 is left out, against
    random weights: `guideline`, its total variation distance minus theirs; `guideline_bound`, the same of Eq. 15.
    """
    draw = stream(seed, "error bounds")
    u = draw.standard_normal((draws, clients))
    h = np.exp(draw.standard_normal((draws, clients)))
    alpha, p = draw.dirichlet(np.ones(clients), draws), draw.dirichlet(np.ones(clients), draws)
    x = 2 * draw.standard_normal(draws)

    def objective(weights: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "n"]:
        return (weights * h * (x[:, None] - u) ** 2).sum(axis=1) / 2

    def minimiser(weights: np.ndarray) -> Float[np.ndarray, "n"]:
        return (weights * h * u).sum(axis=1) / (weights * h).sum(axis=1)

    def variation(weights: np.ndarray) -> Float[np.ndarray, "n"]:
        return np.abs(alpha - weights).sum(axis=1) / 2

    def gap(weights: np.ndarray) -> Float[np.ndarray, "n"]:
        return (h * (minimiser(weights)[:, None] - u) ** 2).max(axis=1) / 2

    kappa = h.max(axis=1) / h.min(axis=1)
    error = objective(alpha, x) - objective(alpha, minimiser(alpha))
    optimisation = objective(p, x) - objective(p, minimiser(p))
    bias = objective(alpha, minimiser(p)) - objective(alpha, minimiser(alpha))
    chi_square = ((alpha - p) ** 2 / p).sum(axis=1)
    rest = np.arange(clients) > 0
    guided, other = (w * rest / (w * rest).sum(axis=1, keepdims=True) for w in (alpha, p))
    return row(
        as_copied=(1 - (2 * kappa**2 * optimisation + bias) / error).max(),
        on_both=(1 - 2 * kappa**2 * (optimisation + bias) / error).max(),
        chi_square=(1 - kappa**2 * chi_square * gap(alpha) / bias).max(),
        total_variation=(1 - 4 * kappa**2 * variation(p) ** 2 * gap(p) / bias).max(),
        guideline=(variation(guided) - variation(other)).max(),
        guideline_bound=(variation(guided) ** 2 * gap(guided) - variation(other) ** 2 * gap(other)).max(),
    )


def weight_bounds(
    seed: int, *, stationary: np.ndarray, noise: float, floor: float, gamma: float = 0.0, power: int = 1
) -> pd.DataFrame:
    """The bounds of [CAF] as functions of the weights q, on the simplex.

    Eq. 13 is (sum_k noise pi_k^power q_k^2 / 2 + floor) / (sum pi_k q_k) up to a constant, where `noise` is 2 (E + 1)
    sigma^2 sum eta_t^2, `floor` is v, and `power` is 1 as printed. Eq. 11 is gamma chi^2 with alpha uniform. Eq. 15
    has kappa = 1 and F_k = (x - k)^2 / 2. Columns: `rarest`, the best weight for Eq. 13 of the rarest client minus
    that of the most available one; `curved`, the distance of these weights from a line in pi; and the largest
    f((q + r) / 2) - (f(q) + f(r)) / 2 over 100,000 pairs, many of them near the border, at most 0 if f is convex:
    `optimisation`, Eq. 13; `both`, with Eq. 11 added (Eq. 14); `variation`, Eq. 15; `rescaled`, Eq. 14 as a function of
    y = q / sum pi_k q_k.
    """
    from scipy.optimize import minimize  # takes a third of a second, which a run need not wait for

    pi = np.asarray(stationary, dtype=np.float64)
    N, k = len(pi), np.arange(len(pi))

    def optimisation(q: np.ndarray) -> np.ndarray:
        return ((noise * pi**power * q**2).sum(axis=-1) / 2 + floor) / (q @ pi)

    def both(q: np.ndarray) -> np.ndarray:
        return optimisation(q) + gamma * ((1 / N - (p := pi * q / (q @ pi)[:, None])) ** 2 / p).sum(axis=-1)

    def variation(q: np.ndarray) -> np.ndarray:
        p = pi * q / (q @ pi)[:, None]
        return np.abs(1 / N - p).sum(axis=-1) ** 2 * (((p @ k)[:, None] - k) ** 2).max(axis=-1) / 2

    q, r = stream(seed, "weight bounds").dirichlet(np.full(N, 0.3), (2, 100_000)).clip(1e-6)
    q, r = (one / one.sum(axis=1, keepdims=True) for one in (q, r))
    bends = {f.__name__: (f((q + r) / 2) - (f(q) + f(r)) / 2).max() for f in (optimisation, both, variation)}
    y = q / (q @ pi)[:, None] + r / (r @ pi)[:, None]
    bends["rescaled"] = (both(y / y.sum(axis=1, keepdims=True)) - (both(q) + both(r)) / 2).max()
    simplex = {"type": "eq", "fun": lambda q: q.sum() - 1}
    best = minimize(optimisation, np.full(N, 1 / N), bounds=[(0, 1)] * N, constraints=simplex, tol=1e-12).x
    curved = np.abs(best - np.polyval(np.polyfit(pi, best, 1), pi)).max()
    return row(rarest=best[pi.argmin()] - best[pi.argmax()], curved=curved, **bends)


def product_chain(on_on: Float[np.ndarray, "m"], off_on: Float[np.ndarray, "m"]) -> Float[np.ndarray, "S S"]:
    """The transition matrix of m on-off chains together, S = 2^m; the state of the last client changes fastest."""
    return reduce(np.kron, [np.array([[1 - b, b], [1 - a, a]]) for a, b in zip(on_on, off_on, strict=True)])


CLUSTERS = 10
"""c = 0 to 4 are often available, with lambda = 0; c = 5 to 9 rarely, with lambda = c/10."""


def decisions(
    seed: int,
    *,
    distributions: Literal["alike", "clusters", "clients"],
    algorithm: dict[str, Any],
    rounds: int = 100,
    task: str = "mnist",
) -> pd.DataFrame:
    """Share of the pixels of Fig. 5 in which CA-Fed leaves out the client, active or not; an analysis.

    A pixel is a client in a round. Columns: `left_out/often`, over clusters 0 to 4; `left_out/5` to `left_out/9`;
    `least_of_6_to_9`, the smallest share of these clusters; `rare`, the part of clusters 5 to 9 in all pixels in which
    a client is left out (1 if there is none).

    Args:
        seed: of all draws.
        distributions: of the clients' data: all `alike`; different between `clusters`, alike within; or different
            between `clients`, within clusters, too. Different ones are Dirichlet 0.5 for each class.
        algorithm: options of CA-Fed.
        rounds: T.
        task: a data set of images.
    """
    partitions: dict[str, Any] = {"alike": "iid", "clusters": by_cluster}
    trial = {
        "task": {
            "name": task,
            "clients": 100,
            "model": "linear",
            "ridge": 0.01,
            "validation": 0.2,
            "partition": partitions.get(distributions, {"name": "dirichlet_by_class", "alpha": 0.5}),
        },
        "participation": "clustered_markov",
        "target": "samples",
        "algorithm": {"name": "ca_fed"} | algorithm,
        "local": {"steps": 5, "batch_size": 64, "lr": 0.1},
        "rounds": rounds,
        "seed": seed,
        "evaluation": {"every": rounds, "splits": ["test"]},
    }
    recorded = Decisions()
    simulate(trial, callbacks=[recorded])
    return summary(np.array(recorded.left_out))


class Decisions(Callback):
    """Records after each round whether each client is left out."""

    def __init__(self) -> None:
        self.left_out: list[np.ndarray] = []

    def on_train_batch_end(self, trainer: Any, federation: Any, *_: Any) -> None:
        self.left_out.append(federation.state.get().q.numpy(force=True) == 0)


def summary(left_out: Bool[np.ndarray, "t m"]) -> pd.DataFrame:
    """The table of `decisions`. Clusters are contiguous."""
    share = left_out.mean(axis=0).reshape(CLUSTERS, -1).mean(axis=1)
    row = {"left_out/often": share[:5].mean()} | {f"left_out/{c}": share[c] for c in range(5, CLUSTERS)}
    row["least_of_6_to_9"] = share[6:].min()
    row["rare"] = share[5:].sum() / share.sum() if share.any() else 1.0
    return pd.DataFrame({"round": [0]} | {name: [value] for name, value in row.items()})


def by_cluster(labels: Num[np.ndarray, "n"], clients: int, seed: int) -> Parts:
    """Each class is divided among the clusters by Dirichlet(0.5), and each cluster's samples among its clients."""
    clusters = dirichlet_by_class(labels, CLUSTERS, seed, alpha=0.5)
    draw, each = data_stream(seed, "partition", 1), clients // CLUSTERS
    rows = [part for mine in clusters.rows for part in np.array_split(draw.permutation(mine), each)]
    return Parts(rows, clusters.classes.repeat(each, axis=0))
