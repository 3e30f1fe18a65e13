"""Minimum separation [Sun et al. 2025]: how often each unit is drawn, and how soon its law becomes stationary.

**The model.** Units are numbered 0..M-1. A unit drawn in round t is available again from round t + R + 1 on (R_i if R
differs by unit). Each round draws B units from the available ones: for B = 1 one unit with probability proportional
to p; for B > 1 a set with probability proportional to the product of p over the set (the `product` law, Proposition
1(2)). At the start all units are available. pi_R is the share of rounds in which a unit is drawn, so it sums to B.

**The stationary law.** Take one R for all units. The state is the list S_1, ..., S_R of the sets drawn in the last R
rounds. Write S for their union, S^c for the other units, and e_B(S^c) for the sum over all B-subsets U of S^c of
prod_U p. The next set is U with probability prod_U p / e_B(S^c). Then

    mu(S_1, ..., S_R)  proportional to  prod_{i in S} p_i * e_B(S^c)

is stationary. The flow into (S_2, ..., S_R, U) is the sum, over sets S_1 disjoint from S' = S_2 + ... + S_R + U, of
prod_S p * prod_U p = prod_S' p * prod_{S_1} p, and the sum over S_1 of the last factor is e_B(S'^c).

So the n = B (R + 1) units of R + 1 consecutive rounds form a set that is drawn with probability proportional to its
product of p, whatever their order (conditional Poisson sampling). By symmetry over the R + 1 rounds

    pi_R(i) = p_i e_{n-1}(p without i) / ((R + 1) e_n(p)),    e_k: the elementary symmetric polynomials.

For B = 1 this is p at R = 0 and uniform at R = M - 1. At n = M the chain is periodic and has one class for each cyclic
order, but all classes have the same shares.

Where this does not apply (R differs by unit, B units are drawn one after another, laws over time), small cases are
computed from the Markov chain over the rounds that each unit still waits, and large ones are simulated.
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

from rollcall.participation.theory.chains import long_run_distribution
from rollcall.participation.theory.checks import check_least
from rollcall.participation.theory.empirical import Estimate

STATES = 50_000
"""The largest number of states that a chain is built for, by default."""

GROUPS = 20
"""Groups of simulated chains for the jackknife error."""

State = tuple[int, ...]
"""For each unit, the rounds for which it is still unavailable."""


def stationary_separation(p: Float[np.ndarray, "M"], R: int, B: int = 1) -> Float[np.ndarray, "M"]:
    """Long-run share of rounds pi_R in which each unit is drawn, exact to rounding for any M and R.

    The module's docstring has the derivation. Time and memory are O(M R B). If R differs by unit there is no closed
    form; use `chain_separation`.

    Args:
        p: weights [M], at least 0, of any sum. A unit of weight 0 is never drawn.
        R: minimum separation, at least 0.
        B: units drawn in each round, by the product law.

    Returns:
        pi_R [M], which sums to B.

    Raises:
        ValueError: a negative weight, R below 0, B below 1, or fewer than B (R + 1) units of positive weight, so that
            some round would find fewer than B units available.
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
    """P(i in T) [M] for a set T of n units drawn with probability proportional to prod_T p.

    Let each unit be in T independently with odds theta p_i. Given that T has n units, it has the required law for any
    theta. The theta for which T has n units on average keeps all quantities far from underflow.
    """
    M = len(p)
    if n == M:
        return np.ones(M)
    log_p = np.log(p)
    low = -log_p.max() - np.log(M) + np.log(n) - 1
    high = -log_p.min() + np.log(M) + 1
    log_theta = float(brentq(lambda tilt: expit(tilt + log_p).sum() - n, low, high))
    on, off = expit(log_theta + log_p), expit(-log_theta - log_p)
    # before[i] and after[i] are the distributions of the number of units in T among those before i, and from i on.
    # They only add non-negative terms. Dividing one unit out of the product over all units would lose digits.
    before, after = np.zeros((M + 1, n + 1)), np.zeros((M + 1, n + 1))
    before[0, 0] = after[M, 0] = 1
    for i in range(M):
        before[i + 1] = before[i] * off[i]
        before[i + 1, 1:] += before[i, :-1] * on[i]
    for i in reversed(range(M)):
        after[i] = after[i + 1] * off[i]
        after[i, 1:] += after[i + 1, :-1] * on[i]
    without_i = (before[:-1, :n] * after[1:, n - 1 :: -1]).sum(axis=1)
    return on * without_i / before[M, n]


