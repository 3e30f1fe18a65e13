"""Finite Markov chains: long-run law, second eigenvalue, mixing time, and the pauses of a two-state chain.

A transition matrix P [S, S] has rows that sum to 1; P[x, y] is the probability of going from x to y.
"""

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from rollcall.participation.theory.checks import check_least, check_probabilities

# The largest class that is solved directly. Fill-in makes the factors of larger ones too big, and they mix fast.
DIRECT = 1500
RESIDUAL = 1e-14
ITERATIONS = 100_000


def long_run_distribution(transition: sparse.csr_array, start: int = 0) -> Float[np.ndarray, "S"]:
    """The long-run share of time [S] that a chain spends in each state, from state `start`.

    For an irreducible chain, periodic or not, this is the stationary distribution. Otherwise each closed class gets the
    probability that the chain ends in it, distributed by the stationary distribution of the class.

    Args:
        transition: sparse [S, S], rows sum to 1.
        start: the first state.

    Raises:
        RuntimeError: a large class mixes too slowly for power iteration to reach a residual of 1e-14.
    """
    S = transition.shape[0]
    classes, label = connected_components(transition, directed=True, connection="strong")
    coo = transition.tocoo()
    leaks = coo.data > 0
    leaving = label[coo.row] != label[coo.col]
    open_class = np.zeros(classes, dtype=bool)
    open_class[label[coo.row[leaks & leaving]]] = True
    transient = open_class[label]
    # Expected visits to the transient states, then the probability that flows from them into each closed class.
    entered = np.zeros(S)
    entered[start] = 1.0
    if transient[start]:
        inside = np.flatnonzero(transient)
        among = transition[inside][:, inside]
        system = sparse.csc_array(sparse.eye_array(len(inside)) - among.T)
        visits = np.zeros(S)
        visits[inside] = np.atleast_1d(spsolve(system, entered[inside]))
        entered = np.asarray(transition.T @ visits).ravel()
        entered[inside] = 0.0
    law = np.zeros(S)
    for c in np.flatnonzero(~open_class):
        members = np.flatnonzero(label == c)
        mass = entered[members].sum()
        if mass > 0:
            law[members] = mass * _stationary(transition[members][:, members])
    return law / law.sum()


def _stationary(transition: sparse.csr_array) -> Float[np.ndarray, "S"]:
    """x with x P = x and sum 1, for an irreducible P."""
    S = transition.shape[0]
    if S <= DIRECT:
        # x is determined up to a factor: set x_0 = 1 and drop the equation of state 0.
        x = np.ones(S)
        if S > 1:
            system = sparse.csc_array(sparse.eye_array(S - 1) - transition.T.tocsc()[1:, 1:])
            x[1:] = np.atleast_1d(spsolve(system, transition[[0]].toarray().ravel()[1:]))
        return x / x.sum()
    back = transition.T.tocsr()
    x = np.full(S, 1 / S)
    for _ in range(ITERATIONS):
        step = back @ x
        if np.abs(step - x).sum() <= RESIDUAL:
            return step / step.sum()
        # Half a step: the same fixed point, and convergence for periodic chains too.
        x = (x + step) / 2
    raise RuntimeError(f"the chain of {S} states mixes too slowly: no fixed point after {ITERATIONS} iterations")


def second_eigenvalue(transition: Float[np.ndarray, "S S"]) -> float:
    """The second-largest modulus of the eigenvalues of P: 1 if the chain never mixes, 0 if it has no memory.

    Raises:
        ValueError: not a transition matrix.
    """
    _check_transition(transition)
    eigenvalues = np.linalg.eigvals(transition)
    # One eigenvalue is 1. Only one of modulus 1 is removed: a periodic or reducible chain has more of them.
    rest = np.delete(eigenvalues, int(np.argmin(np.abs(eigenvalues - 1))))
    return float(np.abs(rest).max(initial=0.0))


def mixing_time(transition: Float[np.ndarray, "S S"], epsilon: float = 0.25) -> int:
    """Mixing time t_mix(epsilon) in rounds: the smallest t with max_x TV(P^t(x, .), pi) <= epsilon.

    The distance does not increase with t, so t is doubled until the distance is small enough, and then found by
    bisection in O(S^3 log t). The result is 0 if epsilon is so large that no step is needed.

    Args:
        transition: P [S, S].
        epsilon: by convention 1/4.

    Raises:
        ValueError: not a transition matrix, epsilon outside (0, 1), or a chain that never mixes (periodic, or with
            more than one closed class).
    """
    _check_transition(transition)
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon: {epsilon:g} is not allowed; must be between 0 and 1")
    if second_eigenvalue(transition) > 1 - 1e-12:
        raise ValueError("transition: the chain never mixes; it is periodic or has more than one closed class")
    pi = long_run_distribution(sparse.csr_array(transition))

    def distance(power: np.ndarray) -> float:
        return float(np.abs(power - pi).sum(axis=1).max() / 2)

    reached = np.eye(len(pi))
    if distance(reached) <= epsilon:
        return 0
    powers = [transition]
    while distance(powers[-1]) > epsilon:
        powers.append(powers[-1] @ powers[-1])
    t = 0
    for k in range(len(powers) - 1, -1, -1):
        further = reached @ powers[k]
        if distance(further) > epsilon:
            reached, t = further, t + 2**k
    return t + 1


def interval_distribution(on: float, off: float, longest: int) -> Float[np.ndarray, "{longest}"]:
    """P(T = k) for k = 1..longest, where T is the number of rounds from one participation to the next.

    For a two-state chain P(1) = 1 - q and P(k) = q (1 - q*)^(k-2) q*. With q* = p and q = 1 - p it is Bernoulli(p) and
    T is geometric. The values sum to 1 - P(T > longest); T is infinite if q* = 0 < q.

    Args:
        on: q*, P(on in t + 1 | off in t).
        off: q, P(off in t + 1 | on in t).
        longest: the last k.

    Raises:
        ValueError: a probability outside [0, 1], or longest below 1.
    """
    check_probabilities("on, off", np.array([on, off], dtype=np.float64))
    check_least("longest", longest, 1)
    law = off * on * (1 - on) ** np.arange(-1.0, longest - 1) if on < 1 else np.zeros(longest)
    law[0] = 1 - off
    if on == 1 and longest > 1:
        law[1] = off
    return law


def staleness_distribution(on: float, off: float, longest: int) -> Float[np.ndarray, "{longest+1}"]:
    """P(s = k) for k = 0..longest, where s is the number of rounds since the last participation (0: active now).

    For the stationary two-state chain P(0) = pi = q* / (q* + q) and P(k) = pi q (1 - q*)^(k-1). Bernoulli(p) is q* = p
    and q = 1 - p.

    Args:
        on: q*, P(on in t + 1 | off in t).
        off: q, P(off in t + 1 | on in t).
        longest: the last k.

    Raises:
        ValueError: a probability outside [0, 1], longest below 0, or on = off = 0: such a chain keeps its first state
            for ever and has more than one stationary law.
    """
    check_probabilities("on, off", np.array([on, off], dtype=np.float64))
    check_least("longest", longest, 0)
    if on == off == 0:
        raise ValueError("on, off: 0 for both is not allowed; the client would keep its first state for ever")
    pi = on / (on + off)
    law = pi * off * (1 - on) ** np.maximum(np.arange(-1.0, longest), 0)
    law[0] = pi
    return law


def _check_transition(transition: np.ndarray) -> None:
    if not (transition >= 0).all() or not np.allclose(transition.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise ValueError("transition: must be at least 0 everywhere, with rows that sum to 1")
