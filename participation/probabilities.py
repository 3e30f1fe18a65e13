"""Sources of the participation probabilities p_i of a population, and their variations over time.

A source takes the population and returns p [m]. A variation takes p [m] and the round t and returns p^t [m]; a periodic
one has the option `period`, P, a whole number of rounds. Keyword arguments are the options of an experiment file.
ValueError: an option out of range, or a source that needs the classes of a population that has none.
"""

import inspect
from collections.abc import Callable
from math import inf, pi, sin
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from rollcall.participation.base import Population, check, spread, stream

Source: TypeAlias = Callable[[Population], Float[np.ndarray, "m"]]

Probability: TypeAlias = float | np.ndarray | Source
"""Probabilities in [0, 1] of all clients: one number, one for each client, or a source such as `class_coupled`."""

Variation: TypeAlias = Callable[[Float[np.ndarray, "m"], int], Float[np.ndarray, "m"]]


def constant(population: Population, *, p: float) -> Float[np.ndarray, "m"]:
    """The same p for all clients."""
    return np.full(population.clients, p)


def listed(population: Population, *, p: np.ndarray) -> Float[np.ndarray, "m"]:
    """A given p for each client."""
    return p


def class_coupled(
    population: Population, *, sigma0: float = 10.0, delta: float = 0.02, realised: bool = False
) -> Float[np.ndarray, "m"]:
    """p_i = max(delta, <r, nu_i>): availability depends on the classes that a client holds ([PBC] section VII-B).

    r [C] is the same for all clients: C lognormal(0, sigma0^2) draws divided by their sum. Clients that hold classes of
    small r are rarely available. It is also the same for availability and for the speeds and failures of a clock, so
    that one set of clients is often available, fast, and often fails.

    Args:
        sigma0: standard deviation of the log of the draws; 0 gives all classes the same r and all clients the same p.
        delta: smallest probability, in [0, 1].
        realised: use the clients' actual label histograms for nu, as the authors' released code does.
    """
    check("probability.delta", delta)
    # Clipped because rounding can put a convex combination of distributions just above 1.
    return np.clip(_class_scores("class_coupled", population, sigma0, realised), delta, 1.0)


def coupling(
    population: Population, *, strength: float, mean: float = 0.5, sigma0: float = 10.0, delta: float = 0.02
) -> Float[np.ndarray, "m"]:
    """Availability coupled with the labels by an adjustable strength, at a fixed mean over the clients.

    p_i = mean + strength * c * (s_i - mean of s), where s_i = <r, nu_i> as in `class_coupled` and c is the largest
    factor for which all p are in [delta, 1] at strength 1. There the smallest p is delta or the largest p is 1. Not
    from a paper; made for experiments that vary the coupling alone.

    Args:
        strength: in [0, 1]; 0 gives all clients the same p.
        mean: exact mean of p over the clients.
        sigma0: standard deviation of the log of the draws of r.
        delta: smallest probability, in [0, mean].
    """
    check("probability.strength", strength)
    check("probability.mean", mean)
    check("probability.delta", delta, 0, mean)
    scores = _class_scores("coupling", population, sigma0)
    away = scores - scores.mean()
    # Scores of equal clients may differ by rounding. That must not be scaled up.
    if np.ptp(scores) < 1e-12:
        return np.full(population.clients, mean)
    c = min((mean - delta) / -away.min(), (1 - mean) / away.max())
    return np.clip(mean + strength * c * away, delta, 1.0)


def power_law(population: Population, *, s: float = 1.5, largest: float = 1.0) -> Float[np.ndarray, "m"]:
    """A power law: p_i = largest * i^-s with i from 1 ([Sun] section 6, there over groups).

    Args:
        s: the exponent, at least 0.
        largest: p of the first client, in [0, 1].
    """
    check("probability.s", s, 0, inf)
    check("probability.largest", largest)
    return largest * np.arange(1, population.clients + 1, dtype=np.float64) ** -s


def halves(population: Population, *, p0: float, p1: float) -> Float[np.ndarray, "m"]:
    """p0 for the first half of the clients, p1 for the second half ([PBC] Fig. 2 and 3)."""
    return np.where(first_half(population.clients), p0, p1)


def two_level(population: Population, *, g: float = 0.4) -> Float[np.ndarray, "m"]:
    """1/2 + g for the first half of the clients, 1/2 - g for the second half, g in [0, 1/2] ([CAF] section V-A)."""
    check("probability.g", g, 0, 0.5)
    return halves(population, p0=0.5 + g, p1=0.5 - g)


def mixture(population: Population) -> Float[np.ndarray, "m"]:
    """U(0.1, 0.3) for 90 % of the clients and U(0.1, 0.9) for the last 10 % by id ([FOCUS] appendix F, code)."""
    m = population.clients
    high = np.where(np.arange(m) < m - round(0.1 * m), 0.3, 0.9)
    return 0.1 + (high - 0.1) * stream(population.seed, population.purpose).random(m)


