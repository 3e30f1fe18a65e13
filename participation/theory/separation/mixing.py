"""How soon the law of the drawn unit becomes stationary under minimum separation ([Sun] Fig. 5)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from participation.theory.checks import check_least
from participation.theory.separation.chain import chain_size, separation_chain
from participation.theory.separation.simulation import walk
from participation.theory.separation.stationary import stationary_separation

GROUPS = 20
"""Groups of simulated chains for the jackknife error."""


@dataclass(frozen=True)
class Mixing:
    """Distance of the law of the drawn unit from its stationary law, round by round ([Sun] Fig. 5).

    Attributes:
        eta: [T, M], eta_R(t), the distribution of the unit drawn in round t.
        stationary: [M], pi_R.
        distance: [T], the total variation TV(eta_R(t), pi_R).
        error: [T], its standard error; 0 where exact.
        floor: [T], the distance that sampling noise alone would show if eta_R(t) were pi_R; 0 where exact. An estimate
            near the floor only says that the distance is not larger than that.
        exact: whether computed from the chain (else simulated).
    """

    eta: Float[np.ndarray, "T M"]
    stationary: Float[np.ndarray, "M"]
    distance: Float[np.ndarray, "T"]
    error: Float[np.ndarray, "T"]
    floor: Float[np.ndarray, "T"]
    exact: bool


def separation_mixing(
    p: Float[np.ndarray, "M"],
    R: int,
    horizon: int,
    seed: int = 0,
    chains: int = 2000,
    limit: int = 20_000,
) -> Mixing:
    """The laws eta_R(t) of the drawn unit and TV(eta_R(t), pi_R) for t = 0..T-1, B = 1, all units available at first.

    eta_R(0) = p. At R = M - 1 the roll call is cyclic and the distance does not go to 0. The result is exact if the
    chain has at most `limit` states. Otherwise eta_R(t) is the mean, over simulated chains, of the probabilities of
    the next draw given the available units. That has the same mean as the draws and much less noise. pi_R is exact in
    both cases.

    Args:
        p: weights [M], at least 0.
        R: minimum separation.
        horizon: T, number of rounds.
        seed: of the simulation.
        chains: number of simulated chains, a multiple of 20, at least 40.
        limit: the largest number of states to treat exactly.

    Raises:
        ValueError: as `stationary_separation`; a horizon below 1, or a number of chains that is not allowed.
    """
    check_least("horizon", horizon, 1)
    pi = stationary_separation(p, R)
    if chain_size(int((p > 0).sum()), R) <= limit:
        return _exact(p, R, horizon, pi, limit)
    if chains < 2 * GROUPS or chains % GROUPS:
        raise ValueError(f"chains: {chains} is not allowed; must be a multiple of {GROUPS}, at least {2 * GROUPS}")
    return _simulated(p, R, horizon, pi, seed, chains)


def _exact(p: np.ndarray, R: int, horizon: int, pi: np.ndarray, limit: int) -> Mixing:
    """By powers of the chain's transition matrix."""
    chain = separation_chain(p, R, limit=limit)
    back = chain.transition.T.tocsr()
    x = np.zeros(len(chain.draw))  # the distribution over states
    x[0] = 1.0
    eta = np.empty((horizon, len(p)))
    for t in range(horizon):
        eta[t] = x @ chain.draw
        x = np.asarray(back @ x).ravel()
    zero = np.zeros(horizon)
    return Mixing(eta, pi, np.abs(eta - pi).sum(axis=1) / 2, zero, zero, True)


def _simulated(p: np.ndarray, R: int, horizon: int, pi: np.ndarray, seed: int, chains: int) -> Mixing:
    """By the mean over simulated chains."""
    M = len(p)
    eta, error, floor = np.empty((horizon, M)), np.empty(horizon), np.empty(horizon)
    for t, (weight, _) in zip(range(horizon), walk(p, R, 1, chains, seed), strict=False):
        chance = weight / weight.sum(axis=1, keepdims=True)
        eta[t] = chance.mean(axis=0)
        # The mean absolute value of a normal variable is sqrt(2 / pi) times its standard deviation.
        floor[t] = np.sqrt(2 / np.pi) * (chance.std(axis=0, ddof=1) / np.sqrt(chains)).sum() / 2
        # Jackknife over groups of chains: the distance is not a mean, so its error is not that of a mean.
        groups = chance.reshape(GROUPS, -1, M).mean(axis=1)
        without = np.abs((GROUPS * eta[t] - groups) / (GROUPS - 1) - pi).sum(axis=1) / 2
        error[t] = np.sqrt((GROUPS - 1) * without.var())
    return Mixing(eta, pi, np.abs(eta - pi).sum(axis=1) / 2, error, floor, False)
