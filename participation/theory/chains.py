"""Finite Markov chains: long-run law and mixing time, and the pauses of a two-state chain.

A transition matrix P [S, S] has rows that sum to 1; P[x, y] is the probability of going from x to y.
"""

import numpy as np
from jaxtyping import Float
from scipy import sparse

RESIDUAL = 1e-15
ITERATIONS = 100_000


def long_run_distribution(transition: sparse.csr_array, start: int = 0) -> Float[np.ndarray, "S"]:
    """The long-run share of time [S] that a chain spends in each state, from state `start`.

    For an irreducible chain, periodic or not, this is the stationary distribution. Otherwise each closed class gets the
    probability that the chain ends in it, distributed by the stationary distribution of the class. RuntimeError: the
    chain mixes too slowly for power iteration.
    """
    back = transition.T.tocsr()
    x = np.zeros(transition.shape[0])
    x[start] = 1.0
    for _ in range(ITERATIONS):
        step = back @ x
        if np.abs(step - x).sum() <= RESIDUAL:
            return step / step.sum()
        # Half a step: the same long-run shares, and convergence for periodic chains too.
        x = (x + step) / 2
    raise RuntimeError(f"the chain of {len(x)} states mixes too slowly: no fixed point after {ITERATIONS} iterations")


def mixing_time(transition: Float[np.ndarray, "S S"], epsilon: float = 0.25) -> int:
    """Mixing time t_mix(epsilon) in rounds: the smallest t with max_x TV(P^t(x, .), pi) <= epsilon."""
    if not (transition >= 0).all() or not np.allclose(transition.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise ValueError("transition: must be at least 0 everywhere, with rows that sum to 1")
    modulus = np.sort(np.abs(np.linalg.eigvals(transition)))
    if len(modulus) > 1 and modulus[-2] > 1 - 1e-12:
        raise ValueError("transition: the chain never mixes; it is periodic or has more than one closed class")
    S = len(transition)
    equations = np.vstack([transition.T - np.eye(S), np.ones(S)])
    pi = np.linalg.lstsq(equations, np.append(np.zeros(S), 1), rcond=None)[0]
    power, t = np.eye(S), 0
    while np.abs(power - pi).sum(axis=1).max() / 2 > epsilon:
        power, t = power @ transition, t + 1
    return t


def interval_distribution(on: float, off: float, longest: int) -> Float[np.ndarray, "{longest}"]:
    """P(T = k) for k = 1..longest, where T is the number of rounds from one participation to the next.

    For a two-state chain P(1) = 1 - q and P(k) = q (1 - q*)^(k-2) q*, with q* = `on` = P(on|off) and q = `off` =
    P(off|on). With q* = p and q = 1 - p it is Bernoulli(p) and T is geometric. The values sum to 1 - P(T > longest); T
    is infinite if q* = 0 < q.
    """
    law = off * on * (1 - on) ** np.arange(-1.0, longest - 1) if on < 1 else np.zeros(longest)
    law[0] = 1 - off
    if on == 1 and longest > 1:
        law[1] = off
    return law


def staleness_distribution(on: float, off: float, longest: int) -> Float[np.ndarray, "{longest+1}"]:
    """P(s = k) for k = 0..longest, where s is the number of rounds since the last participation (0: active now).

    For the stationary two-state chain P(0) = pi = q* / (q* + q) and P(k) = pi q (1 - q*)^(k-1), with q* = `on` =
    P(on|off) and q = `off` = P(off|on). Bernoulli(p) is q* = p and q = 1 - p.
    """
    if on == off == 0:
        raise ValueError("on, off: 0 for both is not allowed; the client would keep its first state for ever")
    pi = on / (on + off)
    law = pi * off * (1 - on) ** np.maximum(np.arange(-1.0, longest), 0)
    law[0] = pi
    return law
