"""Analyses of [PBC]: participation itself and single statements, exact or on roll calls; claims bound their columns."""

from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.participation.analyses import row
from rollcall.participation.base import Participation, Population, check, stream
from rollcall.participation.probabilities import Source, class_shares, class_weights
from rollcall.participation.weights import effective_weights_independent, normalised


def _mixing(p: Float[np.ndarray, "m"], at_once: int = 0) -> Iterator[tuple[float, Float[np.ndarray, "m m"]]]:
    """The chance of every active set and FedPBC's W for it ([PBC] Eq. 4); with `at_once`, sets of this size alone."""
    m = len(p)
    for size in [at_once] if at_once else range(m + 1):
        for active in map(list, combinations(range(m), size)):
            W = np.eye(m)
            W[np.ix_(active, active)] = 1 / max(size, 1)
            on = np.isin(np.arange(m), active)
            yield 1 / comb(m, size) if at_once else float(np.prod(np.where(on, p, 1 - p))), W


def gossip(seed: int, *, probability: np.ndarray, at_once: int = 0) -> pd.DataFrame:
    """The mixing matrix W of FedPBC over all active sets of a few clients ([PBC] Eq. 4, Lemma 3).

    Columns: `stochastic`, the largest distance of a row or column sum of a W from 1; `rho`, the second eigenvalue of
    E[W^2]; `bound` of Lemma 3; `excess`, rho minus the bound; `decay`, E||B (W_1 ... W_t - J)||^2 minus rho^t (Eq. 11),
    the largest one of all matrices B of norm 1 and of t up to 30.

    Args:
        seed: not used.
        probability: p, [m]; with `at_once` only its length counts.
        at_once: k, if k of m clients are drawn uniformly; 0: independent clients.
    """
    p = np.asarray(probability, dtype=np.float64)
    m, sets = len(p), list(_mixing(p, at_once))
    stochastic = max(np.abs(W.sum(axis=axis) - 1).max() for _, W in sets for axis in (0, 1))
    rho = np.linalg.eigvalsh(sum(chance * W @ W for chance, W in sets))[-2]
    c = at_once / m if at_once else p.min()
    bound = 1 - c**2 / 8 if at_once else 1 - c**4 * (1 - (1 - c) ** m) ** 2 / 8
    apart, mixed, decay = np.eye(m) - 1 / m, np.eye(m), -np.inf
    for t in range(1, 31):
        mixed = sum(chance * W @ mixed @ W for chance, W in sets)  # E[W_1 ... W_t W_t ... W_1]
        decay = max(decay, np.linalg.eigvalsh(apart @ mixed @ apart)[-1] - rho**t)
    return row(stochastic=stochastic, rho=rho, bound=bound, excess=rho - bound, decay=decay)


def equal_availability(seed: int, *, probability: float, clients: int, lr: float) -> pd.DataFrame:
    """The distances at which FedAvg and FedPBC stay if all clients are equally available, exact ([PBC] section VII-A).

    Of F_i = ||x - u_i||^2 / 2 and one local step; root mean squares, over the standard deviation of the u_i. FedPBC's W
    shrinks a squared disagreement by rho = 1 - E[max(a - 1, 0)] / (m - 1) in the mean.

    Columns: `fedavg`; `fedpbc`, of the server's model; `ratio`, of the first to the second.

    Args:
        seed: not used.
        probability: p of each client.
        clients: m.
        lr: b, so that a step is x + b (u_i - x). Of s steps with eta it is 1 - (1 - eta)^s.
    """
    p, m, b, r = probability, clients, lr, 1 - lr
    a = np.arange(1, m + 1)
    chance = np.array([comb(m, size) * p**size * (1 - p) ** (m - size) for size in range(1, m + 1)])
    spread = chance @ (1 / a - 1 / m) / chance.sum()  # of the mean of a clients of m, in a round that is not empty
    rho = 1 - chance @ (a - 1) / (m - 1)
    fedavg = b / (2 - b) * spread
    fedpbc = b**2 * (1 + rho * r) / ((1 - rho * r) * (1 - rho * r**2)) * spread
    return row(fedavg=fedavg**0.5, fedpbc=fedpbc**0.5, ratio=(fedavg / fedpbc) ** 0.5)


