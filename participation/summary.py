"""Statistics of a recorded roll call, and a summary of a model's first rounds.

A roll call is a mask [T, m], true if client i is active in round t.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rollcall.participation.base import Participation
from rollcall.participation.minimum_separation import MinimumSeparation
from rollcall.participation.theory.separation import separation_mixing, stationary_separation
from rollcall.participation.theory.weights import chi_square, l1_distance, normalised

BATCHES = 20


def batch_means(
    series: Float[np.ndarray, "T m"], batches: int = BATCHES
) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """The mean over rounds of each column, and its standard error, which accounts for correlation in time.

    The rounds are divided into consecutive batches. If a batch is much longer than the correlation time, the batch
    means are nearly independent, and their spread gives the error. The mean uses all rounds. The error leaves out the
    first T mod `batches` rounds.
    """
    T, m = series.shape
    means = series[T % batches :].reshape(batches, -1, m).mean(axis=1)
    return series.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


def empirical_autocorrelation(mask: Bool[np.ndarray, "T m"]) -> Float[np.ndarray, "m"]:
    """Lag-1 autocorrelation [m] of each client: lambda_i of a two-state chain; nan if a client never changes.

    The lag-1 products are averaged over the T - 1 pairs and divided by the variance over all T rounds.
    """
    centred = mask - mask.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    variance[~mask.any(axis=0) | mask.all(axis=0)] = np.nan
    return (centred[1:] * centred[:-1]).mean(axis=0) / variance


def empirical_correlation(mask: Bool[np.ndarray, "T m"]) -> Float[np.ndarray, "m m"]:
    """Correlation [m, m] between clients in the same round; nan for clients that never change."""
    centred = mask - mask.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    deviation[~mask.any(axis=0) | mask.all(axis=0)] = np.nan
    return (centred.T @ centred) / len(mask) / np.outer(deviation, deviation)


def empirical_intervals(mask: Bool[np.ndarray, "T m"]) -> list[Int[np.ndarray, "..."]]:
    """For each client, the numbers of rounds from one participation to the next, in order.

    A client has one interval fewer than participations. The rounds before its first and after its last participation
    are left out, so long intervals are under-represented in a short record.
    """
    return [np.diff(np.flatnonzero(column)) for column in mask.T]


def empirical_staleness(mask: Bool[np.ndarray, "T m"]) -> Int[np.ndarray, "T m"]:
    """Rounds [T, m] since each client's last participation: 0 if it is active, -1 before its first."""
    t = np.arange(len(mask))[:, None]
    last = np.maximum.accumulate(np.where(mask, t, -1), axis=0)
    return np.where(last < 0, -1, t - last)


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
    """The statistics of a model's first rounds, T of at least 2."""
    T, m = mask.shape
    a = mask.sum(axis=1)
    share, error = batch_means(mask.astype(np.float64), batches=min(BATCHES, T))
    stated, eigenvalues = model.stationary, model.correlation
    few = mask[:, : min(m, 1000)]  # half a million pairs are enough
    between = empirical_correlation(few)[np.triu_indices(few.shape[1], 1)]
    intervals = np.concatenate([np.zeros(0, dtype=np.int64), *empirical_intervals(mask)])
    staleness = empirical_staleness(mask)
    uniform = np.full(m, 1 / m)
    c = (mask / np.maximum(a, 1)[:, None]).mean(axis=0)
    q = normalised(c) if c.any() else uniform
    distance = l1_distance(uniform, q)
    return Summary(
        clients=m,
        rounds=T,
        empty=float((a == 0).mean()),
        active=(float(a.mean()), int(a.min()), int(a.max())),
        availability=tuple(np.quantile(share, (0, 0.5, 1)).tolist()),
        stationary=None if stated is None else _standard_errors(share, error, stated, T),
        memory=(_mean(empirical_autocorrelation(mask)), None if eigenvalues is None else float(eigenvalues.mean())),
        together=_mean(between),
        interval=_quantiles(intervals),
        staleness=_quantiles(staleness[staleness >= 0]),
        weights={"l1": distance, "total_variation": distance / 2, "chi_square": chi_square(uniform, q)},
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
    p = normalised(model.p)
    uniform = np.full(M, 1 / M)
    Rs = sorted({round(R) for R in np.linspace(0, M - 1, min(M, 41))})
    distance = {R: l1_distance(uniform, stationary_separation(p, R)) for R in Rs}
    shown = sorted({0, M // 4, M // 2, 3 * M // 4})
    return distance, {R: separation_mixing(p, R, horizon=3 * M).distance for R in shown}


def _standard_errors(share: np.ndarray, error: np.ndarray, stated: np.ndarray, T: int) -> float:
    """The largest distance between measured and stated availability in standard errors.

    A client that was always or never active has a measured error of 0; its error is that of T independent rounds with
    the stated value. If this is 0 too, a distance of more than a round in T is infinite.
    """
    away = np.abs(share - stated)
    error = np.where(error > 0, error, np.sqrt(stated * (1 - stated) / T))
    certain = np.where(away * T > 1, np.inf, 0.0)
    return float(np.divide(away, error, out=certain, where=error > 0).max())


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _quantiles(values: np.ndarray) -> tuple[float, float]:
    return (float(np.median(values)), float(np.quantile(values, 0.95))) if len(values) else (float("nan"),) * 2
