"""Minimum separation by simulation of many independent chains at once, with standard errors."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from participation.theory.checks import check_least
from participation.theory.empirical import Estimate
from participation.theory.separation.arguments import check_draw, check_enough
from participation.theory.separation.stationary import stationary_separation


def simulated_separation(
    p: Float[np.ndarray, "M"],
    R: int | Int[np.ndarray, "M"],
    rounds: int,
    seed: int,
    B: int = 1,
    chains: int = 64,
    burn_in: int | None = None,
) -> Estimate:
    """Long-run share of rounds pi_R in which each unit is drawn, estimated from simulated chains.

    For B > 1 the units of a round are drawn one after another (the `successive` law, which has no closed form). For
    B = 1 this law and the product law are the same.

    Args:
        p: weights [M], at least 0.
        R: minimum separation, one number or one for each unit.
        rounds: rounds counted in each chain.
        seed: of the draws.
        B: units drawn in each round.
        chains: number of chains, at least 2.
        burn_in: rounds before counting starts. Default: a tenth of `rounds`, or ten times the largest separation if
            that is more. Each chain then waits for up to R more rounds, at random.

    Returns:
        pi_R [M] and its standard error, from the spread between chains.

    Raises:
        ValueError: as `separation_chain`; rounds below 1, burn_in below 0, or chains below 2.
    """
    check_least("rounds", rounds, 1)
    check_least("chains", chains, 2)
    longest = int(np.max(R))
    if burn_in is None:
        burn_in = max(rounds // 10, 10 * longest)
    check_least("burn_in", burn_in, 0)
    counts = np.zeros((chains, len(p)))
    # Chains that start in the same state stay synchronous for long: a heavy unit returns every R + 1 rounds exactly.
    # If all chains counted the same rounds, all would miss or gain the same draw, and the spread would not show it.
    opening = burn_in + np.random.default_rng([seed, 1]).integers(longest + 1, size=chains)
    for t, (_, drawn) in zip(range(burn_in + longest + rounds), walk(p, R, B, chains, seed), strict=False):
        counted = np.flatnonzero((t >= opening) & (t < opening + rounds))
        for unit in drawn:
            counts[counted, unit[counted]] += 1
    share = counts / rounds
    return Estimate(share.mean(axis=0), share.std(axis=0, ddof=1) / np.sqrt(chains))


def separation_shares(
    p: Float[np.ndarray, "M"], R: int, horizon: int, seed: int = 0, chains: int = 200
) -> tuple[Float[np.ndarray, "T"], Float[np.ndarray, "T"]]:
    """Mean total variation distance between pi_R and the shares of the first t + 1 draws of one roll call, B = 1.

    This is not the law of one draw, but the record of one roll call. At R = M - 1 the shares are even after each cycle.

    Args:
        p: weights [M], at least 0.
        R: minimum separation.
        horizon: T, number of rounds.
        seed: of the simulation.
        chains: number of roll calls to average over, at least 2.

    Returns:
        The distances [T] for t = 0..T-1, and their standard errors [T].

    Raises:
        ValueError: as `stationary_separation`; a horizon below 1, or chains below 2.
    """
    check_least("horizon", horizon, 1)
    check_least("chains", chains, 2)
    pi = stationary_separation(p, R)
    counts = np.zeros((chains, len(p)))
    distance, error = np.empty(horizon), np.empty(horizon)
    for t, (_, (drawn,)) in zip(range(horizon), walk(p, R, 1, chains, seed), strict=False):
        counts[np.arange(chains), drawn] += 1
        away = np.abs(counts / (t + 1) - pi).sum(axis=1) / 2
        distance[t], error[t] = away.mean(), away.std(ddof=1) / np.sqrt(chains)
    return distance, error


def walk(
    p: np.ndarray, R: int | np.ndarray, B: int, chains: int, seed: int
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Simulate chains round by round, without end.

    Yields:
        The weights [chains, M] of the units at the start of the round, 0 for a unit that is not available (the array
        is reused from round to round); and the B units drawn, each as [chains].
    """
    check_draw(p, B)
    separation = np.broadcast_to(np.asarray(R), p.shape)
    check_least("R", int(separation.min()), 0)
    if isinstance(R, int):
        check_enough(int((p > 0).sum()), R, B)
    rng = np.random.default_rng(seed)
    scaled = p / p.max()
    weight = np.tile(scaled, (chains, 1))
    # A ring over rounds: which (chain, unit) become available at the start of each.
    due: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(int(separation.max()) + 1)]
    t = 0
    while True:
        slot = due[t % len(due)]
        for chain, unit in slot:
            weight[chain, unit] = scaled[unit]
        slot.clear()
        at_start = weight if B == 1 else weight.copy()
        drawn = _draw(weight, B, t, rng)
        yield at_start, drawn
        for unit in drawn:
            weight[np.arange(chains), unit] = 0
            for r in np.unique(separation[unit]):
                chain = np.flatnonzero(separation[unit] == r)
                due[(t + 1 + int(r)) % len(due)].append((chain, unit[chain]))
        t += 1


def _draw(weight: np.ndarray, B: int, t: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The B units of a round in each chain, one after another. For B > 1, sets the weights of those drawn to 0."""
    chains = len(weight)
    drawn = []
    for _ in range(B):
        cumulated = np.cumsum(weight, axis=1)
        total = cumulated[:, -1]
        if (total == 0).any():
            raise ValueError(f"R: not allowed; round {t} of a chain has fewer than B = {B} available")
        # The first unit whose cumulated weight exceeds the target has positive weight, even for a target of 0.
        target = rng.random(chains) * total
        unit = (cumulated > target[:, None]).argmax(axis=1)
        drawn.append(unit)
        if B > 1:
            weight[np.arange(chains), unit] = 0
    return drawn