def fedpbc_bounds(seed: int, *, problem: np.ndarray, lr: float, rounds: int, steps: int = 1) -> pd.DataFrame:
    """FedPBC on scalar quadratics F_i = h_i (x - u_i)^2 / 2, exact in the mean over all roll calls ([PBC] section VI).

    A round is x <- W (a x + (1 - a) u) with a_i = (1 - eta h_i)^s, so its second moments follow a linear map.

    Columns: `gradient`, (1/T) sum E[F'(mean of x)^2] over t < T; `stationary`, the same over the bound of Theorem 1;
    `consensus`, the mean squared disagreement over the bound of Lemma 4; `descent`, the largest change of F in a round
    minus the bound of Lemma 2, of 1,000 random x; `rate`, eta over the largest one that the theorem allows.

    Args:
        seed: of the random x.
        problem: u, h and p, [3, m].
        lr, rounds, steps: eta, T and s.
    """
    u, h, p = np.asarray(problem, dtype=np.float64)
    m, s, L, H, sets = len(u), steps, h.max(), h.mean(), list(_mixing(p))
    best = h @ u / h.sum()
    b = lr * h * sum((1 - lr * h) ** k for k in range(s))  # 1 - a, not as a difference: both are close to 1
    # The state is (mean of x minus the optimum, disagreement, 1): squares of x would hide the small disagreement.
    apart = np.linalg.svd(np.ones((1, m)))[2][1:].T
    back, to = np.column_stack([np.ones(m), apart]), np.vstack([np.full(m, 1 / m), apart.T])
    moments = np.zeros(((m + 1) ** 2,) * 2)
    for chance, W in sets:
        step = np.diag([1.0, *np.zeros(m - 1), 1.0])
        step[:m, 1:m] = to @ W @ apart
        step[:m] += to @ W @ np.column_stack([-b[:, None] * back, b * (u - best)])
        moments += chance * np.kron(step, step)
    one = np.eye(len(moments))  # a power of the block matrix has the sum over t < T of the powers of the map
    sums = np.linalg.matrix_power(np.block([[moments, 0 * one], [one, one]]), rounds)[len(one) :, : len(one)]
    start = np.array([-best, *np.zeros(m - 1), 1.0])
    mean = np.diag((sums @ np.kron(start, start)).reshape(m + 1, m + 1)) / rounds
    gradient, disagreement = H**2 * mean[0], mean[1:m].sum() / m  # F' is H times the distance of the mean

    beta2, zeta2 = 2 * h.var() / H**2, 2 * np.mean((h * (best - u)) ** 2)  # Assumption 5
    kappa2 = 0.0 if s == 1 else ((((1 + lr * L) ** s - 1 - s * lr * L) / (comb(s, 2) * (lr * L) ** 2)) * L) ** 2
    root = np.sqrt(max(0.0, np.linalg.eigvalsh(sum(chance * W @ W for chance, W in sets))[-2]))
    spread = 54 * root**2 * (lr * s / (1 - root)) ** 2 * (zeta2 + (beta2 + 1) * gradient)
    bound = 3 * H * best**2 / (lr * s * rounds) + 54 * lr * s * L * (kappa2 + 1 + 1 / (1 - root)) * zeta2
    x = best + 3 * u.std() * stream(seed, "fedpbc bounds").standard_normal((1000, m))
    before, after = ((one.mean(axis=1) - best) ** 2 for one in (x, x - b * (x - u)))
    allowed = lr * s * (L**2 * x.var(axis=1) - H**2 * before / 3) + 6 * L * (lr * s) ** 2 * zeta2 * (1 + kappa2)
    return row(
        gradient=gradient,
        stationary=gradient / bound,
        consensus=disagreement / spread if p.min() < 1 else 0.0,  # with all clients both sides are 0
        descent=(H / 2 * (after - before) - allowed).max(),
        rate=lr * 108 * L**2 * s**3 * (beta2 + 1) * (1 + kappa2) / (1 - root),
    )


