"""Analyses: what the papers show of roll calls themselves, laws and pictures without any learning.

An analysis takes a seed and gives a table with the column `round`, which is what it runs over (rounds, clients or
probabilities), and a column for each quantity; its keyword arguments are the options of an experiment file.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float

from rollcall.participation import theory
from rollcall.participation.base import Participation, Population
from rollcall.participation.probabilities import Source, class_weights
from rollcall.participation.streams import stream

UnitLaw: TypeAlias = Literal["uniform", "exponential", "power_law"]


def prop1_limit(seed: int, *, targets: np.ndarray, probability: np.ndarray) -> pd.DataFrame:
    """Where E[x] of FedAvg tends on scalar quadratics 0.5 (x - u_i)^2 under independent uplinks ([PBC] Proposition 1).

    The limit is the mean of the u_i under FedAvg's effective weights E[1{i in A}/|A|], whatever eta and K; for
    u = (0, 100), p_1 = 0.5 it is 150 p_2 / (1 + p_2).

    Columns are x, and `train/bias` as the task `quadratic` has it: x less the mean of the u_i, which is the optimum.

    Args:
        seed: has no part in it.
        targets: u, [m].
        probability: p, [m].
    """
    weights = theory.normalised(theory.effective_weights_independent(np.asarray(probability, dtype=np.float64)))
    x = float(weights @ targets)
    return pd.DataFrame({"round": [0], "x": [x], "train/bias": [x - float(np.mean(targets))]})


def class_weights_sorted(seed: int, *, classes: int = 10, sigma0: float = 10.0) -> pd.DataFrame:
    """r of `class_coupled`, the weights by which availability follows the classes, largest first ([PBC] Fig. 4).

    Args:
        seed: of the draw.
        classes: C.
        sigma0: standard deviation of log r'.
    """
    r = np.sort(class_weights(seed, classes, sigma0))[::-1]
    return pd.DataFrame({"round": np.arange(classes), "r": r})


def probabilities_sorted(
    seed: int, *, probability: Source, clients: int = 100, classes: int = 10, alpha: float = 0.1
) -> pd.DataFrame:
    """p_i of clients with Dirichlet(alpha) class distributions, smallest first ([PBC] Fig. 4).

    They are those that the clients of a data set of as many classes have under `dirichlet` and the same seed, if no
    client had to be drawn anew.

    Args:
        seed: of the draws.
        probability: where p_i comes from, such as `class_coupled`.
        clients: m.
        classes: C.
        alpha: concentration.
    """
    p = np.sort(probability(_population(seed, clients, classes, alpha)))
    return pd.DataFrame({"round": np.arange(clients), "p": p})


def probabilities_histogram(
    seed: int, *, probability: Source, clients: int = 100, classes: int = 10, alpha: float = 0.1, bins: int = 20
) -> pd.DataFrame:
    """How many clients have their p_i in each of so many equal parts of [0, 1] ([PBC] Fig. 4).

    Args:
        seed: of the draws.
        probability: where p_i comes from.
        clients: m.
        classes: C.
        alpha: concentration of the clients' class distributions.
        bins: how many parts; each holds its lower end, the last one also its upper.
    """
    p = probability(_population(seed, clients, classes, alpha))
    counts, edges = np.histogram(p, bins=bins, range=(0.0, 1.0))
    return pd.DataFrame({"round": np.arange(bins), "p": edges[:-1], "clients": counts})


def _population(seed: int, clients: int, classes: int, alpha: float) -> Population:
    nu = stream(seed, "partition").dirichlet(np.full(classes, alpha), size=clients)
    return Population(clients, seed, nu)


def uplink(
    seed: int,
    *,
    participation: Callable[[Population], Participation],
    clients: int = 4,
    client: int = 0,
    rounds: int = 80,
) -> pd.DataFrame:
    """p_i^t as an oracle knows it, and whether the uplink is on, 1 or 0, round by round ([PBC] Fig. 6).

    Args:
        seed: of the roll call.
        participation: a model that knows p_i^t.
        clients: m.
        client: whose uplink is shown.
        rounds: T.

    Raises:
        ValueError: there is no such client, or the model does not know p_i^t.
    """
    if not 0 <= client < clients:
        raise ValueError(f"client: {client} is not allowed; must be in [0, {clients - 1}]")
    model = participation(Population(clients, seed))
    p = [now for now in map(model.probability, range(rounds)) if now is not None]
    if len(p) < rounds:
        raise ValueError("participation: is not allowed here; must be a model that knows p_i^t")
    on = [int(client in model.active(t)) for t in range(rounds)]
    return pd.DataFrame({"round": np.arange(rounds), "probability": [float(now[client]) for now in p], "uplink": on})


def separation_distance(seed: int, *, units: int = 500, law: UnitLaw = "uniform", s: float = 1.5) -> pd.DataFrame:
    """||pi_R - 1/N||_1 for R = 0..N-1, exact, and the largest rise from one R to the next so far ([Sun] Fig. 1).

    Args:
        seed: of the random p.
        units: N.
        law: of p, see `unit_weights`.
        s: exponent of `power_law`.
    """
    p = unit_weights(seed, units, law, s)
    uniform = np.full(units, 1 / units)
    distance = np.array([theory.l1_distance(uniform, theory.stationary_separation(p, R)) for R in range(units)])
    rise = np.maximum.accumulate(np.diff(distance, prepend=distance[0]))
    return pd.DataFrame({"round": np.arange(units), "distance": distance, "largest_rise": rise})


def separation_simulated(
    seed: int, *, separations: np.ndarray, rounds: int, units: int = 500, law: UnitLaw = "uniform", s: float = 1.5
) -> pd.DataFrame:
    """pi_R of [Sun] Fig. 1 by simulation, beside the exact law at the same R.

    Columns: `distance`, ||pi_R - 1/N||_1 of the simulated shares, to which their noise adds; `apart`, the distance
    ||simulated - exact||_1; `noise`, what that is on average if the exact law is right.

    Args:
        seed: of the random p and of the simulation.
        separations: R.
        rounds: counted in each of 64 chains.
        units: N.
        law: of p, see `unit_weights`.
        s: exponent of `power_law`.
    """
    p = unit_weights(seed, units, law, s)
    rows = []
    for R in separations.tolist():
        found, exact = theory.simulated_separation(p, R, rounds, seed), theory.stationary_separation(p, R)
        rows.append(
            {
                "round": R,
                "distance": float(np.abs(found.value - 1 / units).sum()),
                "apart": float(np.abs(found.value - exact).sum()),
                "noise": float(np.sqrt(2 / np.pi) * found.error.sum()),
            }
        )
    return pd.DataFrame(rows)


def separation_mixing(
    seed: int, *, separation: int, units: int = 100, law: UnitLaw = "uniform", s: float = 1.5, rounds: int = 200
) -> pd.DataFrame:
    """How soon minimum separation settles, over t = 0, 1, ... ([Sun] Fig. 5).

    Columns: `distance`, TV(eta_R(t), pi_R) with eta_R(t) the law of the unit drawn in round t; `error`, its standard
    error, and `floor`, what noise alone would give; `shares`, the mean TV to pi_R of the shares that one roll call has
    drawn up to round t.

    Args:
        seed: of the random p and of the simulation.
        separation: R.
        units: N.
        law: of p, see `unit_weights`.
        s: exponent of `power_law`.
        rounds: t from 0 to here, exclusive.
    """
    p = unit_weights(seed, units, law, s)
    found = theory.separation_mixing(p, separation, rounds, seed)
    shares, _ = theory.separation_shares(p, separation, rounds, seed)
    columns = {"distance": found.distance, "error": found.error, "floor": found.floor, "shares": shares}
    return pd.DataFrame({"round": np.arange(rounds)} | columns)


def unit_weights(seed: int, units: int, law: UnitLaw, s: float) -> Float[np.ndarray, "N"]:
    """p of the units, of sum 1: U(0, 1) draws, exponential draws (a uniform point of the simplex), or i^-s."""
    if law == "power_law":
        return theory.normalised(np.arange(1, units + 1, dtype=np.float64) ** -s)
    draw = stream(seed, "probabilities")
    return theory.normalised(draw.random(units) if law == "uniform" else draw.exponential(size=units))


ANALYSES: dict[str, Callable[..., pd.DataFrame]] = {
    "prop1_limit": prop1_limit,
    "class_weights_sorted": class_weights_sorted,
    "probabilities_sorted": probabilities_sorted,
    "probabilities_histogram": probabilities_histogram,
    "uplink": uplink,
    "separation_distance": separation_distance,
    "separation_simulated": separation_simulated,
    "separation_mixing": separation_mixing,
}

RUNS_OVER = {
    "class_weights_sorted": "class, from the heaviest",
    "probabilities_sorted": "client, from the rarest",
    "probabilities_histogram": "part of [0, 1]",
    "separation_distance": "R",
    "separation_simulated": "R",
}
"""What the column `round` of an analysis stands for, if not for rounds."""
