"""Statistics over seeds and over cells, as functions of arrays.

A score is larger for a better run: the value of a metric, with its sign turned if smaller is better. A run that
diverged, or never reached a target, has the score -inf: it is worse than all others and ties with its like. Scores are
never NaN; who calls leaves out what has no value.

A task is a cell's conditions, such as a participation model on a data set; the runs of a method in it are its seeds.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

RESAMPLES = 10_000
"""Draws of a bootstrap; its random generator has the seed 0, so that an interval is the same in every call."""

Array = Float[np.ndarray, "..."]


def wins(a: Float[np.ndarray, "seeds"], b: Float[np.ndarray, "seeds"]) -> tuple[int, int, int]:
    """Number of seeds in which a score of `a` is larger than that of `b`, equal to it, and smaller."""
    return int((a > b).sum()), int((a == b).sum()), int((a < b).sum())


def mean_ranks(scores: Float[np.ndarray, "tasks methods"]) -> Float[np.ndarray, "methods"]:
    """The mean over tasks of each method's rank; the best has 1, methods with equal scores share the mean of theirs."""
    return np.asarray(stats.rankdata(-scores, axis=1).mean(axis=0))


def equal_ranks_p(scores: Float[np.ndarray, "tasks methods"]) -> float:
    """The p-value of the test that all methods rank alike, for at least two methods.

    Friedman's test (1937, chi-square with correction for ties). Of two methods the exact sign test, without ties: the
    chi-square of two methods is its approximation. 1 if all methods tie everywhere.
    """
    if scores.shape[1] == 2:
        better, _, worse = wins(*scores.T)
        return float(stats.binomtest(better, better + worse).pvalue) if better + worse else 1.0
    if (scores == scores[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*stats.rankdata(scores, axis=1).T).pvalue)


def critical_difference(methods: int, tasks: int) -> float:
    """The difference of mean ranks from which Nemenyi's test tells two methods apart (Demsar 2006, section 3.2.2).

    q sqrt(k (k + 1) / (6 N)) for k methods and N tasks, q the quantile of the studentized range over sqrt(2). The test
    at 5 % is corrected for all pairs of methods.
    """
    q = stats.studentized_range.ppf(0.95, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * tasks)))


def alike(ranks: Float[np.ndarray, "methods"], width: float) -> list[list[int]]:
    """The largest sets of methods, as indices in the order of rank, whose mean ranks lie less than `width` apart.

    Each is a bar of a critical-difference diagram. A method that is unlike all others is in a set of its own.
    """
    order = np.argsort(ranks, kind="stable")
    sets = [[int(i) for i in order if 0 <= ranks[i] - ranks[first] < width] for first in order]
    return [
        one for n, one in enumerate(sets) if not any(set(one) < set(other) for other in sets) and one not in sets[:n]
    ]


def interquartile_mean(*tasks: Array, axis: int = -1) -> Array:
    """The mean of the middle half of all runs of all tasks (Agarwal et al. 2021: a trimmed mean, 25 % off each end)."""
    return np.asarray(stats.trim_mean(np.concatenate(tasks, axis=axis), 0.25, axis=axis))


def improvement(*tasks: Array, axis: int = -1) -> Array:
    """The probability that a run of X is better than a run of Y: P(X > Y) of Agarwal et al. (2021).

    The mean over tasks of the Mann-Whitney U statistic over N M, in which a tie of two runs counts one half.

    Args:
        tasks: the scores of X in each task, [..., N]; then those of Y, [..., M].
        axis: must be the last one.
    """
    assert axis == -1
    half = len(tasks) // 2
    pairs = [(x[..., :, None], y[..., None, :]) for x, y in zip(tasks[:half], tasks[half:], strict=True)]
    return np.asarray(np.mean([((x > y) + 0.5 * (x == y)).mean(axis=(-2, -1)) for x, y in pairs], axis=0))


def profile(thresholds: Float[np.ndarray, "points"]) -> Callable[..., Array]:
    """The performance profile (Agarwal et al. 2021, run-score distribution): a function of tasks as above.

    Its values, [points, ...], are the shares of all runs of all tasks whose score is above each threshold.
    """

    def shares(*tasks: Array, axis: int = -1) -> Array:
        runs = np.concatenate(tasks, axis=axis)
        return np.asarray([(runs > threshold).mean(axis=axis) for threshold in thresholds])

    return shares


def bootstrap(
    statistic: Callable[..., Array],
    tasks: Sequence[Float[np.ndarray, "runs"]],
    level: float = 0.95,
) -> tuple[Array, Array, Array]:
    """A statistic and its percentile interval by the stratified bootstrap (Agarwal et al. 2021).

    Each draw takes, with replacement, as many runs of each task as it has: tasks are fixed, runs are random. The
    ends are NaN if a task has a single run.

    Args:
        statistic: of the tasks, along their last axis.
        tasks: scores, [runs] each; of two methods those of both.
        level: of the interval.
    """
    value = statistic(*tasks)
    if min(map(len, tasks)) < 2:
        return value, value * np.nan, value * np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the standard error of infinite scores, which is not used
        draws = stats.bootstrap(
            tuple(tasks), statistic, n_resamples=RESAMPLES, batch=500, vectorized=True, method="percentile", rng=0
        ).bootstrap_distribution
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=-1, method="inverted_cdf")
    return value, low, high


def median_round(rounds: Float[np.ndarray, "runs"], reached: Bool[np.ndarray, "runs"]) -> tuple[float, float, float]:
    """The median round at which runs reach a target, and its 95 % interval, with censoring (Kaplan and Meier 1958).

    The interval inverts the log-log interval of the curve (Brookmeyer and Crowley 1982). An end is infinite where the
    curve does not tell it, and so is the median if fewer than half of the runs reach the target.

    Args:
        rounds: at which a run reached it, or at which it ended.
        reached: whether it did.
    """
    if not reached.any():
        return np.inf, np.nan, np.nan
    curve = stats.ecdf(stats.CensoredData(rounds[reached], right=rounds[~reached])).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the band is not defined where no run is left
        band = curve.confidence_interval(0.95, method="log-log")
    low_band = np.where(np.isnan(band.low.probabilities), curve.probabilities, band.low.probabilities)  # at 0 and 1
    heights = (curve.probabilities, low_band, band.high.probabilities)
    middle, low, high = (float(min(curve.quantiles[height <= 0.5], default=np.inf)) for height in heights)
    return middle, low, high
