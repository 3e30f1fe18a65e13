"""Spatial correlation between clients at fixed marginal probabilities."""

import math
from statistics import NormalDist

import numpy as np
from jaxtyping import Int

from rollcall.participation.base import IndependentRounds, Population, members
from rollcall.participation.probabilities import Source, resolve
from rollcall.participation.streams import stream


class Copula(IndependentRounds):
    """One-factor Gaussian copula: clients of a cluster are correlated by rho, at fixed probabilities p_i.

    Client i is active if sqrt(rho) W_c(i) + sqrt(1 - rho) e_i < Phi^-1(p_i). W_c is N(0, 1) for each cluster and round,
    e_i is N(0, 1) for each client and round, all independent. Each sum is N(0, 1), so client i is active with
    probability p_i for any rho. Clients of a cluster have latent correlation rho. Clients of different clusters are
    independent, and so are rounds. Not from a paper; made for experiments that vary rho alone.

    Args:
        population: the clients.
        probability: p_i as one number, one for each client, or a source such as `class_coupled`.
        rho: latent correlation within a cluster, in [0, 1); 0 is independence.
        clusters: number of clusters, a divisor of the number of clients; contiguous in the order of ids. 1 means one
            factor for all clients.

    Raises:
        ValueError: a probability outside [0, 1], not one for each client, unequal clusters, or rho out of range.
    """

    def __init__(
        self, population: Population, *, probability: float | np.ndarray | Source, rho: float, clusters: int = 1
    ) -> None:
        self.clients = population.clients
        self.seed = population.seed
        if not 0 <= rho < 1:
            raise ValueError(f"rho: {rho:g} is not allowed; must be in [0, 1)")
        self.rho = rho
        self.p = resolve(probability, population)
        self.cluster = members("clusters", population, clusters)
        self.count = clusters
        values, which = np.unique(self.p, return_inverse=True)
        self.threshold = np.array([_quantile(float(p)) for p in values])[which]

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        rng = stream(self.seed, "participation", t)
        common = rng.standard_normal(self.count)[self.cluster]
        individual = rng.standard_normal(self.clients)
        return np.flatnonzero(math.sqrt(self.rho) * common + math.sqrt(1 - self.rho) * individual < self.threshold)


def _quantile(p: float) -> float:
    """Phi^-1(p), infinite at 0 and 1."""
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    return NormalDist().inv_cdf(p)
