"""Statistics against SciPy, numbers of the literature, enumeration and the definitions of rliable, written as loops."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from rollcall.leaderboard import statistics as ours

INF = math.inf


def test_wins_and_ranks_by_hand():
    """A diverged run (-inf) is worse than all others and ties with another one."""
    assert ours.wins(np.array([3.0, 1.0, -INF, -INF]), np.array([2.0, 1.0, 0.0, -INF])) == (1, 2, 1)
    scores = np.array([[0.9, 0.8, 0.8], [0.1, -INF, 0.3], [-INF, -INF, 0.0]])
    assert ours.mean_ranks(scores).tolist() == pytest.approx(
        [(1 + 2 + 2.5) / 3, (2.5 + 3 + 2.5) / 3, (2.5 + 1 + 1) / 3]
    )


def test_equal_ranks_is_friedmans_test_and_of_two_methods_the_sign_test():
    scores = np.random.default_rng(0).normal([0, 0, 0.3, 0.6], size=(9, 4)).round(1)
    assert ours.equal_ranks_p(scores) == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)
    diverged = np.where(scores == scores.min(axis=1, keepdims=True), -INF, scores)
    assert ours.equal_ranks_p(diverged) == pytest.approx(ours.equal_ranks_p(scores))  # the worst stays the worst
    four_of_five = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0], [2.0, 2.0]])
    assert ours.equal_ranks_p(four_of_five) == pytest.approx(2 * (1 + 5) / 2**5)
    assert ours.equal_ranks_p(np.ones((3, 2))) == ours.equal_ranks_p(np.ones((3, 3))) == 1.0


def test_critical_differences_of_demsar():
    """Table 5(a) of Demsar (2006), and its example: four methods on 14 data sets."""
    for methods, q in zip(range(2, 11), (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164), strict=True):
        of_one_rank = math.sqrt(methods * (methods + 1) / 6)
        assert ours.critical_difference(methods, 1) == pytest.approx(q * of_one_rank, abs=2e-3 * of_one_rank)
    assert ours.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


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


@pytest.mark.parametrize("statistic", [ours.interquartile_mean, ours.improvement])
def test_the_bootstrap_draws_runs_within_each_task(statistic):
    """The percentiles of all draws, enumerated: 3^3 2^2 equally likely ones."""
    tasks = [np.array([0.1, 0.5, 0.9]), np.array([0.3, 0.45])]
    draws = product(*(product(task, repeat=len(task)) for task in tasks))
    every = [float(statistic(*map(np.array, draw))) for draw in draws]
    value, low, high = ours.bootstrap(statistic, tasks, level=0.7)
    assert value == statistic(*tasks)
    assert (low, high) == pytest.approx(np.quantile(every, [0.15, 0.85], method="inverted_cdf"))
    assert low < high


def test_tasks_are_strata_and_one_run_has_no_interval():
    """Equal runs within each task: draws over all runs would differ."""
    value, low, high = ours.bootstrap(ours.interquartile_mean, [np.ones(3), np.full(3, 5.0)])
    assert (value, low, high) == (3.0, 3.0, 3.0)
    value, low, high = ours.bootstrap(ours.interquartile_mean, [np.ones(3), np.array([2.0])])
    assert value == 1.0
    assert math.isnan(low)
    assert math.isnan(high)


def test_the_interval_agrees_with_a_bootstrap_in_loops():
    tasks, rng, draws = tasks_of(5, 5, 5, 4), np.random.default_rng(9), []
    for _ in range(4000):
        drawn = [task[rng.integers(len(task), size=len(task))] for task in tasks]
        draws.append(stats.trim_mean(np.concatenate(drawn), 0.25))
    _, low, high = ours.bootstrap(ours.interquartile_mean, tasks)
    assert [low, high] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.05)
    assert ours.bootstrap(ours.interquartile_mean, tasks)[1:] == (low, high)  # the same in every call


def test_of_a_profile_every_point_has_an_interval():
    thresholds = np.linspace(-1, 1, 5)
    value, low, high = ours.bootstrap(ours.profile(thresholds), tasks_of(6, 3, 3))
    assert value.shape == low.shape == high.shape == (5,)
    assert (low <= value).all()
    assert (value <= high).all()


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
