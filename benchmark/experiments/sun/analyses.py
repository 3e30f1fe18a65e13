"""Analyses of [Sun]: participation itself and single statements, exact or on roll calls; claims bound their columns."""

from collections import deque
from collections.abc import Iterator
from itertools import combinations, permutations
from math import gcd, perm, prod
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.participation.analyses import row
from rollcall.participation.base import stream
from rollcall.participation.minimum_separation import stationary_separation
from rollcall.participation.weights import l1_distance, normalised


def separation_law(
    seed: int, *, weights: np.ndarray, separation: int, batch: int = 1, targets: np.ndarray | None = None
) -> pd.DataFrame:
    """pi_R of minimum separation, exact, with the product law of a set ([Sun] Eq. 3).

    Columns: `distance`, ||pi_R / B - 1/N||_1, and `squared`, its square; `from_p`, ||pi_R / B - p||_1; `scaled`, N
    times `distance`; `largest`, the largest entry of pi_R / B; `train/bias`, of the minimiser of the quadratics
    (x - u_i)^2 / 2 with weights pi_R, as in the task `quadratic`, u being `targets`.
    """
    p = normalised(np.asarray(weights, dtype=np.float64))
    pi = stationary_separation(p, separation, batch) / batch
    distance = l1_distance(np.full(len(p), 1 / len(p)), pi)
    u = np.zeros(len(p)) if targets is None else np.asarray(targets, dtype=np.float64)
    return row(
        distance=distance,
        squared=distance**2,
        from_p=l1_distance(p, pi),
        scaled=len(p) * distance,
        largest=pi.max(),
        **{"train/bias": pi @ u - u.mean()},
    )


def first_set(seed: int, *, weights: np.ndarray, batch: int) -> pd.DataFrame:
    """The first set of B units by both laws of [Sun] section 3: in proportion to the sum of its p, and to the product.

    Columns: `apart`, the L1 distance between the units' shares by the two.
    """
    p, sets = normalised(np.asarray(weights, dtype=np.float64)), [*combinations(range(len(weights)), batch)]
    masks = np.array([np.isin(np.arange(len(p)), one) for one in sets])
    of_sum, of_product = (normalised(law) @ masks / batch for law in (masks @ p, np.where(masks, p, 1.0).prod(axis=1)))
    return row(apart=l1_distance(of_sum, of_product))


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
    return row(
        states=len(states) / formula,
        nonzero=max(map(len, following.values())) / entries,
        columns=max(back.values()) / entries,
        reached=len(level) / len(states),
        period=period,
    )


def separation_mixing_time(seed: int, *, weights: np.ndarray, separation: int) -> pd.DataFrame:
    """The mixing time t_mix(1/4) of the chain of the last R draws, R >= 1, B = 1, by enumeration ([Sun] Definition 4).

    Column: `mixing`, the first number of rounds after which the total variation between the law of the chain, from any
    state, and its stationary law is at most 1/4. R < N - 1: at N - 1 the chain is periodic and has none.
    """
    p = normalised(np.asarray(weights, dtype=np.float64))
    states = list(permutations(range(len(p)), separation))
    index = {s: row for row, s in enumerate(states)}
    step = np.zeros((len(states), len(states)))
    for s in states:
        for i in set(range(len(p))) - set(s):
            step[index[s], index[*s[1:], i]] = p[i] / (1 - p[list(s)].sum())
    balance = np.vstack([step.T - np.eye(len(states)), np.ones(len(states))])  # pi P = pi, and pi has the sum 1
    stationary = np.linalg.lstsq(balance, np.eye(len(states) + 1)[-1])[0]
    law, rounds = step, 1
    while np.abs(law - stationary).sum(axis=1).max() / 2 > 1 / 4:
        law, rounds = law @ step, rounds + 1
    return row(mixing=rounds)


def separation_slowest_mode(seed: int, *, separation: int, units: int = 100) -> pd.DataFrame:
    """How slowly the law of the unit drawn in round t nears pi_R, exact for equal p and B = 1 ([Sun] Appendix I).

    A unit is drawn in round t with probability a_t = (1 - a_{t-1} - ... - a_{t-R}) / (N - R): it must not be one of the
    last R, and all N - R others are equally likely. Column: `slowest`, the factor per round by which a_t - 1/N shrinks
    in the end, which is the largest root of (N - R) z^R + z^(R-1) + ... + 1; 0 at R = 0. R < N - 1.
    """
    roots = np.roots([units - separation, *np.ones(separation)])
    return row(slowest=np.abs(roots).max(initial=0.0))


UnitLaw: TypeAlias = Literal["uniform", "exponential"]


def separation_distance(seed: int, *, units: int = 500, law: UnitLaw = "uniform") -> pd.DataFrame:
    """||pi_R - 1/N||_1 for R = 0..N-1, exact, and the largest rise from one R to the next so far ([Sun] Fig. 1)."""
    p = unit_weights(seed, units, law)
    uniform = np.full(units, 1 / units)
    distance = np.array([l1_distance(uniform, stationary_separation(p, R)) for R in range(units)])
    rise = np.maximum.accumulate(np.diff(distance, prepend=distance[0]))
    return pd.DataFrame({"round": np.arange(units), "distance": distance, "largest_rise": rise})