@dataclass(frozen=True)
class SeparationChain:
    """The Markov chain of minimum separation, over the states that can be reached from state 0, the start.

    Attributes:
        cooldown: [S, M], rounds for which each unit is still unavailable in each state, including the coming round.
        transition: sparse [S, S], rows sum to 1.
        draw: [S, M], probability that each unit is drawn in the coming round; rows sum to B.
    """

    cooldown: Int[np.ndarray, "S M"]
    transition: sparse.csr_array
    draw: Float[np.ndarray, "S M"]


def separation_chain(
    p: Float[np.ndarray, "M"], R: int | Int[np.ndarray, "M"], B: int = 1, limit: int = STATES
) -> SeparationChain:
    """Build the Markov chain of minimum separation that starts with all units available.

    With one R for all units the states are the ordered lists of the sets drawn in the last R rounds. For B = 1 there
    are sum_{k <= R} M! / (M - k)! of them, including the shorter lists of the first R rounds.

    Args:
        p: weights [M], at least 0. A unit of weight 0 is never drawn.
        R: minimum separation, one number or one for each unit.
        B: units drawn in each round, by the product law.
        limit: the largest number of states to build.

    Raises:
        ValueError: as `stationary_separation`; more states than the limit; or R_i that can leave a round with fewer
            than B units available.
    """
    separation = np.broadcast_to(np.asarray(R), p.shape)
    _check_chain(p, R, separation, B, limit)
    # A common factor of p changes nothing, but products of small p could underflow.
    weight = p / p.max()
    start: State = (0,) * len(p)
    index = {start: 0}
    states = [start]
    rows, columns, values = [], [], []
    draws = []
    for x, state in enumerate(states):  # `states` grows while it is walked through
        sets, chance = _law_of_draw(weight, state, B)
        draw = np.zeros(len(p))
        for drawn, probability in zip(sets, chance.tolist(), strict=True):
            draw[list(drawn)] += probability
            following = _next(state, drawn, separation)
            y = index.setdefault(following, len(states))
            if y == len(states):
                if y == limit:
                    raise ValueError(f"R: not allowed for the chain; it has more states than the limit of {limit:,}")
                states.append(following)
            rows.append(x)
            columns.append(y)
            values.append(probability)
        draws.append(draw)
    S = len(states)
    # Converting to CSR adds up duplicates: with R = 0 every draw leads back to the same state.
    transition = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=(S, S)))
    return SeparationChain(np.array(states), transition, np.array(draws))


def _chain_size(M: int, R: int, B: int = 1) -> int:
    """Number of states of the chain over M units of positive weight, including those of the first R rounds."""
    return sum(math.prod(math.comb(M - j * B, B) for j in range(k)) for k in range(R + 1))


def chain_separation(
    p: Float[np.ndarray, "M"], R: int | Int[np.ndarray, "M"], B: int = 1, limit: int = STATES
) -> Float[np.ndarray, "M"]:
    """Long-run share of rounds pi_R in which each unit is drawn, from the Markov chain; R_i may differ by unit.

    Only for small cases. If the chain can end in more than one class, each class counts with the probability that the
    start leads to it.

    Args:
        p: weights [M], at least 0.
        R: minimum separation, one number or one for each unit.
        B: units drawn in each round, by the product law.
        limit: the largest number of states to build.

    Returns:
        pi_R [M], which sums to B.

    Raises:
        ValueError: as `separation_chain`.
        RuntimeError: as `long_run_distribution`.
    """
    chain = separation_chain(p, R, B, limit)
    return long_run_distribution(chain.transition) @ chain.draw


