"""Statistics against SciPy, numbers of the literature, enumeration, simulations and the definitions of rliable."""

import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rollcall.leaderboard import statistics as ours

INF = math.inf


def test_wins_and_ranks_by_hand():
    """A diverged run (-inf) is worse than all others and ties with another one. Seed 2 lacks a method in the second."""
    assert ours.wins(np.array([3.0, 1.0, -INF, -INF]), np.array([2.0, 1.0, 0.0, -INF])) == (1, 2, 1)
    first = pd.DataFrame([[0.9, 0.8, 0.8], [0.1, -INF, 0.3], [-INF, -INF, 0.0]], index=["0", "1", "2"])
    second = pd.DataFrame([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, math.nan, 0.0]], index=["1", "0", "2"])
    assert ours.ranks_by_seed([first]).tolist() == [[1, 2.5, 2.5], [2, 3, 1], [2.5, 2.5, 1]]
    assert ours.ranks_by_seed([first, second]).tolist() == [[2, 2.25, 1.75], [1.5, 3, 1.5], [2.5, 2.5, 1]]


def test_the_test_of_equal_ranks_exchanges_names_seed_by_seed():
    """All 6^3 exchanges, in loops; of two methods it is the sign test of SciPy, which takes six seeds."""
    ranks = np.array([[1.0, 2.0, 3.0], [1.5, 1.5, 3.0], [1.0, 3.0, 2.0]])
    ranges = [np.ptp(np.mean(one, axis=0)).round(9) for one in product(*(list(permutations(row)) for row in ranks))]
    p, width = ours.equal_ranks(ranks)
    assert p == pytest.approx(np.mean(np.array(ranges) >= np.ptp(ranks.mean(axis=0)).round(9)))
    assert width == min((one for one in ranges if np.mean(np.array(ranges) >= one) <= 0.05), default=INF)
    for better in range(7, 13):
        two = np.array([[1.0, 2.0]] * better + [[2.0, 1.0]] * (12 - better))
        assert ours.equal_ranks(two)[0] == pytest.approx(stats.binomtest(better, 12).pvalue)
    p, width = ours.equal_ranks(np.array([[1.0, 2.0]] * 6))
    assert (p, width) == (2 / 2**6, 1.0)
    assert ours.equal_ranks(np.array([[1.0, 2.0]] * 5)) == (2 / 2**5, INF)
    assert ours.equal_ranks(np.full((4, 3), 2.0)) == ours.equal_ranks(np.array([[1.0, 2.0, 3.0]])) == (1.0, INF)


def test_of_many_seeds_the_exchanges_are_drawn():
    """Of independent seeds with distinct ranks the test is about that of Friedman, and the width about Nemenyi's."""
    ranks = stats.rankdata(-np.random.default_rng(0).normal([0, 0, 0.3, 0.6], size=(14, 4)), axis=1)
    p, width = ours.equal_ranks(ranks)
    assert p == pytest.approx(stats.friedmanchisquare(*ranks.T).pvalue, abs=0.06)
    q = stats.studentized_range.ppf(0.95, 4, np.inf) / math.sqrt(2)
    assert width == pytest.approx(q * math.sqrt(4 * 5 / (6 * 14)), abs=0.1)  # Demsar (2006): 1.25
    assert ours.equal_ranks(ranks) == (p, width)  # the same in every call


@pytest.mark.parametrize(("seeds", "methods"), [(6, 2), (4, 3)])
def test_the_size_of_the_test_where_tasks_share_their_seeds(seeds, methods):
    """Methods alike, 8 tasks that share what a seed draws: Friedman's test over the tasks rejects far too often."""
    rng, ours_rejects, friedman_rejects = np.random.default_rng(0), 0, 0
    for _ in range(300):
        shared = rng.normal(size=(seeds, methods))
        tasks = [pd.DataFrame(shared + 0.3 * rng.normal(size=(seeds, methods))) for _ in range(8)]
        ours_rejects += ours.equal_ranks(ours.ranks_by_seed(tasks))[0] <= 0.05
        ranks = stats.rankdata([task.mean().to_numpy() for task in tasks], axis=1)
        chi = 12 / (8 * methods * (methods + 1)) * (ranks.sum(axis=0) ** 2).sum() - 24 * (methods + 1)
        friedman_rejects += stats.chi2.sf(chi, methods - 1) <= 0.05
    assert ours_rejects / 300 < 0.08  # 5 % and two and a half standard errors
    assert friedman_rejects / 300 > 0.5


