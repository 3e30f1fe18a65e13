"""Intervals against a table of Student's t and simulations, crossings, and the correction for choosing the best."""

import math

import numpy as np
import pytest
from scipy import stats

from rollcall.leaderboard.paper.quantities import BestOf, Crossing, Later, estimate, geometric, power


def test_students_interval():
    found = estimate([1.0, 2.0, 6.0])  # mean 3, sd sqrt(7), t(0.975, 2) = 4.302653, t(0.9875, 2) = 6.2053
    half = math.sqrt(7) / math.sqrt(3)
    assert found.mean == pytest.approx(3.0)
    assert found.interval() == pytest.approx((3 - 4.302653 * half, 3 + 4.302653 * half))
    assert found.interval(0.975) == pytest.approx((3 - 6.20535 * half, 3 + 6.20535 * half), rel=1e-5)
    assert estimate([2.0], exact=True).interval() == (2.0, 2.0)


def test_the_interval_of_a_ratio_is_that_of_the_logarithms():
    found = geometric(np.array([0.5, 2.0, 1.0]))
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert found.mean == pytest.approx(1.0)
    assert found.interval() == pytest.approx((math.exp(-half), math.exp(half)), rel=1e-5)
    assert geometric(np.array([0.5, 0.0, 1.0])).mean == 0.5  # 0 has no logarithm


def crossing(curves, threshold=0.5, every=10):
    """Of runs that are evaluated from round 0 on, and whose costs are their rounds."""
    curves = np.asarray(curves, dtype=float)
    spent = np.broadcast_to(every * np.arange(curves.shape[1], dtype=float), curves.shape)
    return Crossing(curves, spent, spent[:, -1], threshold)


RISING = [[0.0, 0.2, 0.5, 0.7, 0.9], [0.1, 0.3, 0.5, 0.7, 1.0], [0.2, 0.4, 0.5, 0.7, 1.1]]
"""Means 0.1, 0.3, 0.5, 0.7, 1; the half width is 4.302653 * 0.1 / sqrt(3) = 0.248 where seeds differ, else 0."""


def test_point_and_interval_of_a_crossing_are_of_the_mean_curve():
    for threshold, expected in {0.3: (10, 0, 20), 0.5: (20, 10, 20), 0.6: (30, 30, 30), 0.75: (40, 40, 40)}.items():
        found = crossing(RISING, threshold)
        assert (found.mean, *found.interval()) == expected
    assert crossing(RISING, 0.8).interval() == (40.0, math.inf)  # the lower end is at 0.752 in the last round
    one_seed_is_early = crossing([[0.0, 0.9, 0.9, 0.9], [0.0, 0.1, 0.1, 0.9], [0.0, 0.1, 0.1, 0.9]], 0.3)
    assert one_seed_is_early.mean == 10.0  # 1.1 / 3, although two of three seeds are there at 30 only


def test_of_a_threshold_that_is_not_reached_the_ends_of_the_runs_are_known():
    never = crossing(RISING, 1.5)
    assert (never.mean, never.interval()) == (math.inf, (40.0, math.inf))
    perhaps = crossing(RISING, 1.1)  # the upper end is at 1.248 in the last round
    assert (perhaps.mean, perhaps.interval()) == (math.inf, (40.0, math.inf))
    falls = crossing([[0.0, 0.6, 0.4], [0.0, 0.6, 0.4], [0.0, 0.6, 0.4]])
    assert (falls.mean, falls.interval()) == (10.0, (10.0, math.inf))  # it may have been noise
    assert crossing(RISING[:2]).interval() == (-math.inf, math.inf)


