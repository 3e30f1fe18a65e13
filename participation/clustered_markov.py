"""Clusters of clients that are active and inactive together ([CAF] Fig. 5)."""

import numpy as np
from jaxtyping import Bool, Float, Int

from participation.base import Population
from participation.chain import Chain, switch
from participation.markov_pi_lambda import spread, transitions
from participation.probabilities import Source, resolve
from participation.streams import stream
from participation.units import members, pooled


class ClusteredMarkov(Chain):
    """One two-state Markov chain for each cluster, with availability pi and correlation lambda ([CAF] Fig. 5).

    All members of a cluster share its state. In each round the active set is read first, then the chain makes a
    transition. The default is the paper's population of ten clusters: pi = 0.9 and lambda = 0 in clusters 0..4;
    pi = 0.1 and lambda = c/10 in clusters c = 5..9.

    Args:
        population: the clients; clusters are contiguous in the order of ids.
        clusters: C, the number of clusters, a divisor of the number of clients.
        probability: pi_c as one number, one for each cluster, or a source (for which clusters are the clients).
            Default: 0.9 in the first half of the clusters, 0.1 in the second.
        correlation: lambda_c as one number, or one for each cluster. Default: 0 in the first half, c/C in the second.

    Raises:
        ValueError: clusters of unequal size, not one value for each cluster, or (pi, lambda) that no chain can have.
    """

    def __init__(
        self,
        population: Population,
        *,
        clusters: int = 10,
        probability: float | np.ndarray | Source | None = None,
        correlation: float | np.ndarray | None = None,
    ) -> None:
        super().__init__(population)
        self.cluster = members("clusters", population, clusters)
        c = np.arange(clusters)
        if probability is None:
            probability = np.where(2 * c < clusters, 0.9, 0.1)
        if correlation is None:
            correlation = np.where(2 * c < clusters, 0.0, c / clusters)
        self.pi = resolve(probability, pooled(population, self.cluster, clusters), unit="cluster")
        self.eigenvalue = spread("correlation", correlation, clusters, "cluster")
        self.on_on, self.off_on = transitions(self.pi, self.eigenvalue, "cluster")

    def start(self) -> Bool[np.ndarray, "C"]:
        return stream(self.seed, "participation", 0).random(len(self.pi)) < self.pi

    def step(self, state: Bool[np.ndarray, "C"], t: int) -> Bool[np.ndarray, "C"]:
        return switch(state, self.on_on, self.off_on, stream(self.seed, "participation", t))

    def emit(self, state: Bool[np.ndarray, "C"], t: int) -> Int[np.ndarray, "a"]:
        return np.flatnonzero(state[self.cluster])

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.pi[self.cluster]

    @property
    def stationary(self) -> Float[np.ndarray, "m"]:
        return self.pi[self.cluster]

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return self.eigenvalue[self.cluster]
