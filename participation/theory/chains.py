"""Finite Markov chains: the mixing time, and averages that a chain drives.

A transition matrix P [S, S] has rows that sum to 1; P[x, y] is the probability of going from x to y.
"""

from collections.abc import Iterable
from functools import reduce

import numpy as np
from jaxtyping import Float


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


def product_chain(on_on: Float[np.ndarray, "m"], off_on: Float[np.ndarray, "m"]) -> Float[np.ndarray, "S S"]:
    """The transition matrix of m on-off chains together, S = 2^m; the state of the last client changes fastest."""
    return reduce(np.kron, [np.array([[1 - b, b], [1 - a, a]]) for a, b in zip(on_on, off_on, strict=True)])


def affine_moments(
    transition: Float[np.ndarray, "S S"],
    law: Float[np.ndarray, "S"],
    a: Float[np.ndarray, "S"],
    b: Float[np.ndarray, "S"],
    x: float,
    rates: Iterable[float],
) -> Float[np.ndarray, "3 S"]:
    """E[x_T^i 1{S_T-1 = s}], i = 0, 1, 2, of x <- (1 - eta_t a(S_t)) x + eta_t b(S_t) along a chain S_t, exact.

    Args:
        transition: of the chain.
        law: of S_0.
        a, b: of each state.
        x: x_0, a number.
        rates: eta_0, ..., eta_T-1.
    """
    moments = np.array([law, x * law, x * x * law])
    for t, eta in enumerate(rates):
        one, first, second = moments @ transition if t else moments
        keep, add = 1 - eta * a, eta * b
        moments = np.array([one, keep * first + add * one, keep**2 * second + 2 * keep * add * first + add**2 * one])
    return moments