def test_sets_of_methods_that_are_alike():
    assert ours.alike(np.array([3.5, 1.0, 2.4, 3.1]), 1.2) == [[1], [2, 3, 0]]
    assert ours.alike(np.array([1.0, 2.0, 3.0]), 1.5) == [[0, 1], [1, 2]]
    assert ours.alike(np.array([2.0, 2.0, 2.0]), 0.1) == [[0, 1, 2]]
    assert ours.alike(np.array([1.0, 2.0]), INF) == [[0, 1]]
    assert ours.alike(np.array([1.0, 2.0]), 1.0) == [[0], [1]]  # at least the critical difference apart


def tasks_of(seed, *sizes):
    rng = np.random.default_rng(seed)
    return [rng.normal(task, 1.0, size).round(1) for task, size in enumerate(sizes)]


def test_the_interquartile_mean_is_that_of_rliable():
    """`scipy.stats.trim_mean(scores, proportiontocut=0.25, axis=None)` over all runs and tasks."""
    scores = np.random.default_rng(1).normal(size=(5, 7))  # rliable's [runs, tasks]
    expected = stats.trim_mean(scores, proportiontocut=0.25, axis=None)
    assert ours.interquartile_mean(*scores.T) == pytest.approx(expected)
    middle = sorted(scores.ravel())[8:-8]  # 35 // 4 = 8
    assert expected == pytest.approx(sum(middle) / len(middle))
    one_diverged = [np.array([1.0, 2.0, 3.0, -INF]), np.array([4.0, 5.0, 6.0, 7.0])]
    assert ours.interquartile_mean(*one_diverged) == np.mean([2, 3, 4, 5])  # 1, and -inf, are off the end
    assert ours.interquartile_mean(np.array([-INF, -INF, 1.0])) == -INF


def test_the_probability_of_improvement_is_that_of_rliable():
    """The mean over tasks of Mann-Whitney's U over N M; seeds may be missing."""
    x, y = tasks_of(2, 4, 3, 5), tasks_of(3, 4, 4, 1)
    u = [stats.mannwhitneyu(a, b, alternative="greater")[0] / (len(a) * len(b)) for a, b in zip(x, y, strict=True)]
    assert ours.improvement(*x, *y) == pytest.approx(np.mean(u))
    assert ours.improvement(*x, *y) + ours.improvement(*y, *x) == pytest.approx(1.0)
    assert ours.improvement(*x, *x) == pytest.approx(0.5)
    assert ours.improvement(np.array([1.0, -INF]), np.array([-INF, 0.0])) == (1 + 1 + 0.5 + 0) / 4


def test_the_profile_is_the_share_of_runs_above_each_threshold():
    shares = ours.profile(np.array([-1.0, 0.0, 0.5, 1.0]))
    assert shares(np.array([0.0, 1.0]), np.array([0.6, -INF])).tolist() == [0.75, 0.5, 0.5, 0.0]


def mean_of(*tasks):
    return np.asarray(np.mean(np.concatenate(tasks)))


def test_of_a_mean_the_interval_is_students():
    """Over seeds: of two tasks the seeds' means count, not the single runs."""
    one, two = pd.Series([1.0, 2.0, 6.0, 3.0]), pd.Series([2.0, 2.0, 7.0, 1.0])
    for tasks, values in (([one], one), ([one, two], (one + two) / 2)):
        value, low, high = ours.interval(mean_of, tasks, level=0.9)
        assert value == pytest.approx(values.mean())
        assert (low, high) == pytest.approx(stats.t.interval(0.9, 3, values.mean(), stats.sem(values)))


def test_the_standard_error_of_p_better_is_the_jackknifes():
    """In loops: a seed is left out of both methods and all tasks; one of them lacks seed "2"."""
    x, y = pd.Series([0.5, 0.9, 0.3], ["0", "1", "2"]), pd.Series([0.4, 0.6, 0.8], ["0", "1", "3"])
    left = []
    for seed in "0123":
        mine, others = ([value for name, value in one.items() if name != seed] for one in (x, y))
        left.append(np.mean([a > b for a in mine for b in others]))
    error = math.sqrt(3 / 4 * sum((one - np.mean(left)) ** 2 for one in left))
    value, low, high = ours.interval(ours.improvement, [x, y])
    assert value == pytest.approx(3 / 9 + 1 / 9)  # 0.9 is above all, 0.5 above 0.4
    assert (low, high) == pytest.approx((value - 3.182446 * error, value + 3.182446 * error))


