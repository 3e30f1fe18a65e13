"""Minimum separation by enumeration: an oracle for the closed form."""

import itertools
import math

import numpy as np


def separation_chain(p, R, B=1):
    """The dense chain over the last R sets drawn, from every state the start can reach; R may differ by unit.

    Returns:
        The states, their transition matrix [S, S], and the probability that each unit is drawn from each [S, M].
    """
    M, R_of = len(p), np.broadcast_to(R, len(p))
    R = int(R_of.max())
    index, todo, moves = {(): 0}, [()], []
    while todo:
        state = todo.pop()
        free = [i for i in range(M) if all(i not in past for past in state[max(0, len(state) - R_of[i]) :])]
        sets = list(itertools.combinations(free, B))
        total = sum(math.prod(p[i] for i in s) for s in sets)
        for s in sets:
            after = (*state, s)[-R:] if R else ()
            if after not in index:
                index[after] = len(index)
                todo.append(after)
            moves.append((index[state], index[after], s, math.prod(p[i] for i in s) / total))
    S = len(index)
    P, draws = np.zeros((S, S)), np.zeros((S, M))
    for x, y, s, chance in moves:
        P[x, y] += chance
        draws[x, list(s)] += chance
    return list(index), P, draws


def brute_separation(p, R, B=1):
    """pi_R, stationary in `separation_chain`."""
    states, P, draws = separation_chain(p, R, B)
    # Least squares for x (P - I) = 0, sum x = 1; full states only, and any solution will do where there are several,
    # since all classes have the same shares.
    full = [x for x, state in enumerate(states) if len(state) == np.max(R)]
    P, draws = P[np.ix_(full, full)], draws[full]
    A = np.vstack([P.T - np.eye(len(full)), np.ones(len(full))])
    x = np.linalg.lstsq(A, np.append(np.zeros(len(full)), 1), rcond=None)[0]
    return x @ draws
