"""Clients that participate together: groups and clusters of equal size."""

from dataclasses import replace

import numpy as np
from jaxtyping import Int

from participation.base import Population
from participation.streams import stream


def members(option: str, population: Population, count: int, *, shuffled: bool = False) -> Int[np.ndarray, "m"]:
    """The unit [m] of each client, 0..count-1: contiguous in the order of ids, or assigned at random by the seed.

    Args:
        option: name of the option that gives the count, for errors.
        population: the clients.
        count: number of units.
        shuffled: whether to assign clients at random.

    Raises:
        ValueError: the count does not divide the number of clients.
    """
    m = population.clients
    if count < 1 or m % count:
        raise ValueError(f"{option}: {count} is not allowed; must be a divisor of the {m} clients")
    unit = np.arange(m) // (m // count)
    # A key of two numbers: NumPy pads shorter keys with zeros, and (0,) is the key of round 0.
    return stream(population.seed, "participation", 0, 1).permutation(unit) if shuffled else unit


def pooled(population: Population, unit: Int[np.ndarray, "m"], count: int) -> Population:
    """The population of the units: mean class distributions and summed histograms of their members."""
    classes, histogram = population.classes, population.histogram
    if classes is not None:
        classes = np.stack([classes[unit == u].mean(axis=0) for u in range(count)])
    if histogram is not None:
        histogram = np.stack([histogram[unit == u].sum(axis=0) for u in range(count)])
    return replace(population, clients=count, classes=classes, histogram=histogram)