def test_too_few_runs_have_no_interval():
    three = pd.Series([1.0, 2.0, 3.0])
    for tasks in ([three[:2]], [three, three[:1]], [pd.Series([1.0, -INF, -INF])]):
        value, low, high = ours.interval(ours.interquartile_mean, tasks)
        assert value == ours.interquartile_mean(*tasks)
        assert math.isnan(low)
        assert math.isnan(high)


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_intervals_cover_what_they_say(seeds):
    """Five tasks that share their seeds, 150 times; standard deviations 0.7 of seeds and 1 of runs."""
    rng, covered, better = np.random.default_rng(0), 0, stats.norm.cdf(0.5 / math.sqrt(2 * 1.49))
    improved = 0
    for _ in range(150):
        x, y = (one + 0.7 * rng.normal(size=seeds) + rng.normal(size=(5, seeds)) for one in (0.5, 0.0))
        (_, low, high), (_, least, most) = (
            ours.interval(ours.interquartile_mean, [*map(pd.Series, x)]),
            ours.interval(ours.improvement, [*map(pd.Series, x), *map(pd.Series, y)]),
        )
        covered += low <= 0.5 <= high
        improved += least <= better <= most
    assert covered / 150 > 0.88  # a percentile bootstrap of single runs covers it 70 and 76 % of the times
    assert improved / 150 > 0.88


def test_of_a_profile_every_point_has_an_interval():
    """At each point it is Student's interval of the seeds' shares."""
    thresholds, tasks = np.array([-1.0, 0.5, 2.0]), [pd.Series(task) for task in tasks_of(6, 4, 4)]
    value, low, high = ours.interval(ours.profile(thresholds), tasks)
    shares = np.mean([task.to_numpy() > thresholds[:, None] for task in tasks], axis=0)
    assert value.tolist() == pytest.approx(shares.mean(axis=1).tolist())
    half = 3.182446 * shares.std(axis=1, ddof=1) / 2
    assert (high - value).tolist() == pytest.approx(half.tolist(), rel=1e-5)
    assert (value - low).tolist() == pytest.approx(half.tolist(), rel=1e-5)


def test_median_rounds_of_a_textbook():
    """Remission times of 6-MP and placebo (Freireich 1963): medians and log-log intervals as in Stata and R."""
    treated = np.array([6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35.0])
    relapsed = np.arange(21) < 9
    assert ours.median_round(treated, relapsed) == (23, 13, INF)
    placebo = np.array([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23.0])
    assert ours.median_round(placebo, np.ones(21, bool)) == (8, 4, 11)


def test_median_rounds_of_few_runs():
    assert ours.median_round(np.array([30.0, 50.0, 70.0]), np.ones(3, bool)) == (50, 30, INF)
    assert ours.median_round(np.array([50.0, 100.0, 100.0]), np.array([True, False, False])) == (INF, 50, INF)
    middle, low, high = ours.median_round(np.array([100.0, 100.0]), np.zeros(2, bool))
    assert middle == INF
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_of_a_median_round_in_loops(seed):
    """Kaplan and Meier's product, Greenwood's variance and the log-log limits at each round that a run reaches."""
    rng = np.random.default_rng(seed)
    rounds, reached = rng.permutation(20)[:12] * 10.0, rng.random(12) < 0.8
    height, variance, crossed = 1.0, 0.0, {"middle": [], "low": [], "high": []}
    for at in sorted(rounds[reached]):
        left = int((rounds >= at).sum())
        height *= 1 - 1 / left
        if not 0 < height < 1:
            continue
        variance += 1 / (left * (left - 1))
        width = stats.norm.ppf(0.975) * math.sqrt(variance) / math.log(height)
        bounds = height ** math.exp(-width), height, height ** math.exp(width)  # log(height) is negative
        for name, bound in zip(("low", "middle", "high"), sorted(bounds), strict=True):
            crossed[name] += [at] if bound <= 0.5 else []
    expected = [min(crossed[name], default=INF) for name in ("middle", "low", "high")]
    assert ours.median_round(rounds, reached) == tuple(expected)
