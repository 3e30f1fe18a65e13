"""The quantities that decide claims: a mean over seeds and its interval."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from jaxtyping import Float
from scipy import stats

FEWEST = 3
"""Seeds of the smallest interval. Student's t interval of two seeds is 12.7 standard errors wide and says nothing."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and Student's t interval.

    Attributes:
        mean: of the values; if `logarithmic`, their geometric mean.
        least, most: [seeds], each value, or its bounds where it is censored: a round that was not reached.
        exact: whether the values depend on no seed, so that the interval has no width.
        logarithmic: whether least and most are logarithms.
    """

    mean: float
    least: Float[np.ndarray, "seeds"]
    most: Float[np.ndarray, "seeds"]
    exact: bool = False
    logarithmic: bool = False

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.least)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The lower and the upper end; infinite with fewer than three seeds."""
        if self.exact:
            return self.mean, self.mean
        if self.seeds < FEWEST:
            return -math.inf, math.inf
        low, high = _end(self.least, -1, level), _end(self.most, 1, level)
        return (_exp(low), _exp(high)) if self.logarithmic else (low, high)

    @property
    def wide(self) -> bool:
        """Whether the interval is over more than a decade of a logarithmic axis: no number of decimals fits it."""
        low, high = self.interval()
        return self.logarithmic and high > 10 * low

    def seeds_to_exclude(self, bound: float, power: float = 0.8, level: float = 0.95) -> int | None:
        """Number of seeds whose interval leaves out a bound with a probability of `power`, if mean and sd are as here.

        The usual approximation ((z_a + z_power) sd / gap)^2 + z_a^2 / 2 with quantiles z of the normal distribution,
        a = (1 + level) / 2. None with fewer than three seeds, with censored values, or if no number is enough.
        """
        if self.logarithmic and bound <= 0:
            return 1
        gap = abs(math.log(self.mean / bound)) if self.logarithmic else abs(self.mean - bound)
        sd = float(np.std(self.least, ddof=1)) if self.seeds >= FEWEST and np.isfinite(self.least).all() else math.nan
        if gap == 0 or not (math.isfinite(gap) and math.isfinite(sd)) or not np.array_equal(self.least, self.most):
            return None
        z_level, z_power = NormalDist().inv_cdf((1 + level) / 2), NormalDist().inv_cdf(power)
        return math.ceil(((z_level + z_power) * sd / gap) ** 2 + z_level**2 / 2)


@dataclass(frozen=True)
class Best:
    """The best of several quantities, where one is enough for a claim.

    Each of k has the interval of the level 1 - (1 - level) / k, so that choosing the best one is allowed for.

    Attributes:
        of: at least one.
        sign: 1 if large ones are better, -1 if small ones are.
    """

    of: tuple[Estimate, ...]
    sign: int

    @property
    def mean(self) -> float:
        """The best mean."""
        return self._best(quantity.mean for quantity in self.of)

    @property
    def seeds(self) -> int:
        """The smallest number of seeds."""
        return min(quantity.seeds for quantity in self.of)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The best lower and the best upper end."""
        ends = [quantity.interval(1 - (1 - level) / len(self.of)) for quantity in self.of]
        return self._best(low for low, _ in ends), self._best(high for _, high in ends)

    def _best(self, values: Iterable[float]) -> float:
        return self.sign * max(self.sign * value for value in values)


Quantity = Estimate | Best


def estimate(values: Sequence[float] | Float[np.ndarray, "seeds"], exact: bool = False) -> Estimate:
    """The mean of values, one for each seed, at least one."""
    numbers = np.asarray(values, dtype=np.float64)
    return Estimate(float(numbers.mean()), numbers, numbers, exact)


def geometric(values: Float[np.ndarray, "seeds"], exact: bool = False) -> Estimate:
    """Mean and interval of the logarithms; of the values themselves if one is not above 0."""
    if not (values > 0).all():
        return estimate(values, exact)
    logs = np.log(values)
    return Estimate(math.exp(logs.mean()), logs, logs, exact, logarithmic=True)


def power(x: Sequence[float], values: Float[np.ndarray, "seeds points"], exact: bool = False) -> Estimate:
    """The exponents of values that are powers of x: slopes of least squares in the logarithms, seed by seed.

    Args:
        x: [points], above 0, at least two.
        values: NaN and values that are not above 0 have no logarithm; their seeds have the exponent NaN.
        exact: whether the values depend on no seed.
    """
    logs = np.log(np.where(values > 0, values, np.nan))
    steps = np.log(np.asarray(x, dtype=np.float64))
    steps -= steps.mean()
    return estimate(logs @ steps / (steps @ steps), exact)


def _end(values: Float[np.ndarray, "seeds"], sign: int, level: float) -> float:
    """An end of Student's t interval of a mean; infinite if a value is."""
    if not np.isfinite(values).all():
        return math.nan if np.isnan(values).any() else sign * math.inf
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() + sign * half)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
