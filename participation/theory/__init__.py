"""Laws of participation: exact where possible, otherwise by simulation with standard errors.

All functions take plain arrays and numbers: probabilities, transition matrices, or a mask [T, m] of active clients.
"""

from rollcall.participation.theory.chains import (
    interval_distribution,
    long_run_distribution,
    mixing_time,
    second_eigenvalue,
    staleness_distribution,
)
from rollcall.participation.theory.empirical import (
    Estimate,
    batch_means,
    empirical_autocorrelation,
    empirical_correlation,
    empirical_effective_weights,
    empirical_intervals,
    empirical_marginals,
    empirical_staleness,
)
from rollcall.participation.theory.separation import (
    Mixing,
    SeparationChain,
    chain_separation,
    separation_chain,
    separation_mixing,
    separation_shares,
    simulated_separation,
    stationary_separation,
)
from rollcall.participation.theory.weights import (
    active_distribution_groups,
    active_distribution_independent,
    chi_square,
    effective_weights_groups,
    effective_weights_independent,
    l1_distance,
    normalised,
    total_variation,
)

__all__ = [
    "Estimate",
    "Mixing",
    "SeparationChain",
    "active_distribution_groups",
    "active_distribution_independent",
    "batch_means",
    "chain_separation",
    "chi_square",
    "effective_weights_groups",
    "effective_weights_independent",
    "empirical_autocorrelation",
    "empirical_correlation",
    "empirical_effective_weights",
    "empirical_intervals",
    "empirical_marginals",
    "empirical_staleness",
    "interval_distribution",
    "l1_distance",
    "long_run_distribution",
    "mixing_time",
    "normalised",
    "second_eigenvalue",
    "separation_chain",
    "separation_mixing",
    "separation_shares",
    "simulated_separation",
    "staleness_distribution",
    "stationary_separation",
    "total_variation",
]