PROBABILITIES: dict[str, Callable[..., np.ndarray]] = {
    "constant": constant,
    "list": listed,
    "class_coupled": class_coupled,
    "coupling": coupling,
    "power_law": power_law,
    "halves": halves,
    "two_level": two_level,
    "mixture": mixture,
}


def sine(p: Float[np.ndarray, "m"], t: int, *, gamma: float = 0.4, period: int = 40) -> Float[np.ndarray, "m"]:
    """A sine: p_i^t = p_i [(1 - gamma) + gamma sin(2 pi t / P)], clipped to [0, 1] ([PBC] section VII).

    The default values are those of the authors' released code.

    Args:
        gamma: depth of the variation, in [0, 1]. Above 1/2 clients are inactive for a part of each period.
    """
    check("variation.gamma", gamma)
    check("variation.period", period, 1, inf)
    # The angle is taken within the period, so that p^t repeats exactly.
    factor = (1 - gamma) + gamma * sin(2 * pi * (t % period) / period)
    return np.clip(p * factor, 0.0, 1.0)


def staircase(p: Float[np.ndarray, "m"], t: int, *, low: float = 0.4, period: int = 40) -> Float[np.ndarray, "m"]:
    """A step: p_i in the first half of each period, low * p_i in the second (after Xiang et al. 2024, FedAWE).

    Args:
        low: factor of p_i in the second half, in [0, 1].
        period: P, in rounds. If odd, the first half is the longer one.
    """
    check("variation.low", low)
    check("variation.period", period, 1, inf)
    return p * (1.0 if 2 * (t % period) < period else low)


def varied(variation: Variation, p: Float[np.ndarray, "m"], t: int) -> Float[np.ndarray, "m"]:
    """p^t [m]; ValueError for one outside [0, 1]."""
    return resolve(variation(p, t), Population(len(p)), name="variation")


VARIATIONS: dict[str, Callable[..., np.ndarray]] = {"sine": sine, "staircase": staircase}


def mean_over_period(variation: Variation, p: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"] | None:
    """The mean of p^t [m] over the rounds of a period, after clipping; None if the variation has no period."""
    option = inspect.signature(variation).parameters.get("period")
    if option is None or not isinstance(option.default, int) or option.default < 1:
        return None
    # Rounding may put the mean just above 1.
    return np.minimum(
        sum((varied(variation, p, t) for t in range(option.default)), np.zeros_like(p)) / option.default, 1.0
    )


def first_half(m: int) -> Bool[np.ndarray, "m"]:
    """Whether each client belongs to the first half; for odd m, the middle client does."""
    return 2 * np.arange(m) < m


def _class_scores(name: str, population: Population, sigma0: float, realised: bool = False) -> Float[np.ndarray, "m"]:
    """<r, nu_i> [m], with the r of the seed."""
    nu, histogram = population.classes, population.histogram
    if nu is None or (realised and histogram is None):
        raise ValueError(f"probability: {name} is not allowed here; the task's data must have classes")
    check("probability.sigma0", sigma0, 0, inf)
    if realised and histogram is not None:
        nu = histogram / np.maximum(histogram.sum(axis=1, keepdims=True), 1)  # 0 for a client without samples
    return nu @ class_weights(population.seed, nu.shape[1], sigma0)


def class_weights(seed: int, classes: int, sigma0: float) -> Float[np.ndarray, "C"]:
    """r [C] of `class_coupled`: C lognormal(0, sigma0^2) draws divided by their sum."""
    log_r = sigma0 * stream(seed, "probabilities").standard_normal(size=classes)
    r = np.exp(log_r - np.max(log_r))
    return r / r.sum()


def class_shares(seed: int, clients: int, classes: int, alpha: float) -> Float[np.ndarray, "m C"]:
    """nu [m, C] of clients without data: Dirichlet(alpha), the first draw of the partition `dirichlet` of the seed."""
    return stream(seed, "partition").dirichlet(np.full(classes, alpha), size=clients)


def resolve(
    probability: Probability, population: Population, unit: str = "client", name: str = "probability"
) -> Float[np.ndarray, "m"]:
    """p [m], read-only; ValueError for one outside [0, 1]. For errors: `unit` owns one, `name` is the option."""
    given = probability(population) if callable(probability) else probability
    p = spread(name, given, population.clients, unit)
    outside = ~((p >= 0) & (p <= 1))
    if outside.any():
        client = int(np.flatnonzero(outside)[0])
        raise ValueError(f"{name}: {p[client]:g} ({unit} {client}) is not allowed; must be in [0, 1]")
    return p
