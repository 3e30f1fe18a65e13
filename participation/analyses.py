"""Analyses: computations without training. Those of a single paper are in `benchmark/experiments/PAPER/analyses.py`.

An analysis takes a seed and returns a table. Its column `round` is the variable that it runs over (rounds, clients or
probabilities); the other columns are quantities. Keyword arguments are the options of an experiment file.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from jaxtyping import Bool

from rollcall.participation import recording
from rollcall.participation.base import Participation, Population
from rollcall.participation.probabilities import class_shares
from rollcall.participation.summary import correlations, mean
from rollcall.participation.weights import normalised


def row(**quantities: float) -> pd.DataFrame:
    return pd.DataFrame([{"round": 0} | {name: float(value) for name, value in quantities.items()}])


def record(
    seed: int,
    *,
    participation: Callable[[Population], Participation],
    clients: int,
    rounds: int,
    lag: int = 1,
    sizes: tuple[int, ...] = (),
) -> pd.DataFrame:
    """Statistics of one roll call.

    Columns: `share` of active client rounds; `waits`, the mean over clients of t - tau_i(t) ([PBC] Proposition 2) times
    the client's smallest p_i^t; `never`, clients that were never active; `separation`, the fewest rounds between two
    activities; `differs`, the share of rounds whose set is not that of `lag` rounds before; `stretch_on` and
    `stretch_off`, the largest standard deviations of a client's stretches of activity and inactivity, without the first
    and the last one; `variance` of the number of active clients over that of independent ones with the same shares;
    `within` and `between`, the mean correlation of clients of one group and of two, among those of the first 1,000 that
    change; `error_pi` and `error_lambda`, the mean errors of the estimates of pi and lambda, with a prior of one round
    of each kind ([CAF] section IV-B); `weights`, the largest squared error of 1/(N lambda_i), with lambda the shares of
    all activities, against pi instead ([Sun] Lemma 2); `rarest`, the share of the rarest client over its pi, minus 1.

    Args:
        seed: of the roll call, and of the class distributions, Dirichlet 0.1 of ten classes, for probabilities that
            follow these.
        participation: the model.
        clients: m.
        rounds: T.
        lag: of `differs`.
        sizes: clients in each group, numbered group after group; by default each client is its own group.
    """
    model = participation(Population(clients, seed, class_shares(seed, clients, 10, 0.1)))
    mask = recording.record(model, rounds)
    known = [p for p in map(model.probability, range(min(rounds, 1000))) if p is not None]
    least = np.min(known, axis=0) if known else np.full(clients, np.nan)
    waits, separation, spread = [], float(rounds), {True: 0.0, False: 0.0}
    for column, c in zip(mask.T, least, strict=True):
        on = np.flatnonzero(column)
        gaps = np.diff(on)
        if len(gaps):
            separation = min(separation, gaps.min() - 1)
            # An interval of k rounds has waits 1, ..., k until the next activity.
            waits.append(c * (gaps * (gaps + 1) / 2).sum() / gaps.sum())
        for state, lengths in _stretches(column).items():
            spread[state] = max(spread[state], lengths.std() if len(lengths) else 0.0)
    a, shares = mask.sum(axis=1), mask.mean(axis=0)
    pi, eigenvalue = model.stationary, model.correlation
    law = np.full(clients, np.nan) if pi is None else normalised(pi)
    counted = np.where(shares > 0, shares / max(shares.sum(), 1e-300), np.nan)
    pairs = correlations(mask)[1]
    of = (np.repeat(np.arange(len(sizes)), sizes) if sizes else np.arange(clients))[: len(pairs)]
    same = (of[:, None] == of) & ~np.eye(len(of), dtype=bool)
    before, after = mask[:-1], mask[1:]
    stay, start = (((after & state).sum(axis=0) + 1) / (state.sum(axis=0) + 2) for state in (before, ~before))
    return row(
        share=shares.mean(),
        waits=mean(np.array(waits)),
        never=(~mask.any(axis=0)).sum(),
        separation=separation,
        differs=mean((mask[lag:] != mask[:-lag]).any(axis=1)),
        stretch_on=spread[True],
        stretch_off=spread[False],
        variance=a.var() / max((shares * (1 - shares)).sum(), 1e-300),
        within=mean(pairs[same]),
        between=mean(pairs[of[:, None] != of]),
        error_pi=np.nan if pi is None else np.abs((mask.sum(axis=0) + 1) / (rounds + 2) - pi).mean(),
        error_lambda=np.nan if eigenvalue is None else np.abs(stay - start - eigenvalue).mean(),
        weights=((1 / counted - 1 / law) ** 2).max() / clients**2,
        rarest=(counted / law)[law.argmin()] - 1,
    )


def _stretches(column: Bool[np.ndarray, "T"]) -> dict[bool, np.ndarray]:
    """The lengths of the stretches of activity and of inactivity, without the first and the last stretch."""
    ends = np.flatnonzero(np.diff(column)) + 1
    lengths, states = np.diff(ends), column[ends[:-1]]
    return {True: lengths[states], False: lengths[~states]}


ANALYSES: dict[str, Callable[..., pd.DataFrame]] = {"record": record}
