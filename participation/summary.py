"""Summary statistics of the rounds of a participation model."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from rollcall.participation import MinimumSeparation, Participation, theory
from rollcall.participation.theory.empirical import BATCHES


@dataclass(frozen=True)
class Summary:
    """Measured statistics of a roll call, compared with what its model states.

    Attributes:
        clients: m.
        rounds: T.
        empty: share of empty rounds.
        active: mean, smallest and largest number of active clients.
        availability: share of active rounds of the least available, the median and the most available client.
        stationary: largest |measured - stated| of pi_i over clients, in standard errors; None if the model states none.
        memory: mean lag-1 autocorrelation over clients that change; and the mean of the stated lambda_i, or None.
        together: mean correlation between two clients in a round, over the first 1,000 clients.
        interval: median and 95 % quantile of the rounds between participations, over all clients.
        staleness: median and 95 % quantile of the rounds since the last participation, over all clients.
        weights: distance between FedAvg's normalised effective weights c_i = E[1{i in A} / |A|] and uniform weights:
            L1, total variation and chi-square.
    """

    clients: int
    rounds: int
    empty: float
    active: tuple[float, int, int]
    availability: tuple[float, float, float]
    stationary: float | None
    memory: tuple[float, float | None]
    together: float
    interval: tuple[float, float]
    staleness: tuple[float, float]
    weights: dict[str, float]


def summarise(model: Participation, mask: Bool[np.ndarray, "T m"]) -> Summary:
    """Compute the statistics of a model's first rounds.

    Args:
        model: the participation model.
        mask: [T, m], its first rounds, true where a client is active.
    """
    T, m = mask.shape
    a = mask.sum(axis=1)
    measured = theory.empirical_marginals(mask, batches=min(BATCHES, T))
    stated = model.stationary
    eigenvalues = model.correlation
    few = mask[:, : min(m, 1000)]  # half a million pairs are enough
    between = theory.empirical_correlation(few)[np.triu_indices(few.shape[1], 1)]
    intervals = np.concatenate([np.zeros(0, dtype=np.int64), *theory.empirical_intervals(mask)])
    staleness = theory.empirical_staleness(mask)
    uniform = np.full(m, 1 / m)
    c = theory.empirical_effective_weights(mask, batches=min(BATCHES, T)).value
    q = theory.normalised(c) if c.any() else uniform
    return Summary(
        clients=m,
        rounds=T,
        empty=float((a == 0).mean()),
        active=(float(a.mean()), int(a.min()), int(a.max())),
        availability=tuple(np.quantile(measured.value, (0, 0.5, 1)).tolist()),
        stationary=None if stated is None else _standard_errors(measured, stated, T),
        memory=(
            _mean(theory.empirical_autocorrelation(mask)),
            None if eigenvalues is None else float(eigenvalues.mean()),
        ),
        together=_mean(between),
        interval=_quantiles(intervals),
        staleness=_quantiles(staleness[staleness >= 0]),
        weights={
            "l1": theory.l1_distance(uniform, q),
            "total_variation": theory.total_variation(uniform, q),
            "chi_square": theory.chi_square(uniform, q),
        },
    )


def probabilities(model: Participation, rounds: int) -> Float[np.ndarray, "T m"] | None:
    """p_i^t [T, m] of the first rounds; None if the model does not know them."""
    known = [model.probability(t) for t in range(rounds)]
    return None if any(p is None for p in known) else np.array(known)


def separation_curves(model: Participation) -> tuple[dict[int, float], dict[int, Float[np.ndarray, "T"]]]:
    """Curves of minimum separation for the units and weights of a model.

    Returns:
        ||pi_R - 1/M||_1 for each R, and TV(eta_R(t), pi_R) over t [T] for a few R.

    Raises:
        ValueError: another model than `minimum_separation`, or several units in each round.
    """
    if not isinstance(model, MinimumSeparation) or model.B != 1:
        raise ValueError("picture: 'separation' is not allowed here; must be uplinks or probabilities")
    M = len(model.p)
    p = theory.normalised(model.p)
    uniform = np.full(M, 1 / M)
    Rs = sorted({round(R) for R in np.linspace(0, M - 1, min(M, 41))})
    distance = {R: theory.l1_distance(uniform, theory.stationary_separation(p, R)) for R in Rs}
    shown = sorted({0, M // 4, M // 2, 3 * M // 4})
    return distance, {R: theory.separation_mixing(p, R, horizon=3 * M).distance for R in shown}


def _standard_errors(measured: theory.Estimate, stated: np.ndarray, T: int) -> float:
    """The largest distance between measured and stated values in standard errors.

    A client that was always or never active has a measured error of 0; its error is that of T independent rounds with
    the stated value. If this is 0 too, a distance of more than a round in T is infinite.
    """
    away = np.abs(measured.value - stated)
    error = np.where(measured.error > 0, measured.error, np.sqrt(stated * (1 - stated) / T))
    certain = np.where(away * T > 1, np.inf, 0.0)
    return float(np.divide(away, error, out=certain, where=error > 0).max())


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _quantiles(values: np.ndarray) -> tuple[float, float]:
    return (float(np.median(values)), float(np.quantile(values, 0.95))) if len(values) else (float("nan"),) * 2
