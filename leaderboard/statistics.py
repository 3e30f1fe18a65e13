"""Statistics over seeds and over cells, as functions of arrays.

A score is larger for a better run: the value of a metric, with its sign turned if smaller is better. A run that
diverged, or never reached a target, has the score -inf: it is worse than all others and ties with its like. Scores are
never NaN; who calls leaves out what has no value.

A task is a cell's conditions, such as a participation model on a data set; the runs of a method in it are its seeds.
Tasks share what a seed draws: data, initial model, minibatches. So their runs are not independent of each other, and
the unit of every test and interval is the seed, with its runs in all tasks. Tasks are fixed, seeds are random.
"""

import math
from collections.abc import Callable, Sequence
from itertools import permutations, product

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtrit

from rollcall.leaderboard.paper.quantities import FEWEST

PERMUTATIONS = 10_000
"""Of a test: up to this number all, else so many random ones, of a generator with the seed 0."""

Array = Float[np.ndarray, "..."]


def wins(a: Float[np.ndarray, "seeds"], b: Float[np.ndarray, "seeds"]) -> tuple[int, int, int]:
    """Number of seeds in which a score of `a` is larger than that of `b`, equal to it, and smaller."""
    return int((a > b).sum()), int((a == b).sum()), int((a < b).sum())


def ranks_by_seed(tasks: Sequence[pd.DataFrame]) -> Float[np.ndarray, "seeds methods"]:
    """The mean over tasks of each method's rank, seed by seed; the best has 1, equal scores share the mean of theirs.

    Args:
        tasks: scores, a row for each seed and a column for each method. A seed counts where every method has a score.
    """
    ranked = [(-task.dropna()).rank(axis=1) for task in tasks]  # infinite scores tie
    every = pd.concat(ranked)
    return every.groupby(every.index).mean().to_numpy()


def equal_ranks(ranks: Float[np.ndarray, "seeds methods"]) -> tuple[float, float]:
    """The test that methods rank alike: its p-value, and the difference of mean ranks that is significant at 5 %.

    If methods are alike, their names in a seed may be exchanged, in all its tasks at once. So the range of the mean
    ranks, the largest less the smallest, is compared with its values after all such exchanges, seed by seed. Two
    methods whose mean ranks differ by the 95 % quantile of the range are told apart, with all pairs allowed for, as in
    Nemenyi's test. Friedman's test and Nemenyi's (Demsar 2006) take tasks as blocks, which must then be independent.

    Returns:
        p; and the difference, infinite if so few seeds cannot tell any: of two methods it takes six.
    """
    seeds, methods = ranks.shape
    first = np.arange(methods)
    if seeds == 1:
        return 1.0, math.inf
    if math.factorial(methods) ** (seeds - 1) <= PERMUTATIONS:  # the first seed may keep its names
        orders = np.array([(first, *rest) for rest in product(permutations(range(methods)), repeat=seeds - 1)])
    else:
        orders = np.random.default_rng(0).random((PERMUTATIONS, seeds, methods)).argsort(axis=-1)
        orders[0] = first  # the observed one is among them
    means = np.take_along_axis(ranks[None], orders, axis=-1).mean(axis=1)
    ranges = np.sort((means.max(axis=-1) - means.min(axis=-1)).round(9))
    mean = ranks.mean(axis=0)
    share = (len(ranges) - np.searchsorted(ranges, ranges)) / len(ranges)  # of ranges that are at least as large
    observed = (mean.max() - mean.min()).round(9)
    return float((ranges >= observed).mean()), float(min(ranges[share <= 0.05], default=math.inf))


def alike(ranks: Float[np.ndarray, "methods"], width: float) -> list[list[int]]:
    """The largest sets of methods, as indices in the order of rank, whose mean ranks lie less than `width` apart.

    Each is a bar of a critical-difference diagram. A method that is unlike all others is in a set of its own.
    """
    order = np.argsort(ranks, kind="stable")
    least = width - 1e-9  # ranks are means: equal up to rounding
    sets = [[int(i) for i in order if 0 <= ranks[i] - ranks[first] < least] for first in order]
    return [
        one for n, one in enumerate(sets) if not any(set(one) < set(other) for other in sets) and one not in sets[:n]
    ]


def improvement(*tasks: Array) -> Array:
    """The probability that a run of X is better than a run of Y: P(X > Y) of Agarwal et al. (2021).

    The mean over tasks of the Mann-Whitney U statistic over N M, in which a tie of two runs counts one half.

    Args:
        tasks: the scores of X in each task, [N]; then those of Y, [M].
    """
    half = len(tasks) // 2
    pairs = [(x[:, None], y) for x, y in zip(tasks[:half], tasks[half:], strict=True)]
    return np.asarray(np.mean([((x > y) + 0.5 * (x == y)).mean() for x, y in pairs]))


def interval(
    statistic: Callable[..., Array], tasks: Sequence[pd.Series], level: float = 0.95
) -> tuple[Array, Array, Array]:
    """A statistic and its interval: Student's t with the standard error of the jackknife over seeds.

    Each seed is left out in turn, in all tasks at once. Of a mean over seeds it is Student's interval. A percentile
    bootstrap, as Agarwal et al. (2021) have it, is too narrow for the few seeds of a benchmark, and draws each task on
    its own. The ends are NaN with fewer than three seeds, if a task has one run only, or if the statistic is infinite
    without one of them.

    Args:
        statistic: of the tasks.
        tasks: scores by seed; of two methods those of both.
        level: of the interval.
    """
    value = statistic(*(task.to_numpy() for task in tasks))
    seeds = list(dict.fromkeys(seed for task in tasks for seed in task.index))
    if len(seeds) < FEWEST or min(map(len, tasks)) < 2:
        return value, value * np.nan, value * np.nan
    without = np.array([statistic(*(task.drop(seed, errors="ignore").to_numpy() for task in tasks)) for seed in seeds])
    with np.errstate(invalid="ignore"):  # infinite scores
        deviations = without - without.mean(axis=0)
    error = np.sqrt((deviations**2).sum(axis=0) * (len(seeds) - 1) / len(seeds))
    half = stdtrit(len(seeds) - 1, (1 + level) / 2) * error
    return value, value - half, value + half
