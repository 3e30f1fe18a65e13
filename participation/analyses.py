"""Analyses: the papers' results about participation itself, without any learning.

An analysis takes a seed and returns a table. Its column `round` is the variable that it runs over (rounds, clients or
probabilities); the other columns are quantities. Keyword arguments are the options of an experiment file: `clients` m,
`classes` C, the concentration `alpha` of the clients' class distributions, a source `probability` of the p_i. Minimum
separation has `units` N, whose weights p follow `law` (see `unit_weights`) with the exponent `s` of `power_law`.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.participation.base import Participation, Population, check
from rollcall.participation.probabilities import Source, class_shares, class_weights
from rollcall.participation.statements import STATEMENTS
from rollcall.participation.streams import stream
from rollcall.participation.theory import separation as theory
from rollcall.participation.theory.weights import effective_weights_independent, l1_distance, normalised

UnitLaw: TypeAlias = Literal["uniform", "exponential", "power_law"]


def prop1_limit(
    seed: int, *, targets: np.ndarray, probability: np.ndarray, gamma: float = 0.0, period: int = 40
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
        gamma: depth of the variation p_i^t = p_i (1 - gamma + gamma sin(2 pi t / period)), at most 1/2.
        period: P, rounds.
    """
    check("gamma", gamma, 0, 0.5)
    phases = range(period if gamma else 1)
    at = [
        np.asarray(probability, dtype=np.float64) * (1 - gamma + gamma * np.sin(2 * np.pi * t / period)) for t in phases
    ]
    coefficients = normalised(np.sum([_coefficients(p) for p in at], axis=0))
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


ANALYSES: dict[str, Callable[..., pd.DataFrame]] = {
    "prop1_limit": prop1_limit,
    "class_weights_sorted": class_weights_sorted,
    "probabilities_sorted": probabilities_sorted,
    "probabilities_histogram": probabilities_histogram,
    "uplink": uplink,
    "separation_distance": separation_distance,
    "separation_simulated": separation_simulated,
    "separation_mixing": separation_mixing,
    **STATEMENTS,
}
