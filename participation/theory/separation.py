"""Minimum separation [Sun et al. 2025]: how often each unit is drawn, and how soon the roll call settles.

Units are numbered 0..M-1. Unit i drawn in round t is available again from round t + R + 1 on (R_i where it differs by
unit). A round draws B units among the available: one with probability proportional to p (B = 1), a set with
probability proportional to the product of p over the set (the `product` law, Prop. 1(2)). At the start all are
available. pi_R here is the share of rounds in which a unit is drawn, so it sums to B.

**Exact pi_R.** Take one R for all. The state is the list S_1, ..., S_R of the sets drawn in the last R rounds; write
S for their union, e_B(S^c) for the sum over B-subsets U of the rest of prod_U p, and note that U is drawn with
probability prod_U p / e_B(S^c). Then

    mu(S_1, ..., S_R)  proportional to  prod_{i in S} p_i * e_B(S^c)

is stationary: the flow into (S_2, ..., S_R, U) is the sum over sets S_1 disjoint from S' = S_2 + ... + S_R + U of
prod_S p * prod_U p = prod_S' p * prod_{S_1} p, and the sum over S_1 of the last factor is e_B(S'^c). So the n = B (R+1)
units of R + 1 consecutive rounds are together a set drawn with probability proportional to its product of p,
whatever their order: conditional Poisson sampling. By symmetry over the R + 1 rounds

    pi_R(i) = p_i e_{n-1}(p without i) / ((R+1) e_n(p)),      e_k the elementary symmetric polynomials:

p itself at R = 0, uniform at R = M - 1 (B = 1), for M and R of any size. At n = M the chain is periodic and falls apart
into classes, one for each cyclic order, but all have the same shares.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

from participation.theory.chains import long_run_distribution
from participation.theory.checks import check_least
from participation.theory.empirical import Estimate

STATES = 50_000


def stationary_separation(p: Float[np.ndarray, "M"], R: int, B: int = 1) -> Float[np.ndarray, "M"]:
    """pi_R [M], exact to rounding for any M and R (see the module's derivation); O(M R B) time and memory.

    For R_i that differ by unit there is no such form: `chain_separation`.

    Args:
        p: weights, at least 0, of any sum; a unit of weight 0 is never drawn.
        R: minimum separation, from 0.
        B: units a round, drawn by the product law.

    Raises:
        ValueError: a negative weight, R below 0, B below 1, or fewer than B (R + 1) units of positive weight: a round
            would come with fewer than B available.
    """
    check_least("R", R, 0)
    _check_draw(p, B)
    n = B * (R + 1)
    drawable = np.flatnonzero(p > 0)
    _check_enough(len(drawable), R, B)
    pi = np.zeros(len(p))
    pi[drawable] = _inclusion(p[drawable], n) / (R + 1)
    return pi


def _inclusion(p: Float[np.ndarray, "M"], n: int) -> Float[np.ndarray, "M"]:
    """P(i in T) for a set T of n units drawn with probability proportional to prod_T p.

    T is the set of units that are on, given that n are, when units are on independently with odds theta p_i: any
    theta serves, and the one with n on in the mean keeps every quantity far from underflow.
    """
    M = len(p)
    if n == M:
        return np.ones(M)
    log_p = np.log(p)
    low = -log_p.max() - np.log(M) + np.log(n) - 1
    high = -log_p.min() + np.log(M) + 1
    tilt = float(brentq(lambda log_theta: expit(log_theta + log_p).sum() - n, low, high))
    on, off = expit(tilt + log_p), expit(-tilt - log_p)
    # before[i], after[i]: distribution of the number on among the units before i, and from i on. Sums of
    # non-negative terms only; to divide one unit out of the whole would cancel.
    before, after = np.zeros((M + 1, n + 1)), np.zeros((M + 1, n + 1))
    before[0, 0] = after[M, 0] = 1
    for i in range(M):
        before[i + 1] = before[i] * off[i]
        before[i + 1, 1:] += before[i, :-1] * on[i]
    for i in reversed(range(M)):
        after[i] = after[i + 1] * off[i]
        after[i, 1:] += after[i + 1, :-1] * on[i]
    others = (before[:-1, :n] * after[1:, n - 1 :: -1]).sum(axis=1)
    return on * others / before[M, n]


@dataclass(frozen=True)
class SeparationChain:
    """The chain of minimum separation over the states that can be reached from the start, which is state 0.

    Attributes:
        cooldown: [S, M], rounds for which each unit is still unavailable in each state, the coming one included.
        transition: sparse [S, S].
        draw: [S, M], probability that each unit is drawn in the coming round; rows sum to B.
    """

    cooldown: Int[np.ndarray, "S M"]
    transition: sparse.csr_array
    draw: Float[np.ndarray, "S M"]


def separation_chain(
    p: Float[np.ndarray, "M"], R: int | Int[np.ndarray, "M"], B: int = 1, limit: int = STATES
) -> SeparationChain:
    """The chain with everyone available at the start; the general way, for R_i by unit and for laws over time.

    For one R the states are the ordered lists of what the last R rounds drew, sum_{k <= R} M! / (M - k)! of them when
    B = 1, the shorter lists of the first R rounds included.

    Args:
        p: weights, at least 0; a unit of weight 0 is never drawn.
        R: minimum separation, one for all or one for each unit.
        B: units a round, drawn by the product law.
        limit: the most states to build.

    Raises:
        ValueError: as `stationary_separation`; more states than the limit; or R_i that can leave a round with fewer
            than B units available.
    """
    _check_draw(p, B)
    M = len(p)
    separation = np.broadcast_to(np.asarray(R), (M,))
    check_least("R", int(separation.min()), 0)
    drawable = np.flatnonzero(p > 0)
    if isinstance(R, int):
        _check_enough(len(drawable), R, B)
        size = chain_size(len(drawable), R, B)
        if size > limit:
            raise ValueError(
                f"R: {R} is not allowed for the chain over {len(drawable)} units; it has {size:,} states, more than "
                f"the limit of {limit:,}: use stationary_separation or simulated_separation"
            )
    # A common factor of p changes nothing but could make products underflow.
    weight = p / p.max()
    start = (0,) * M
    index = {start: 0}
    states = [start]
    rows, columns, values = [], [], []
    draws = []
    for x, state in enumerate(states):  # grows as it is walked
        available = [i for i in drawable.tolist() if state[i] == 0]
        if len(available) < B:
            raise ValueError(f"R: not allowed; the state {state} of rounds to wait leaves fewer than B = {B} available")
        sets = list(combinations(available, B))
        chance = np.array([math.prod(weight[i] for i in drawn) for drawn in sets])
        chance /= chance.sum()
        rested = [max(rounds - 1, 0) for rounds in state]
        draw = np.zeros(M)
        for drawn, probability in zip(sets, chance.tolist(), strict=True):
            following = rested.copy()
            for i in drawn:
                following[i] = int(separation[i])
                draw[i] += probability
            key = tuple(following)
            y = index.setdefault(key, len(states))
            if y == len(states):
                if y == limit:
                    raise ValueError(f"R: not allowed for the chain; it has more states than the limit of {limit:,}")
                states.append(key)
            rows.append(x)
            columns.append(y)
            values.append(probability)
        draws.append(draw)
    S = len(states)
    # Sums up duplicates: with R = 0 every draw leads back to the same state.
    transition = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=(S, S)))
    return SeparationChain(np.array(states), transition, np.array(draws))


def chain_size(M: int, R: int, B: int = 1) -> int:
    """How many states the chain over M units has, those of the first R rounds included."""
    return sum(math.prod(math.comb(M - j * B, B) for j in range(k)) for k in range(R + 1))


def chain_separation(
    p: Float[np.ndarray, "M"], R: int | Int[np.ndarray, "M"], B: int = 1, limit: int = STATES
) -> Float[np.ndarray, "M"]:
    """pi_R [M] by the long run of `separation_chain`: small cases only, but R_i may differ by unit.

    Where the chain can end in more than one class, each counts with its probability from the start.

    Raises:
        ValueError: as `separation_chain`.
        RuntimeError: as `long_run_distribution`.
    """
    chain = separation_chain(p, R, B, limit)
    return long_run_distribution(chain.transition) @ chain.draw


def simulated_separation(
    p: Float[np.ndarray, "M"],
    R: int | Int[np.ndarray, "M"],
    rounds: int,
    seed: int,
    B: int = 1,
    chains: int = 64,
    burn_in: int | None = None,
) -> Estimate:
    """pi_R [M] by simulation of independent chains side by side, with standard errors from their spread.

    For B > 1 the units of a round are drawn one after another (the `successive` law, which has no closed form); for
    B = 1 the two laws are one.

    Args:
        p: weights, at least 0.
        R: minimum separation, one for all or one for each unit.
        rounds: rounds counted in each chain.
        seed: of the draws.
        B: units a round.
        chains: how many, at least 2.
        burn_in: rounds before counting starts; by default a tenth of the counted ones or ten times the longest
            separation, whichever is more. Each chain then waits up to R rounds more, at random.

    Raises:
        ValueError: as `separation_chain`, rounds below 1, burn_in below 0, or chains below 2.
    """
    check_least("rounds", rounds, 1)
    check_least("chains", chains, 2)
    if burn_in is None:
        burn_in = max(rounds // 10, 10 * int(np.max(R)))
    check_least("burn_in", burn_in, 0)
    counts = np.zeros((chains, len(p)))
    # Chains that start alike keep step for long: a heavy unit comes back every R + 1 rounds exactly, and a window over
    # the same rounds in all of them would miss or gain the same draw with no spread to show for it.
    longest = int(np.max(R))
    opening = burn_in + np.random.default_rng([seed, 1]).integers(longest + 1, size=chains)
    for t, (_, drawn) in zip(range(burn_in + longest + rounds), _walk(p, R, B, chains, seed), strict=False):
        counted = np.flatnonzero((t >= opening) & (t < opening + rounds))
        for unit in drawn:
            counts[counted, unit[counted]] += 1
    share = counts / rounds
    return Estimate(share.mean(axis=0), share.std(axis=0, ddof=1) / np.sqrt(chains))


def _walk(
    p: np.ndarray, R: int | np.ndarray, B: int, chains: int, seed: int
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """For each round the weights of the available units [chains, M] at its start, and the B units drawn [chains].

    The weights are 0 where a unit is not available. The array is reused from round to round.
    """
    _check_draw(p, B)
    separation = np.broadcast_to(np.asarray(R), p.shape)
    check_least("R", int(separation.min()), 0)
    if isinstance(R, int):
        _check_enough(int((p > 0).sum()), R, B)
    rng = np.random.default_rng(seed)
    each = np.arange(chains)
    weight = np.tile(p / p.max(), (chains, 1))
    scaled = weight[0].copy()
    # A ring over rounds: which (chain, unit) become available when.
    due: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(int(separation.max()) + 1)]
    t = 0
    while True:
        slot = due[t % len(due)]
        for chain, unit in slot:
            weight[chain, unit] = scaled[unit]
        slot.clear()
        at_start = weight if B == 1 else weight.copy()
        drawn = []
        for _ in range(B):
            cumulated = np.cumsum(weight, axis=1)
            total = cumulated[:, -1]
            if (total == 0).any():
                raise ValueError(f"R: not allowed; round {t} of a chain has fewer than B = {B} available")
            # The first unit whose cumulated weight exceeds the target has positive weight, at u = 0 too.
            target = rng.random(chains) * total
            unit = (cumulated > target[:, None]).argmax(axis=1)
            drawn.append(unit)
            if B > 1:
                weight[each, unit] = 0
        yield at_start, drawn
        for unit in drawn:
            weight[each, unit] = 0
            for r in np.unique(separation[unit]):
                chain = np.flatnonzero(separation[unit] == r)
                due[(t + 1 + int(r)) % len(due)].append((chain, unit[chain]))
        t += 1


@dataclass(frozen=True)
class Mixing:
    """How the law of the drawn unit settles ([Sun] Fig. 5).

    Attributes:
        eta: [T, M], eta_R(t), the distribution of the unit drawn in round t.
        stationary: [M], pi_R.
        distance: [T], TV(eta_R(t), pi_R).
        error: [T], its standard error; 0 where exact.
        floor: [T], the distance that sampling noise alone would show if eta_R(t) were pi_R; 0 where exact. An
            estimate at the floor says only that the distance is not larger.
        exact: by the chain, or by simulation.
    """

    eta: Float[np.ndarray, "T M"]
    stationary: Float[np.ndarray, "M"]
    distance: Float[np.ndarray, "T"]
    error: Float[np.ndarray, "T"]
    floor: Float[np.ndarray, "T"]
    exact: bool


def separation_mixing(
    p: Float[np.ndarray, "M"],
    R: int,
    horizon: int,
    seed: int = 0,
    chains: int = 2000,
    limit: int = 20_000,
) -> Mixing:
    """eta_R(t) and TV(eta_R(t), pi_R) for t = 0..horizon-1, B = 1, from the start where all are available.

    eta_R(0) = p. At R = M - 1 the roll call is cyclic and the distance does not go to 0. Exact while the chain has at
    most `limit` states. Otherwise eta is the mean, over simulated chains, of the drawing probabilities given what is
    available, which has the law's mean and far less noise than the draws; pi_R is exact in either case.

    Args:
        p: weights, at least 0.
        R: minimum separation.
        horizon: rounds.
        seed: of the simulation.
        chains: simulated side by side, a multiple of 20, at least 40.
        limit: the most states to treat exactly.

    Raises:
        ValueError: as `stationary_separation`, a horizon below 1, or a number of chains that is not allowed.
    """
    check_least("horizon", horizon, 1)
    pi = stationary_separation(p, R)
    M = len(p)
    zero = np.zeros(horizon)
    if chain_size(int((p > 0).sum()), R) <= limit:
        chain = separation_chain(p, R, limit=limit)
        back = chain.transition.T.tocsr()
        x = np.zeros(len(chain.draw))
        x[0] = 1.0
        eta = np.empty((horizon, M))
        for t in range(horizon):
            eta[t] = x @ chain.draw
            x = np.asarray(back @ x).ravel()
        return Mixing(eta, pi, np.abs(eta - pi).sum(axis=1) / 2, zero, zero, True)
    groups = 20
    if chains < 2 * groups or chains % groups:
        raise ValueError(f"chains: {chains} is not allowed; must be a multiple of {groups}, at least {2 * groups}")
    eta, error, floor = np.empty((horizon, M)), np.empty(horizon), np.empty(horizon)
    for t, (weight, _) in zip(range(horizon), _walk(p, R, 1, chains, seed), strict=False):
        chance = weight / weight.sum(axis=1, keepdims=True)
        eta[t] = chance.mean(axis=0)
        # The mean absolute value of a normal variable is sqrt(2 / pi) of its standard deviation.
        floor[t] = np.sqrt(2 / np.pi) * (chance.std(axis=0, ddof=1) / np.sqrt(chains)).sum() / 2
        # Jackknife over groups of chains: the distance is no mean, so its error is not a mean's.
        parts = chance.reshape(groups, -1, M).mean(axis=1)
        without = np.abs((groups * eta[t] - parts) / (groups - 1) - pi).sum(axis=1) / 2
        error[t] = np.sqrt((groups - 1) * without.var())
    return Mixing(eta, pi, np.abs(eta - pi).sum(axis=1) / 2, error, floor, False)


def separation_shares(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 200
) -> tuple[Float[np.ndarray, "T"], Float[np.ndarray, "T"]]:
    """How far a roll call's own record is from pi_R: the mean TV of the shares of the first t + 1 draws to pi_R, B = 1.

    Not the law of a draw but the shares drawn so far, of one roll call: at R = M - 1 they are even after every cycle.

    Args:
        p: weights, at least 0.
        R: minimum separation.
        horizon: T, rounds.
        seed: of the simulation.
        chains: roll calls averaged over, at least 2.

    Returns:
        The distances [T] for t = 0..T-1, and their standard errors.

    Raises:
        ValueError: as `stationary_separation`, a horizon below 1, or chains below 2.
    """
    check_least("horizon", horizon, 1)
    check_least("chains", chains, 2)
    pi = stationary_separation(p, R)
    counts = np.zeros((chains, len(p)))
    distance, error = np.empty(horizon), np.empty(horizon)
    for t, (_, (drawn,)) in zip(range(horizon), _walk(p, R, 1, chains, seed), strict=False):
        counts[np.arange(chains), drawn] += 1
        off = np.abs(counts / (t + 1) - pi).sum(axis=1) / 2
        distance[t], error[t] = off.mean(), off.std(ddof=1) / np.sqrt(chains)
    return distance, error


def _check_draw(p: np.ndarray, B: int) -> None:
    check_least("B", B, 1)
    if not np.isfinite(p).all() or (p < 0).any() or not (p > 0).any():
        raise ValueError("p: must be finite, at least 0 and not all 0")


def _check_enough(units: int, R: int, B: int) -> None:
    if units < B * (R + 1):
        raise ValueError(
            f"R: {R} is not allowed for {units} units of positive weight and B = {B}; "
            f"must be at most {units // B - 1}, so that every round finds {B} available"
        )
