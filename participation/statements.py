"""Analyses that check single statements of the papers about participation: exact, or on roll calls.

Each has one row. Its columns are the quantities that claims put bounds on.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import combinations, permutations, product
from math import comb, gcd, lcm, perm, prod

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from rollcall.participation import recording
from rollcall.participation.base import Participation, Population
from rollcall.participation.markov import transitions
from rollcall.participation.probabilities import class_shares, class_weights
from rollcall.participation.streams import stream
from rollcall.participation.summary import correlations, mean
from rollcall.participation.theory import separation as theory
from rollcall.participation.theory.chains import affine_moments, mixing_time, product_chain
from rollcall.participation.theory.weights import (
    Reading,
    effective_weights_independent,
    group_counts,
    l1_distance,
    normalised,
)


def _row(**quantities: float) -> pd.DataFrame:
    return pd.DataFrame([{"round": 0} | {name: float(value) for name, value in quantities.items()}])


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
    return _row(stochastic=stochastic, rho=rho, bound=bound, excess=rho - bound, decay=decay)


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
    return _row(
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
    return _row(drift=ratio.max(), kappa=kappa(lr * L).min(), falls=-np.diff(grid).min())


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
    return _row(
        bound=2 * gap * falling + 2 * M * beta * sigma2 * falling + floor,
        weighted=2 * gap * falling + 2 * beta * sigma2 / (M * delta**2) * falling + left,
        floor=floor,
        left=left,
    )


def record(
    seed: int,
    *,
    participation: Callable[[Population], Participation],
    clients: int,
    rounds: int,
    lag: int = 1,
    sizes: tuple[int, ...] = (),
    classes: int = 10,
    alpha: float = 0.1,
) -> pd.DataFrame:
    """Statistics of one roll call.

    Columns: `share` of active client rounds; `waits`, the mean over clients of t - tau_i(t) ([PBC] Proposition 2) times
    the client's smallest p_i^t; `never`, clients that were never active; `separation`, the fewest rounds between two
    activities; `differs`, the share of rounds whose set is not that of `lag` rounds before; `stretch_on` and
    `stretch_off`, the largest standard deviations of a client's stretches of activity and inactivity, without the first
    and the last one; `variance` of the number of active clients over that of independent ones with the same shares;
    `within` and `between`, the mean correlation of clients of one group and of two; `error_pi` and `error_lambda`, the
    mean errors of the estimates of pi and lambda, with a prior of one round of each kind ([CAF] section IV-B);
    `weights`, the largest squared error of 1/(N lambda_i), with lambda the shares of all activities, against pi instead
    ([Sun] Lemma 2); `rarest`, the share of the rarest client over its pi, minus 1.

    Args:
        seed: of the roll call, and of the clients' class distributions.
        participation: the model.
        clients: m.
        rounds: T.
        lag: of `differs`.
        sizes: clients in each group, numbered group after group; by default each client is its own group.
        classes: C, for probabilities that follow the classes.
        alpha: concentration of the class distributions.
    """
    model = participation(Population(clients, seed, class_shares(seed, clients, classes, alpha)))
    mask = recording.record(model, rounds)
    known = [p for p in map(model.probability, range(min(rounds, 1000))) if p is not None]
    least = np.min(known, axis=0) if known else np.full(clients, np.nan)
    waits, separation, spread = [], float(rounds), {True: 0.0, False: 0.0}
    for column, c in zip(mask.T, least, strict=True):
        on = np.flatnonzero(column)
        gaps = np.diff(on)
        if len(gaps):
            separation = min(separation, gaps.min() - 1)
            # An interval of k rounds has waits 1, ..., k until the next activity.
            waits.append(c * (gaps * (gaps + 1) / 2).sum() / gaps.sum())
        for state, lengths in _stretches(column).items():
            spread[state] = max(spread[state], lengths.std() if len(lengths) else 0.0)
    a, shares = mask.sum(axis=1), mask.mean(axis=0)
    pi, eigenvalue = model.stationary, model.correlation
    law = np.full(clients, np.nan) if pi is None else normalised(pi)
    counted = np.where(shares > 0, shares / max(shares.sum(), 1e-300), np.nan)
    pairs = correlations(mask)[1]
    of = np.repeat(np.arange(len(sizes)), sizes) if sizes else np.arange(clients)
    same = (of[:, None] == of) & ~np.eye(clients, dtype=bool)
    before, after = mask[:-1], mask[1:]
    stay, start = (((after & state).sum(axis=0) + 1) / (state.sum(axis=0) + 2) for state in (before, ~before))
    return _row(
        share=shares.mean(),
        waits=mean(np.array(waits)),
        never=(~mask.any(axis=0)).sum(),
        separation=separation,
        differs=mean((mask[lag:] != mask[:-lag]).any(axis=1)),
        stretch_on=spread[True],
        stretch_off=spread[False],
        variance=a.var() / max((shares * (1 - shares)).sum(), 1e-300),
        within=pairs[same].mean() if same.any() else np.nan,
        between=pairs[of[:, None] != of].mean(),
        error_pi=np.nan if pi is None else np.abs((mask.sum(axis=0) + 1) / (rounds + 2) - pi).mean(),
        error_lambda=np.nan if eigenvalue is None else np.abs(stay - start - eigenvalue).mean(),
        weights=((1 / counted - 1 / law) ** 2).max() / clients**2,
        rarest=(counted / law)[law.argmin()] - 1,
    )


def _stretches(column: Bool[np.ndarray, "T"]) -> dict[bool, np.ndarray]:
    """The lengths of the stretches of activity and of inactivity, without the first and the last stretch."""
    ends = np.flatnonzero(np.diff(column)) + 1
    lengths, states = np.diff(ends), column[ends[:-1]]
    return {True: lengths[states], False: lengths[~states]}


def separation_law(
    seed: int, *, weights: np.ndarray, separation: int, batch: int = 1, targets: np.ndarray | None = None
) -> pd.DataFrame:
    """pi_R of minimum separation, exact, with the product law of a set ([Sun] Eq. 3).

    Columns: `distance`, ||pi_R / B - 1/N||_1, and `squared`, its square; `from_p`, ||pi_R / B - p||_1; `scaled`, N
    times `distance`; `largest`, the largest entry of pi_R / B; `train/bias`, of the minimiser of the quadratics
    (x - u_i)^2 / 2 with weights pi_R, as in the task `quadratic`, u being `targets`.
    """
    p = normalised(np.asarray(weights, dtype=np.float64))
    pi = theory.stationary_separation(p, separation, batch) / batch
    distance = l1_distance(np.full(len(p), 1 / len(p)), pi)
    u = np.zeros(len(p)) if targets is None else np.asarray(targets, dtype=np.float64)
    return _row(
        distance=distance,
        squared=distance**2,
        from_p=l1_distance(p, pi),
        scaled=len(p) * distance,
        largest=pi.max(),
        **{"train/bias": pi @ u - u.mean()},
    )


def separation_states(seed: int, *, units: int, separation: int, batch: int = 1) -> pd.DataFrame:
    """The chain of the last R sets under minimum separation, R >= 1, by enumeration ([Sun] Proposition 1, Lemma 1).

    Columns: `states` and `nonzero` (in a row), as multiples of the paper's formulas; `columns`, the same of a column;
    `reached`, the share of states that can be reached from one state; `period` of the states reached.
    """
    B, R, M = batch, separation, units // batch
    states = list(permutations(range(units), B * R))
    following = {s: [s[B:] + new for new in permutations([i for i in range(units) if i not in s], B)] for s in states}
    back = dict.fromkeys(states, 0)
    for ends in following.values():
        for s in ends:
            back[s] += 1
    level, queue, period = {states[0]: 0}, [states[0]], 0
    for s in queue:  # grows while it is walked through
        for end in following[s]:
            if end not in level:
                level[end] = level[s] + 1
                queue.append(end)
            period = gcd(period, level[s] + 1 - level[end])
    formula = prod(perm(B * (M - k), B) for k in range(R))
    entries = perm(B * (M - R), B)
    return _row(
        states=len(states) / formula,
        nonzero=max(map(len, following.values())) / entries,
        columns=max(back.values()) / entries,
        reached=len(level) / len(states),
        period=period,
    )


def two_states(seed: int, *, stationary: np.ndarray, correlation: np.ndarray) -> pd.DataFrame:
    """Independent on-off chains with pi_k and lambda_k, together as one chain ([CAF] sections III-D, V).

    Columns: `excess`, the second largest eigenvalue modulus of the whole over the largest |lambda_k|; `hitting`, the
    largest mean number of rounds until an absent client is active; `mixing`, the mixing time (to 0.01) of the whole;
    `keeps`, the chance that the first client keeps its state in a round.
    """
    pi, eigenvalue = (np.asarray(values, dtype=np.float64) for values in (stationary, correlation))
    on_on, off_on = transitions(pi, eigenvalue)
    whole = product_chain(on_on, off_on)
    second = np.sort(np.abs(np.linalg.eigvals(whole)))[-2]
    return _row(
        excess=second - np.abs(eigenvalue).max(),
        hitting=(1 / off_on).max(),
        mixing=mixing_time(whole, 0.01),
        keeps=pi[0] * on_on[0] + (1 - pi[0]) * (1 - off_on[0]),
    )


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
    `unlike`, the mean total variation distance between a client's class shares and the mean ones.
    """
    r = np.sort(class_weights(seed, classes, sigma0))[::-1]
    nu = class_shares(seed, clients, classes, alpha)
    base = nu @ class_weights(seed, classes, sigma0)
    p = np.maximum(delta, base)
    slack = (p * (1 - 2 * gamma)).min() - delta * (1 - 2 * gamma)  # the sine is -1 at t = 30 of 40
    return _row(
        first_two=r[:2].sum(),
        largest=r[0],
        spread=base.std() / base.mean(),
        least=p.min(),
        most=p.max(),
        slack=slack,
        unlike=np.abs(nu - nu.mean(axis=0)).sum(axis=1).mean() / 2,
    )


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
    share of activities that fail for `max_active`; `spread` and `noise`, the variance of debiased FedSGD's update at
    the optimum, from the draw of clients (targets are equal within a group) and from gradient noise of variance 1;
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
    step = shares @ ((u.mean() - u[np.cumsum(sizes) - 1]) / (M * of_group))
    whole = lcm(*range(1, M + 1))  # 1 / |A| in these parts
    law = np.zeros((len(sizes), whole * rounds + 1))
    for one, active, size in zip(law, k.T, sizes, strict=True):
        np.add.at(one, whole // a, chance * active / size)
        one[0] += 1 - one.sum()
    total = np.fft.irfft(np.fft.rfft(law) ** rounds, n=law.shape[1])
    below = total[:, : int(delta * whole * rounds + 1e-9) + 1].sum(axis=1)
    return _row(
        sum=c.sum(),
        bias=np.abs(uniform - c).sum(),
        unequal=l1_distance(uniform, normalised(c)),
        correlated=np.abs(alone - c).sum(),
        lost=1 - chance @ k.sum(axis=1) / (events * inside @ sizes),
        spread=chance @ step**2 - (chance @ step) ** 2,
        noise=chance @ (shares / a[:, None] @ (M * of_group) ** -2.0),
        tail=(below - 2 * np.exp(-2 * rounds * (of_group - delta) ** 2)).max(),
        **{"train/bias": normalised(c) @ u - u.mean()},
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
    moments = affine_moments(product_chain(*transitions(pi, eigenvalue)), law, a, b, start, rates)
    (_, x, square), near = moments.sum(axis=1), moments[1] @ on[:, 0] / pi[0]
    best, biased = ((w * h) @ u / (w @ h) for w in (np.ones(m), pi * q))
    return _row(
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
    return _row(
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
    return _row(rarest=best[pi.argmin()] - best[pi.argmax()], curved=curved, **bends)


STATEMENTS: dict[str, Callable[..., pd.DataFrame]] = {
    "gossip": gossip,
    "fedpbc_bounds": fedpbc_bounds,
    "local_drift": local_drift,
    "fedsgd_bounds": fedsgd_bounds,
    "record": record,
    "separation_law": separation_law,
    "separation_states": separation_states,
    "two_states": two_states,
    "class_coupling": class_coupling,
    "group_weights": group_weights,
    "averaging": averaging,
    "error_bounds": error_bounds,
    "weight_bounds": weight_bounds,
}