def local_drift(seed: int, *, steps: int, lr: float, draws: int = 10_000) -> pd.DataFrame:
    """Both sides of [PBC] Lemma 1, the change of a client's gradient over s local steps, on functions with |F''| <= L.

    Their slopes are a + b x + c sin(w x + v) with |b| + c w = L, of random signs; one is the concave -L x^2 / 2, at
    which both sides are equal.

    Columns: `drift`, the largest |sum over k < s of F'(x_k) - F'(x_0)| over kappa eta s (s - 1) / 2 L |F'(x_0)|;
    `kappa`, the smallest; `falls`, its largest fall from one eta L to the next, on a grid up to the one here.

    Args:
        seed: of the functions and of x_0.
        steps: s, at least 2; for one step kappa is 0/0 as printed, and 0 by Remark 1.
        lr: eta.
        draws: number of functions. L is exp(N(0, 1)).
    """
    draw, s = stream(seed, "local drift"), steps

    def kappa(y: np.ndarray) -> np.ndarray:
        """Of y = eta L, as a sum: the printed quotient loses digits where y is small."""
        return np.sum([comb(s, j) * y ** (j - 2) for j in range(2, s + 1)], axis=0) / comb(s, 2)

    L, part = np.exp(draw.standard_normal(draws)), draw.random(draws)
    a, v, w, x = draw.standard_normal((4, draws))
    w = np.exp(w)
    b, c = np.where(draw.random(draws) < 0.5, -1, 1) * part * L, (1 - part) * L / w
    b[0], a[0], c[0] = -L[0], 0.0, 0.0

    def slope(x: np.ndarray) -> np.ndarray:
        return a + b * x + c * np.sin(w * x + v)

    first, change = slope(x), np.zeros(draws)
    for _ in range(s):
        now = slope(x)
        change += now - first
        x = x - lr * now
    ratio = np.abs(change) / (kappa(lr * L) * lr * comb(s, 2) * L * np.abs(first))
    grid = kappa(np.linspace(0, lr * L.max(), 1000))
    return row(drift=ratio.max(), kappa=kappa(lr * L).min(), falls=-np.diff(grid).min())


def class_coupling(
    seed: int,
    *,
    sigma0: float = 10.0,
    alpha: float = 0.1,
    gamma: float = 0.4,
    delta: float = 0.02,
    clients: int = 100,
    classes: int = 10,
) -> pd.DataFrame:
    """One draw of r, of the clients' class shares nu_i and of p_i = max(delta, <r, nu_i>) ([PBC] section VII-B).

    Columns: `first_two`, the sum of the two largest r; `largest` r; `spread`, the standard deviation of <r, nu_i> over
    its mean; `least` and `most` p_i; `slack`, the smallest p_i^t (Eq. 15, not clipped) minus delta (1 - 2 gamma);
    `unlike`, the mean total variation distance between a client's class shares and the mean ones; `two`, the mean sum
    of a client's two largest class shares.
    """
    r = np.sort(class_weights(seed, classes, sigma0))[::-1]
    nu = class_shares(seed, clients, classes, alpha)
    base = nu @ class_weights(seed, classes, sigma0)
    p = np.maximum(delta, base)
    slack = (p * (1 - 2 * gamma)).min() - delta * (1 - 2 * gamma)  # the sine is -1 at t = 30 of 40
    return row(
        first_two=r[:2].sum(),
        largest=r[0],
        spread=base.std() / base.mean(),
        least=p.min(),
        most=p.max(),
        slack=slack,
        unlike=np.abs(nu - nu.mean(axis=0)).sum(axis=1).mean() / 2,
        two=np.sort(nu)[:, -2:].sum(axis=1).mean(),
    )