def test_the_interval_of_a_difference_adds_squares():
    """30 of [30, 40] less 10 of [0, 20]: 20 - sqrt(0 + 100), 20 + sqrt(100 + 100); less 20 of [10, 20]: 10 - 0."""
    a = crossing([[0.0, 0.1, 0.2, 0.5, 0.9], [0.0, 0.1, 0.2, 0.6, 0.9], [0.0, 0.1, 0.2, 0.7, 0.9]], 0.6)
    b = crossing(RISING, 0.3)
    assert (a.interval(), b.interval()) == ((30.0, 40.0), (0.0, 20.0))
    assert Later(a, b).mean == 20.0
    assert Later(a, b).interval() == pytest.approx((10.0, 20 + math.sqrt(200)))
    assert Later(a, crossing(RISING, 0.45)).interval() == pytest.approx((10.0, 10 + math.sqrt(200)))
    never = crossing(RISING, 1.5)
    assert (Later(never, b).mean, Later(never, b).interval()) == (math.inf, (40.0 - 20.0, math.inf))
    assert (Later(b, never).mean, Later(b, never).interval()) == (-math.inf, (-math.inf, 20.0 - 40.0))
    assert math.isnan(Later(never, never).mean)
    assert Later(never, never).interval() == (-math.inf, math.inf)


def test_the_interval_has_the_round_of_the_expected_curve():
    """Curves with noise of evaluations and of seeds, drawn 200 times; seeds' own rounds are of an earlier one."""
    rng, t = np.random.default_rng(0), 10.0 * np.arange(101)
    fast, slow = (0.5 * (1 - np.exp(-t / scale)) for scale in (200, 300))
    first, second = (t[np.argmax(curve >= 0.3)] for curve in (fast, slow))
    covered, later, by_seeds = 0, 0, 0
    for _ in range(200):
        noise = 0.01 * rng.normal(size=(6, 1)) + 0.02 * rng.normal(size=(2, 6, len(t)))
        a, b = crossing(fast + noise[0], 0.3), crossing(slow + noise[1], 0.3)
        own = estimate([crossing([seed], 0.3).mean for seed in b.curves]).interval()
        covered += b.interval()[0] <= second <= b.interval()[1]
        later += Later(a, b).interval()[0] <= first - second <= Later(a, b).interval()[1]
        by_seeds += own[0] <= second <= own[1]
    assert covered / 200 >= 0.94
    assert later / 200 >= 0.94
    assert by_seeds / 200 < 0.85


def test_the_best_of_two_pays_for_the_choice():
    """Both are noise around 0: chosen after the fact, the larger excludes 0 in 5 % of cases, not in 10."""
    draw = np.random.default_rng(0)
    chosen, plain = 0, 0
    for _ in range(2000):
        both = tuple(estimate(draw.normal(size=5)) for _ in range(2))
        chosen += BestOf(both, 1).interval()[0] > 0
        plain += max(one.interval()[0] for one in both) > 0
    assert plain / 2000 == pytest.approx(1 - 0.975**2, abs=0.01)
    assert chosen / 2000 == pytest.approx(1 - 0.9875**2, abs=0.008)
    low = BestOf((estimate([1.0, 2.0, 3.0]), estimate([5.0, 6.0, 7.0])), -1)
    assert low.mean == 2.0
    assert low.interval() == pytest.approx(estimate([1.0, 2.0, 3.0]).interval(0.975))


def test_the_exponent_of_a_power_is_that_of_scipys_regression():
    """Exact powers give their exponents; noisy ones those of a regression of the logarithms."""
    x = np.array([10.0, 30.0, 100.0, 500.0])
    exact = power(x, np.stack([3 * x**-0.5, 7 * x**-0.5]), exact=True)
    assert exact.interval() == pytest.approx((-0.5, -0.5))
    noisy = 2 * x**-0.5 * np.exp(0.3 * np.random.default_rng(0).normal(size=(6, 4)))
    found = power(x, noisy)
    slopes = [stats.linregress(np.log(x), np.log(row)).slope for row in noisy]
    np.testing.assert_allclose(found.values, slopes, rtol=1e-12)
    assert found.interval() == pytest.approx(stats.t.interval(0.95, 5, np.mean(slopes), stats.sem(slopes)))
    assert math.isnan(power(x, np.array([[1.0, 0.5, 0.0, 0.1]] * 3)).interval()[0])  # 0 has no logarithm
