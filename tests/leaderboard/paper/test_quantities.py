"""Intervals against a table of Student's t, censored values, and the correction for choosing the best."""

import math

import numpy as np
import pytest
from scipy import stats

from rollcall.leaderboard.paper.quantities import Best, Estimate, estimate, geometric, power


def test_students_interval():
    found = estimate([1.0, 2.0, 6.0])  # mean 3, sd sqrt(7), t(0.975, 2) = 4.302653, t(0.9875, 2) = 6.2053
    half = math.sqrt(7) / math.sqrt(3)
    assert found.mean == pytest.approx(3.0)
    assert found.interval() == pytest.approx((3 - 4.302653 * half, 3 + 4.302653 * half))
    assert found.interval(0.975) == pytest.approx((3 - 6.20535 * half, 3 + 6.20535 * half), rel=1e-5)
    assert estimate([2.0], exact=True).interval() == (2.0, 2.0)


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.1]])
def test_fewer_than_three_seeds_have_no_interval(values):
    assert estimate(values).interval() == (-math.inf, math.inf)
    assert geometric(np.array(values)).interval() == (-math.inf, math.inf)


def test_the_interval_of_a_ratio_is_that_of_the_logarithms():
    found = geometric(np.array([0.5, 2.0, 1.0]))
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert found.mean == pytest.approx(1.0)
    assert found.interval() == pytest.approx((math.exp(-half), math.exp(half)), rel=1e-5)
    assert geometric(np.array([0.5, 0.0, 1.0])).mean == 0.5  # 0 has no logarithm


def test_a_censored_value_leaves_an_end_open():
    later = Estimate(math.inf, np.array([150.0, 300.0, 300.0]), np.array([150.0, 300.0, math.inf]))
    low, high = later.interval()
    assert (low, high) == (pytest.approx(250 - 4.302653 * 50), math.inf)
    assert Estimate(math.nan, np.full(3, -math.inf), np.full(3, math.inf)).interval() == (-math.inf, math.inf)
    alike = Estimate(math.inf, np.full(3, 1650.0), np.full(3, math.inf))
    assert alike.interval() == (1650.0, math.inf)
    assert alike.seeds_to_exclude(0.0) is None


def test_the_best_of_two_pays_for_the_choice():
    """Both are noise around 0: chosen after the fact, the larger excludes 0 in 5 % of cases, not in 10."""
    draw = np.random.default_rng(0)
    chosen, plain = 0, 0
    for _ in range(2000):
        both = tuple(estimate(draw.normal(size=5)) for _ in range(2))
        chosen += Best(both, 1).interval()[0] > 0
        plain += max(one.interval()[0] for one in both) > 0
    assert plain / 2000 == pytest.approx(1 - 0.975**2, abs=0.01)
    assert chosen / 2000 == pytest.approx(1 - 0.9875**2, abs=0.008)
    low = Best((estimate([1.0, 2.0, 3.0]), estimate([5.0, 6.0, 7.0])), -1)
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
    np.testing.assert_allclose(found.least, slopes, rtol=1e-12)
    assert found.interval() == pytest.approx(stats.t.interval(0.95, 5, np.mean(slopes), stats.sem(slopes)))
    assert math.isnan(power(x, np.array([[1.0, 0.5, 0.0, 0.1]] * 3)).interval()[0])  # 0 has no logarithm


def test_seeds_that_would_exclude_a_bound():
    """By Student's t: with n seeds, (t(.975) + z(.8)) sd / sqrt(n) is first below the gap."""
    found = estimate([-0.1, 0.0, 0.4])
    gap, sd = 0.1, math.sqrt(0.07)
    exact = next(n for n in range(2, 999) if (stats.t.ppf(0.975, n - 1) + 0.8416) * sd / n**0.5 < gap)
    assert abs(found.seeds_to_exclude(0.0) - exact) <= 1
    assert estimate([0.1, 0.2]).seeds_to_exclude(0.0) is None
    ratio = geometric(np.exp(np.array([-0.05, 0.0, 0.05]) + math.log(1.11)))
    assert ratio.seeds_to_exclude(1.1) == math.ceil((2.8016 * 0.05 / math.log(1.11 / 1.1)) ** 2 + 1.9208)
