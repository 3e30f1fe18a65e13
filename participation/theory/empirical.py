"""Statistics of a recorded roll call: a mask [T, m], true if client i is active in round t."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

BATCHES = 20


@dataclass(frozen=True)
class Estimate:
    """An estimate with its standard error.

    Attributes:
        value: the estimate.
        error: its standard error, of the same shape.
    """

    value: Float[np.ndarray, "..."]
    error: Float[np.ndarray, "..."]


def batch_means(series: Float[np.ndarray, "T m"], batches: int = BATCHES) -> Estimate:
    """The mean over rounds of each column, with a standard error that accounts for correlation in time.

    The rounds are divided into consecutive batches. If a batch is much longer than the correlation time, the batch
    means are nearly independent, and their spread gives the error. The value uses all rounds. The error leaves out the
    first T mod `batches` rounds.

    Raises:
        ValueError: fewer than 2 batches, or fewer rounds than batches.
    """
    T, m = series.shape
    if not 2 <= batches <= T:
        raise ValueError(f"batches: {batches} is not allowed; must be at least 2 and at most the {T} rounds")
    means = series[T % batches :].reshape(batches, -1, m).mean(axis=1)
    return Estimate(series.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches))


def empirical_marginals(mask: Bool[np.ndarray, "T m"], batches: int = BATCHES) -> Estimate:
    """The share of rounds [m] in which each client is active, with the errors of `batch_means`."""
    return batch_means(mask.astype(np.float64), batches)


def empirical_effective_weights(mask: Bool[np.ndarray, "T m"], batches: int = BATCHES) -> Estimate:
    """c_i [m], the mean over rounds of 1{i in A} / |A|, 0 for empty rounds ([HAR] eq. 6); see `batch_means`."""
    a = mask.sum(axis=1, keepdims=True)
    share = np.asarray(mask / np.maximum(a, 1), dtype=np.float64)
    return batch_means(share, batches)


def empirical_autocorrelation(mask: Bool[np.ndarray, "T m"]) -> Float[np.ndarray, "m"]:
    """Lag-1 autocorrelation [m] of each client: lambda_i of a two-state chain; nan if a client never changes.

    The lag-1 products are averaged over the T - 1 pairs and divided by the variance over all T rounds.

    Raises:
        ValueError: fewer than 2 rounds.
    """
    if len(mask) < 2:
        raise ValueError(f"mask: {len(mask)} rounds are not allowed; must be at least 2")
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