def separation_simulated(
    seed: int, *, separations: np.ndarray, rounds: int, units: int = 500, law: UnitLaw = "uniform"
) -> pd.DataFrame:
    """pi_R of [Sun] Fig. 1 by simulation, beside the exact law at the same R.

    Columns: `distance`, ||pi_R - 1/N||_1 of the simulated shares, to which their noise adds; `apart`, the distance
    ||simulated - exact||_1; `noise`, its expected value if the exact law is right.

    Args:
        seed: of the random p and of the simulation.
        separations: R.
        rounds: counted in each of 64 chains.
    """
    p = unit_weights(seed, units, law)
    rows = []
    for R in separations.tolist():
        simulated, error = simulated_separation(p, R, rounds, seed)
        distance, apart = (np.abs(simulated - pi).sum() for pi in (1 / units, stationary_separation(p, R)))
        rows.append({"round": R, "distance": distance, "apart": apart, "noise": np.sqrt(2 / np.pi) * error.sum()})
    return pd.DataFrame(rows)


def separation_mixing(
    seed: int, *, separation: int, units: int = 100, law: UnitLaw = "uniform", rounds: int = 200
) -> pd.DataFrame:
    """Convergence of minimum separation to its stationary law, over t = 0, 1, ... ([Sun] Fig. 5).

    Columns: `distance`, TV(eta_R(t), pi_R) with eta_R(t) the law of the unit drawn in round t, simulated; `shares`, the
    mean over 200 roll calls of the TV between pi_R and the shares of the units drawn up to round t. At R = N - 1 the
    shares are even after each cycle.

    Args:
        seed: of the random p and of the simulation.
        separation: R.
        rounds: t from 0 to here, exclusive.
    """
    p = unit_weights(seed, units, law)
    pi = stationary_separation(p, separation)
    distance = np.abs(separation_laws(p, separation, rounds, seed) - pi).sum(axis=1) / 2
    each, counts, shares = np.arange(200), np.zeros((200, units)), np.empty(rounds)
    for t, (_, drawn) in zip(range(rounds), _walk(p, separation, len(each), seed), strict=False):
        counts[each, drawn] += 1
        shares[t] = (np.abs(counts / (t + 1) - pi).sum(axis=1) / 2).mean()
    return pd.DataFrame({"round": np.arange(rounds), "distance": distance, "shares": shares})


def unit_weights(seed: int, units: int, law: UnitLaw) -> Float[np.ndarray, "N"]:
    """p of the units, of sum 1: U(0, 1) draws, or exponential draws (a uniform point of the simplex)."""
    draw = stream(seed, "probabilities")
    return normalised(draw.random(units) if law == "uniform" else draw.exponential(size=units))


def simulated_separation(
    p: Float[np.ndarray, "M"], R: int, rounds: int, seed: int, chains: int = 64
) -> tuple[Float[np.ndarray, "M"], Float[np.ndarray, "M"]]:
    """Long-run share of rounds pi_R in which each unit is drawn, B = 1, and its standard error, by simulation.

    The error is from the spread between chains. Each chain first runs for a tenth of `rounds`, or 10 R if that is more,
    and up to R more rounds at random; then `rounds` rounds are counted.
    """
    counts = np.zeros((chains, len(p)))
    # Chains that start in the same state stay synchronous for long: a heavy unit returns every R + 1 rounds exactly.
    # If all chains counted the same rounds, all would miss or gain the same draw, and the spread would not show it.
    burn_in = max(rounds // 10, 10 * R)
    opening = burn_in + np.random.default_rng([seed, 1]).integers(R + 1, size=chains)
    for t, (_, unit) in zip(range(burn_in + R + rounds), _walk(p, R, chains, seed), strict=False):
        counted = np.flatnonzero((t >= opening) & (t < opening + rounds))
        counts[counted, unit[counted]] += 1
    share = counts / rounds
    return share.mean(axis=0), share.std(axis=0, ddof=1) / np.sqrt(chains)


def separation_laws(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 2000
) -> Float[np.ndarray, "T M"]:
    """The laws eta_R(t) of the unit drawn in round t = 0..T-1, T = horizon, B = 1, all units available at first.

    eta_R(0) = p. eta_R(t) is the mean, over simulated chains, of the probabilities of the next draw given the available
    units. That has the same mean as the draws and much less noise; at R = 0 it has none.
    """
    walk = zip(range(horizon), _walk(p, R, chains, seed), strict=False)
    return np.stack([(weight / weight.sum(axis=1, keepdims=True)).mean(axis=0) for _, (weight, _) in walk])


def _walk(p: np.ndarray, R: int, chains: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Simulate chains round by round, without end.

    Yields:
        The weights [chains, M] of the units at the start of the round, 0 for a unit that is not available (the array
        is reused from round to round); and the unit drawn [chains].
    """
    rng = np.random.default_rng(seed)
    scaled = p / p.max()
    weight = np.tile(scaled, (chains, 1))
    each = np.arange(chains)
    waiting: deque[np.ndarray] = deque()  # the units drawn in the last R rounds, oldest first
    while True:
        if len(waiting) > R:
            back = waiting.popleft()
            weight[each, back] = scaled[back]
        cumulated = np.cumsum(weight, axis=1)
        # The first unit whose cumulated weight exceeds the target has positive weight, even for a target of 0.
        target = rng.random(chains) * cumulated[:, -1]
        unit = (cumulated > target[:, None]).argmax(axis=1)
        yield weight, unit
        weight[each, unit] = 0
        waiting.append(unit)
