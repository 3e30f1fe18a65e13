"""Participation models fitted to a recorded roll call: which of its features does a model keep?"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Shaped

from rollcall.participation.base import Participation, Population
from rollcall.participation.cyclic import Cyclic
from rollcall.participation.independent import Bernoulli, Copula, Uniform
from rollcall.participation.markov import Markov, MarkovPiLambda
from rollcall.participation.recording import record
from rollcall.participation.summary import correlations, mean
from rollcall.participation.trace import Trace, lag_one

ROUNDS = 2000
COMPARED = 20_000
MOST = 0.99
"""The largest latent correlation of `copula`."""


def matched(
    population: Population,
    *,
    participation: Callable[[Population], Participation],
    fit: Literal["uniform", "bernoulli", "markov", "markov_pi_lambda", "cyclic", "copula"] = "bernoulli",
) -> Participation:
    """A model fitted to the roll call of another one, most often of a trace: the control of an experiment on the trace.

    A trace is fitted over all its rounds, another model over its first 2,000.

    Args:
        population: the clients.
        participation: the model to be matched.
        fit: the fitted model. `uniform`: the mean number of active clients. `bernoulli`: each client's share of rounds.
            `markov`: the shares, and the rate at which clients that move return. `markov_pi_lambda`: the shares and
            each client's lag-1 autocorrelation. `cyclic`: the shares, and the mean time from one arrival to the next; a
            client that is never, or always, active is active, or inactive, once in a cycle. `copula`: the shares, and
            the mean correlation of two clients in a round.
    """
    model = participation(population)
    mask = model.mask if isinstance(model, Trace) else record(model, ROUNDS)
    fitted, options = FITS[fit]
    return fitted(population, **options(mask))


def _markov(mask: Bool[np.ndarray, "T m"]) -> dict[str, Any]:
    """The shares, and q* = P(on|off) over the clients that move."""
    off = int((~mask[:, mask.any(axis=0)]).sum())
    return {"probability": mask.mean(axis=0), "off_on": max(_arrivals(mask), 1) / max(off, 1)}


def _cyclic(mask: Bool[np.ndarray, "T m"]) -> dict[str, Any]:
    """The shares, and the mean rounds of a client that moves from one arrival to the next."""
    moving = int((mask.any(axis=0) & ~mask.all(axis=0)).sum())
    return {"probability": mask.mean(axis=0), "length": max(2, round(len(mask) * moving / max(_arrivals(mask), 1)))}


def _copula(mask: Bool[np.ndarray, "T m"]) -> dict[str, Any]:
    """The shares, and the latent correlation with the recorded mean correlation of two clients that move."""
    from scipy.optimize import brentq  # slow to import
    from scipy.special import ndtr, ndtri

    pi = mask.mean(axis=0)
    moves = (pi > 0) & (pi < 1)
    p, deviation = pi[moves], np.sqrt(pi * (1 - pi))[moves]
    recorded = (mask[:, moves] / deviation).sum(axis=1).var() - moves.sum()
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def excess(rho: float) -> float:
        # Given the common factor w, the clients are independent with probabilities q_i(w).
        q = ndtr((ndtri(p)[:, None] - np.sqrt(rho) * nodes) / np.sqrt(1 - rho)) - p[:, None]
        q = q / deviation[:, None]
        return float(weights @ (q.sum(axis=0) ** 2 - (q**2).sum(axis=0)) - recorded)

    low, high = excess(0), excess(MOST)
    rho = brentq(excess, 0, MOST) if low < 0 < high else MOST * (low < 0)  # without a positive correlation 0
    return {"probability": pi, "rho": rho}


def _arrivals(mask: Bool[np.ndarray, "T m"]) -> int:
    """How often a client becomes active, with the first round following the last."""
    return int((mask & ~np.roll(mask, 1, axis=0)).sum())


FITS: dict[str, tuple[Callable[..., Participation], Callable[[Bool[np.ndarray, "T m"]], dict[str, Any]]]] = {
    "uniform": (Uniform, lambda mask: {"per_round": max(1, round(float(mask.sum(axis=1).mean())))}),
    "bernoulli": (Bernoulli, lambda mask: {"probability": mask.mean(axis=0)}),
    "markov": (Markov, _markov),
    "markov_pi_lambda": (MarkovPiLambda, lambda mask: {"probability": mask.mean(axis=0), "correlation": lag_one(mask)}),
    "cyclic": (Cyclic, _cyclic),
    "copula": (Copula, _copula),
}


def compare(trace: Trace) -> dict[str, dict[str, float]]:
    """Features of a trace and of every model fitted to it, in `COMPARED` rounds where memory allows; nan if undefined.

    `shares`: correlation over the clients between their shares of active rounds and those of the trace. `lag 1`: mean
    lag-1 autocorrelation of a client. `rounds`: the correlation time that follows, -1 / log of it. `pairs`: mean
    correlation of two clients in a round. `day`, `week`: correlation of the number of active clients with that of a day
    or a week later, nan without two such periods; left out if the length of a round is not known.
    """
    T, m = trace.mask.shape
    shares, rounds = trace.mask.mean(axis=0), max(T, min(COMPARED, 10**8 // m))

    def features(mask: Bool[np.ndarray, "T m"]) -> dict[str, float]:
        memory, pairs = correlations(mask)
        lag, active = mean(memory), mask.sum(axis=1)
        periods = {"day": 86_400, "week": 604_800} if trace.round_length else {}
        later = {name: round(seconds / (trace.round_length or 1)) for name, seconds in periods.items()}
        return {
            "shares": _correlated(mask.mean(axis=0), shares),
            "lag 1": lag,
            "rounds": float(-1 / np.log(lag)) if 0 < lag < 1 else np.nan,
            "pairs": mean(pairs[np.triu_indices(len(pairs), 1)]),
        } | {
            name: _correlated(active[:-lap], active[lap:]) if 0 < lap <= T / 2 else np.nan
            for name, lap in later.items()
        }

    population = Population(m, trace.seed)
    models = {name: record(model(population, **fit(trace.mask)), rounds) for name, (model, fit) in FITS.items()}
    return {name: features(mask) for name, mask in ({"trace": trace.mask} | models).items()}


def _correlated(one: Shaped[np.ndarray, "n"], other: Shaped[np.ndarray, "n"]) -> float:
    """The correlation of two samples; nan if one of them does not vary."""
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) > 0 and np.ptp(other) > 0 else np.nan
