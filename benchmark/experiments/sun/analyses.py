"""Analyses of [Sun]: results about participation itself, and checks of single statements, without training.

Exact, or on roll calls. Claims put bounds on the columns of a table.
"""

from itertools import permutations
from math import gcd, perm, prod
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.participation.analyses import row
from rollcall.participation.streams import stream
from rollcall.participation.theory import separation as theory
from rollcall.participation.theory.weights import (
    l1_distance,
    normalised,
)


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
    return row(
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
    return row(
        states=len(states) / formula,
        nonzero=max(map(len, following.values())) / entries,
        columns=max(back.values()) / entries,
        reached=len(level) / len(states),
        period=period,
    )


UnitLaw: TypeAlias = Literal["uniform", "exponential", "power_law"]


def separation_distance(seed: int, *, units: int = 500, law: UnitLaw = "uniform", s: float = 1.5) -> pd.DataFrame:
    """||pi_R - 1/N||_1 for R = 0..N-1, exact, and the largest rise from one R to the next so far ([Sun] Fig. 1)."""
    p = unit_weights(seed, units, law, s)
    uniform = np.full(units, 1 / units)
    distance = np.array([l1_distance(uniform, theory.stationary_separation(p, R)) for R in range(units)])
    rise = np.maximum.accumulate(np.diff(distance, prepend=distance[0]))
    return pd.DataFrame({"round": np.arange(units), "distance": distance, "largest_rise": rise})


def separation_simulated(
    seed: int, *, separations: np.ndarray, rounds: int, units: int = 500, law: UnitLaw = "uniform", s: float = 1.5
) -> pd.DataFrame:
    """pi_R of [Sun] Fig. 1 by simulation, beside the exact law at the same R.

    Columns: `distance`, ||pi_R - 1/N||_1 of the simulated shares, to which their noise adds; `apart`, the distance
    ||simulated - exact||_1; `noise`, its expected value if the exact law is right.

    Args:
        seed: of the random p and of the simulation.
        separations: R.
        rounds: counted in each of 64 chains.
    """
    p = unit_weights(seed, units, law, s)
    rows = []
    for R in separations.tolist():
        simulated, error = theory.simulated_separation(p, R, rounds, seed)
        distance, apart = (np.abs(simulated - pi).sum() for pi in (1 / units, theory.stationary_separation(p, R)))
        rows.append({"round": R, "distance": distance, "apart": apart, "noise": np.sqrt(2 / np.pi) * error.sum()})
    return pd.DataFrame(rows)


def separation_mixing(
    seed: int, *, separation: int, units: int = 100, law: UnitLaw = "uniform", s: float = 1.5, rounds: int = 200
) -> pd.DataFrame:
    """Convergence of minimum separation to its stationary law, over t = 0, 1, ... ([Sun] Fig. 5).

    Columns: `distance`, TV(eta_R(t), pi_R) with eta_R(t) the law of the unit drawn in round t, simulated; `shares`, the
    mean TV between pi_R and the shares of the units drawn in one roll call up to round t.

    Args:
        seed: of the random p and of the simulation.
        separation: R.
        rounds: t from 0 to here, exclusive.
    """
    p = unit_weights(seed, units, law, s)
    laws = theory.separation_laws(p, separation, rounds, seed)
    distance = np.abs(laws - theory.stationary_separation(p, separation)).sum(axis=1) / 2
    shares = theory.separation_shares(p, separation, rounds, seed)
    return pd.DataFrame({"round": np.arange(rounds), "distance": distance, "shares": shares})


def unit_weights(seed: int, units: int, law: UnitLaw, s: float) -> Float[np.ndarray, "N"]:
    """p of the units, of sum 1: U(0, 1) draws, exponential draws (a uniform point of the simplex), or i^-s."""
    if law == "power_law":
        return normalised(np.arange(1, units + 1, dtype=np.float64) ** -s)
    draw = stream(seed, "probabilities")
    return normalised(draw.random(units) if law == "uniform" else draw.exponential(size=units))