def prop1_limit(
    seed: int,
    *,
    targets: np.ndarray,
    probability: np.ndarray,
    gamma: float = 0.0,
    period: int = 40,
    lag: np.ndarray | int = 0,
) -> pd.DataFrame:
    """Limit of E[x] of FedAvg on scalar quadratics 0.5 (x - u_i)^2 under independent uplinks ([PBC] Eq. 3).

    The sums over all sets of clients are written out, so that m is to be small. Nothing is drawn. With `gamma` above 0
    the p_i vary as in [PBC] Eq. 15, and the limit is that of a small rate: all rounds of a period count alike.

    Columns: x, the limit; `train/bias` as in the task `quadratic`: x minus the mean of the u_i, which is the optimum;
    `off`, its absolute value; `apart`, the largest difference between a client's coefficient in Eq. 3 and
    E[1{i in A}/|A|] of a round that is not empty, in the rounds of a period together.

    Args:
        seed: not used.
        targets: u, [m].
        probability: p, [m].
        gamma: depth of the variation p_i^t = p_i (1 - gamma + gamma sin(2 pi (t - lag_i) / period)), at most 1/2.
        period: P, rounds.
        lag: rounds by which each client's variation is late, [m]; 0 in the paper.
    """
    check("gamma", gamma, 0, 0.5)
    phases = range(period if gamma else 1)
    sines = [np.sin(2 * np.pi * (t - np.asarray(lag)) / period) for t in phases]
    at = [np.asarray(probability, dtype=np.float64) * (1 - gamma + gamma * sine) for sine in sines]
    found = np.sum([_coefficients(p) for p in at], axis=0)
    coefficients = normalised(found) if gamma else found / (1 - np.prod(1 - at[0]))
    x = float(coefficients @ targets)
    bias = x - float(np.mean(targets))
    apart = np.abs(coefficients - normalised(np.sum([effective_weights_independent(p) for p in at], axis=0))).max()
    return pd.DataFrame({"round": [0], "x": [x], "train/bias": [bias], "off": [abs(bias)], "apart": [apart]})


def _coefficients(p: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """The numerators of Eq. 3, term by term as printed; over 1 - prod (1 - p_i) they are the weights of the u_i."""
    m, found = len(p), np.zeros(len(p))
    for i in range(m):
        others = np.delete(p, i)  # B_j: the sets of j - 1 other clients
        sums = [sum(map(np.prod, combinations(others, j - 1))) for j in range(1, m + 1)]
        found[i] = p[i] * sum((-1) ** (j + 1) * one / j for j, one in enumerate(sums, 1))
    return found


def class_weights_sorted(seed: int, *, classes: int = 10, sigma0: float = 10.0) -> pd.DataFrame:
    """r of `class_coupled`, the weights by which availability follows the classes, largest first ([PBC] Fig. 4)."""
    r = np.sort(class_weights(seed, classes, sigma0))[::-1]
    return pd.DataFrame({"round": np.arange(classes), "r": r})


def probabilities_sorted(
    seed: int, *, probability: Source, clients: int = 100, classes: int = 10, alpha: float = 0.1
) -> pd.DataFrame:
    """p_i of clients with Dirichlet(alpha) class distributions, smallest first ([PBC] Fig. 4).

    They equal those of the clients of a data set with C classes under `dirichlet` and the same seed, if the partition
    was drawn once.
    """
    p = np.sort(probability(Population(clients, seed, class_shares(seed, clients, classes, alpha))))
    return pd.DataFrame({"round": np.arange(clients), "p": p})


def probabilities_histogram(
    seed: int, *, probability: Source, clients: int = 100, classes: int = 10, alpha: float = 0.1, bins: int = 20
) -> pd.DataFrame:
    """Number of clients with p_i in each of `bins` equal parts of [0, 1] ([PBC] Fig. 4).

    Each part holds its lower end, the last one also its upper end.
    """
    p = probability(Population(clients, seed, class_shares(seed, clients, classes, alpha)))
    counts, edges = np.histogram(p, bins=bins, range=(0.0, 1.0))
    return pd.DataFrame({"round": np.arange(bins), "p": edges[:-1], "clients": counts})


def uplink(
    seed: int,
    *,
    participation: Callable[[Population], Participation],
    clients: int = 4,
    client: int = 0,
    rounds: int = 80,
) -> pd.DataFrame:
    """p_i^t as an oracle knows it, and whether the uplink of a client is on, 1 or 0, round by round ([PBC] Fig. 6)."""
    check("client", client, 0, clients - 1)
    model = participation(Population(clients, seed))
    p = [now for now in map(model.probability, range(rounds)) if now is not None]
    if len(p) < rounds:
        raise ValueError("participation: is not allowed here; must be a model that knows p_i^t")
    on = [int(client in model.active(t)) for t in range(rounds)]
    return pd.DataFrame({"round": np.arange(rounds), "probability": [float(now[client]) for now in p], "uplink": on})
