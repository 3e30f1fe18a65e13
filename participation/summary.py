"""Statistics of a recorded roll call, compared with the statements of its model.

A roll call is a mask [T, m], true if client i is active in round t.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rollcall.participation.base import Participation
from rollcall.participation.weights import chi_square, l1_distance, normalised

BATCHES = 20


def correlations(mask: Bool[np.ndarray, "T m"]) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "k k"]]:
    """Lag-1 autocorrelation of each client, and correlation of the first k in a round; nan if one never changes.

    The lag-1 products are averaged over the T - 1 pairs and divided by the variance over all T rounds.
    """
    centred = mask - mask.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    variance[~mask.any(axis=0) | mask.all(axis=0)] = np.nan
    few = slice(1000)  # half a million pairs are enough
    between = (centred[:, few].T @ centred[:, few]) / len(mask)
    deviation = np.sqrt(variance[few])
    return (centred[1:] * centred[:-1]).mean(axis=0) / variance, between / np.outer(deviation, deviation)


def waits(mask: Bool[np.ndarray, "T m"]) -> tuple[Int[np.ndarray, "n"], Int[np.ndarray, "k"]]:
    """Rounds from each participation to the next of that client, and in each round since its last one, 0 if active.

    Rounds before the first participation of a client are left out, so long intervals are under-represented in a short
    record.
    """
    t = np.arange(len(mask))[:, None]
    last = np.maximum.accumulate(np.where(mask, t, -1), axis=0)
    intervals = [np.diff(np.flatnonzero(column)) for column in mask.T]
    return np.concatenate(intervals), (t - last)[last >= 0]


@dataclass(frozen=True)
class Summary:
    """Measured statistics of a roll call, compared with the statements of its model.

    Attributes:
        clients: m.
        rounds: T.
        empty: share of empty rounds.
        active: mean, smallest and largest number of active clients.
        availability: share of active rounds of the least available, the median and the most available client.
        never: number of clients that are never active.
        stationary: largest |measured - stated| of pi_i over clients, in standard errors; None if the model states none.
        memory: mean lag-1 autocorrelation over clients that change; and that of their stated lambda_i, or None.
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
    never: int
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
    share = mask.mean(axis=0)
    autocorrelation, together = correlations(mask)
    stated, eigenvalues = model.stationary, model.correlation
    intervals, staleness = waits(mask)
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
        never=int((share == 0).sum()),
        stationary=None if stated is None else standard_errors(mask, stated),
        memory=(mean(autocorrelation), None if eigenvalues is None else mean(eigenvalues[~np.isnan(autocorrelation)])),
        together=mean(together[np.triu_indices(len(together), 1)]),
        interval=_quantiles(intervals),
        staleness=_quantiles(staleness),
        weights={"l1": distance, "total_variation": distance / 2, "chi_square": chi_square(uniform, q)},
    )


def probabilities(model: Participation, rounds: int) -> Float[np.ndarray, "T m"] | None:
    """p_i^t [T, m] of the first rounds; None if the model does not know them."""
    known = [model.probability(t) for t in range(rounds)]
    return None if any(p is None for p in known) else np.array(known)


def standard_errors(mask: Bool[np.ndarray, "T m"], stated: Float[np.ndarray, "m"]) -> float:
    """The largest distance between measured and stated availability in standard errors.

    The error is the spread of the means of consecutive batches of rounds, which are nearly independent if a batch is
    much longer than the correlation time. The first T mod 20 rounds are left out. A client that was always or never
    active has a measured error of 0; its error is that of T independent rounds with the stated value. If this is 0 too,
    a distance of more than a round in T is infinite.
    """
    T, m = mask.shape
    batches = min(BATCHES, T)
    means = mask[T % batches :].reshape(batches, -1, m).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(batches)
    error = np.where(error > 0, error, np.sqrt(stated * (1 - stated) / T))
    away = np.abs(mask.mean(axis=0) - stated)
    certain = np.where(away * T > 1, np.inf, 0.0)
    return float(np.divide(away, error, out=certain, where=error > 0).max())


def mean(values: np.ndarray) -> float:
    """The mean of the values that are not nan; nan if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _quantiles(values: np.ndarray) -> tuple[float, float]:
    return (float(np.median(values)), float(np.quantile(values, 0.95))) if len(values) else (float("nan"),) * 2