def _check_chain(p: np.ndarray, R: int | np.ndarray, separation: np.ndarray, B: int, limit: int) -> None:
    """Refuse arguments for which there is no chain, or one that is known to be too large."""
    _check_draw(p, B)
    check_least("R", int(separation.min()), 0)
    if isinstance(R, int):
        drawable = int((p > 0).sum())
        _check_enough(drawable, R, B)
        size = _chain_size(drawable, R, B)
        if size > limit:
            raise ValueError(
                f"R: {R} is not allowed for the chain over {drawable} units; it has {size:,} states, more than "
                f"the limit of {limit:,}: use stationary_separation or simulated_separation"
            )


def _law_of_draw(weight: np.ndarray, state: State, B: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """The sets that can be drawn in a state, and the probability of each by the product law."""
    available = [i for i, rounds in enumerate(state) if rounds == 0 and weight[i] > 0]
    if len(available) < B:
        raise ValueError(f"R: not allowed; the state {state} of rounds to wait leaves fewer than B = {B} available")
    sets = list(combinations(available, B))
    chance = np.array([math.prod(weight[i] for i in drawn) for drawn in sets])
    return sets, chance / chance.sum()


def _next(state: State, drawn: tuple[int, ...], separation: np.ndarray) -> State:
    """The state after these units were drawn."""
    following = [max(rounds - 1, 0) for rounds in state]
    for i in drawn:
        following[i] = int(separation[i])
    return tuple(following)


def simulated_separation(
    p: Float[np.ndarray, "M"],
    R: int | Int[np.ndarray, "M"],
    rounds: int,
    seed: int,
    B: int = 1,
    chains: int = 64,
    burn_in: int | None = None,
) -> Estimate:
    """Long-run share of rounds pi_R in which each unit is drawn, estimated from simulated chains.

    For B > 1 the units of a round are drawn one after another (the `successive` law, which has no closed form). For
    B = 1 this law and the product law are the same.

    Args:
        p: weights [M], at least 0.
        R: minimum separation, one number or one for each unit.
        rounds: rounds counted in each chain.
        seed: of the draws.
        B: units drawn in each round.
        chains: number of chains, at least 2.
        burn_in: rounds before counting starts. Default: a tenth of `rounds`, or ten times the largest separation if
            that is more. Each chain then waits for up to R more rounds, at random.

    Returns:
        pi_R [M] and its standard error, from the spread between chains.

    Raises:
        ValueError: as `separation_chain`; rounds below 1, burn_in below 0, or chains below 2.
    """
    check_least("rounds", rounds, 1)
    check_least("chains", chains, 2)
    longest = int(np.max(R))
    if burn_in is None:
        burn_in = max(rounds // 10, 10 * longest)
    check_least("burn_in", burn_in, 0)
    counts = np.zeros((chains, len(p)))
    # Chains that start in the same state stay synchronous for long: a heavy unit returns every R + 1 rounds exactly.
    # If all chains counted the same rounds, all would miss or gain the same draw, and the spread would not show it.
    opening = burn_in + np.random.default_rng([seed, 1]).integers(longest + 1, size=chains)
    for t, (_, drawn) in zip(range(burn_in + longest + rounds), _walk(p, R, B, chains, seed), strict=False):
        counted = np.flatnonzero((t >= opening) & (t < opening + rounds))
        for unit in drawn:
            counts[counted, unit[counted]] += 1
    share = counts / rounds
    return Estimate(share.mean(axis=0), share.std(axis=0, ddof=1) / np.sqrt(chains))


def separation_shares(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 200
) -> tuple[Float[np.ndarray, "T"], Float[np.ndarray, "T"]]:
    """Mean total variation distance between pi_R and the shares of the first t + 1 draws of one roll call, B = 1.

    This is not the law of one draw, but the record of one roll call. At R = M - 1 the shares are even after each cycle.

    Args:
        p: weights [M], at least 0.
        R: minimum separation.
        horizon: T, number of rounds.
        seed: of the simulation.
        chains: number of roll calls to average over, at least 2.

    Returns:
        The distances [T] for t = 0..T-1, and their standard errors [T].

    Raises:
        ValueError: as `stationary_separation`; a horizon below 1, or chains below 2.
    """
    check_least("horizon", horizon, 1)
    check_least("chains", chains, 2)
    pi = stationary_separation(p, R)
    counts = np.zeros((chains, len(p)))
    distance, error = np.empty(horizon), np.empty(horizon)
    for t, (_, (drawn,)) in zip(range(horizon), _walk(p, R, 1, chains, seed), strict=False):
        counts[np.arange(chains), drawn] += 1
        away = np.abs(counts / (t + 1) - pi).sum(axis=1) / 2
        distance[t], error[t] = away.mean(), away.std(ddof=1) / np.sqrt(chains)
    return distance, error


def _walk(
    p: np.ndarray, R: int | np.ndarray, B: int, chains: int, seed: int
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Simulate chains round by round, without end.

    Yields:
        The weights [chains, M] of the units at the start of the round, 0 for a unit that is not available (the array
        is reused from round to round); and the B units drawn, each as [chains].
    """
    _check_draw(p, B)
    separation = np.broadcast_to(np.asarray(R), p.shape)
    check_least("R", int(separation.min()), 0)
    if isinstance(R, int):
        _check_enough(int((p > 0).sum()), R, B)
    rng = np.random.default_rng(seed)
    scaled = p / p.max()
    weight = np.tile(scaled, (chains, 1))
    # A ring over rounds: which (chain, unit) become available at the start of each.
    due: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(int(separation.max()) + 1)]
    t = 0
    while True:
        slot = due[t % len(due)]
        for chain, unit in slot:
            weight[chain, unit] = scaled[unit]
        slot.clear()
        at_start = weight if B == 1 else weight.copy()
        drawn = _draw(weight, B, t, rng)
        yield at_start, drawn
        for unit in drawn:
            weight[np.arange(chains), unit] = 0
            for r in np.unique(separation[unit]):
                chain = np.flatnonzero(separation[unit] == r)
                due[(t + 1 + int(r)) % len(due)].append((chain, unit[chain]))
        t += 1


def _draw(weight: np.ndarray, B: int, t: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The B units of a round in each chain, one after another. For B > 1, sets the weights of those drawn to 0."""
    chains = len(weight)
    drawn = []
    for _ in range(B):
        cumulated = np.cumsum(weight, axis=1)
        total = cumulated[:, -1]
        if (total == 0).any():
            raise ValueError(f"R: not allowed; round {t} of a chain has fewer than B = {B} available")
        # The first unit whose cumulated weight exceeds the target has positive weight, even for a target of 0.
        target = rng.random(chains) * total
        unit = (cumulated > target[:, None]).argmax(axis=1)
        drawn.append(unit)
        if B > 1:
            weight[np.arange(chains), unit] = 0
    return drawn


@dataclass(frozen=True)
class Mixing:
    """Distance of the law of the drawn unit from its stationary law, round by round ([Sun] Fig. 5).

    Attributes:
        eta: [T, M], eta_R(t), the distribution of the unit drawn in round t.
        stationary: [M], pi_R.
        distance: [T], the total variation TV(eta_R(t), pi_R).
        error: [T], its standard error; 0 where exact.
        floor: [T], the distance that sampling noise alone would show if eta_R(t) were pi_R; 0 where exact. An estimate
            near the floor only says that the distance is not larger than that.
        exact: whether computed from the chain (else simulated).
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
    """The laws eta_R(t) of the drawn unit and TV(eta_R(t), pi_R) for t = 0..T-1, B = 1, all units available at first.

    eta_R(0) = p. At R = M - 1 the roll call is cyclic and the distance does not go to 0. The result is exact if the
    chain has at most `limit` states. Otherwise eta_R(t) is the mean, over simulated chains, of the probabilities of
    the next draw given the available units. That has the same mean as the draws and much less noise. pi_R is exact in
    both cases.

    Args:
        p: weights [M], at least 0.
        R: minimum separation.
        horizon: T, number of rounds.
        seed: of the simulation.
        chains: number of simulated chains, a multiple of 20, at least 40.
        limit: the largest number of states to treat exactly.

    Raises:
        ValueError: as `stationary_separation`; a horizon below 1, or a number of chains that is not allowed.
    """
    check_least("horizon", horizon, 1)
    pi = stationary_separation(p, R)
    if _chain_size(int((p > 0).sum()), R) <= limit:
        return _exact(p, R, horizon, pi, limit)
    if chains < 2 * GROUPS or chains % GROUPS:
        raise ValueError(f"chains: {chains} is not allowed; must be a multiple of {GROUPS}, at least {2 * GROUPS}")
    return _simulated(p, R, horizon, pi, seed, chains)


def _exact(p: np.ndarray, R: int, horizon: int, pi: np.ndarray, limit: int) -> Mixing:
    """By powers of the chain's transition matrix."""
    chain = separation_chain(p, R, limit=limit)
    back = chain.transition.T.tocsr()
    x = np.zeros(len(chain.draw))  # the distribution over states
    x[0] = 1.0
    eta = np.empty((horizon, len(p)))
    for t in range(horizon):
        eta[t] = x @ chain.draw
        x = np.asarray(back @ x).ravel()
    zero = np.zeros(horizon)
    return Mixing(eta, pi, np.abs(eta - pi).sum(axis=1) / 2, zero, zero, True)


def _simulated(p: np.ndarray, R: int, horizon: int, pi: np.ndarray, seed: int, chains: int) -> Mixing:
    """By the mean over simulated chains."""
    M = len(p)
    eta, error, floor = np.empty((horizon, M)), np.empty(horizon), np.empty(horizon)
    for t, (weight, _) in zip(range(horizon), _walk(p, R, 1, chains, seed), strict=False):
        chance = weight / weight.sum(axis=1, keepdims=True)
        eta[t] = chance.mean(axis=0)
        # The mean absolute value of a normal variable is sqrt(2 / pi) times its standard deviation.
        floor[t] = np.sqrt(2 / np.pi) * (chance.std(axis=0, ddof=1) / np.sqrt(chains)).sum() / 2
        # Jackknife over groups of chains: the distance is not a mean, so its error is not that of a mean.
        groups = chance.reshape(GROUPS, -1, M).mean(axis=1)
        without = np.abs((GROUPS * eta[t] - groups) / (GROUPS - 1) - pi).sum(axis=1) / 2
        error[t] = np.sqrt((GROUPS - 1) * without.var())
    return Mixing(eta, pi, np.abs(eta - pi).sum(axis=1) / 2, error, floor, False)


def _check_draw(p: np.ndarray, B: int) -> None:
    """Refuse weights that are negative, not finite or all 0, and B below 1."""
    check_least("B", B, 1)
    if not np.isfinite(p).all() or (p < 0).any() or not (p > 0).any():
        raise ValueError("p: must be finite, at least 0 and not all 0")


def _check_enough(units: int, R: int, B: int) -> None:
    """Refuse an R that could leave fewer than B of the units of positive weight available."""
    if units < B * (R + 1):
        raise ValueError(
            f"R: {R} is not allowed for {units} units of positive weight and B = {B}; "
            f"must be at most {units // B - 1}, so that every round finds {B} available"
        )
