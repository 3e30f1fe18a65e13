"""Replay of a recorded roll call."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from rollcall.participation.base import Participation, Population
from rollcall.participation.recording import load, mask_of
from rollcall.participation.streams import stream


class Trace(Participation):
    """Replays the rounds of a recording.

    If the recording has intervals in seconds, client i is active in round t if one of its intervals covers the start of
    the round: start <= t * round_length < end. Intervals may overlap and be in any order. Round 0 starts at 0 seconds,
    or, if the times are Unix times or dates, at the midnight before the first interval. The recording ends with the
    last interval.

    Args:
        mask: [T, m], true (or 1) if client i is active in round t; or the path of a recording in a form of
            `rollcall.participation.recording`, such as a .npy or .csv file; or a name in its `NAMED`, such as phones;
            or the rows of a table, as its `load` returns them.
        round_length: length of a round in seconds, for intervals.
        time_zone: whose midnight it is, for intervals in Unix times or dates.
        devices: numbers of the recorded devices that clients 0, 1, ... replay. Default: client i replays device i, and
            the recording has no other device.
        shuffle: draw the device of each client by the seed, without replacement, from `devices` or from all.
        random_start: draw the recorded round that is round 0 by the seed.
        constant_probability: tell an oracle the stationary pi_i as p_i^t of every round.
        probability: p_i^t for an oracle, [m] for all rounds or [T, m]. Default: unknown.
        stationary: pi [m] for an oracle, in [0, 1]. Default: each client's share of the recorded rounds.
        correlation: lambda [m] for an oracle, in [-1, 1]. Default: P(on|on) + P(off|off) - 1 in the recording, with the
            first round following the last, and 0 for clients that never change.
        share: c [m] for an oracle, in [0, 1]. Default: each client's mean of 1{i in A} / |A| in the recording.
        wrap: start again at round 0 after round T - 1; otherwise no client is active after that.
    """

    def __init__(
        self,
        population: Population,
        *,
        mask: np.ndarray | str | Path,
        round_length: float | None = None,
        time_zone: str = "UTC",
        devices: np.ndarray | None = None,
        shuffle: bool = False,
        random_start: bool = False,
        constant_probability: bool = False,
        probability: np.ndarray | None = None,
        stationary: np.ndarray | None = None,
        correlation: np.ndarray | None = None,
        share: np.ndarray | None = None,
        wrap: bool = True,
    ) -> None:
        super().__init__(population)
        m = self.clients
        if isinstance(mask, str | Path):
            try:
                mask = load(mask)
            except ValueError as error:
                raise ValueError(f"mask: {error}") from None
        mask = np.asarray(mask)
        chosen = devices is not None or shuffle
        if mask.dtype.names:
            recorded = int(mask["client"].max(initial=0)) + 1
            mask = mask_of(mask, max(m, recorded) if chosen else m, round_length, time_zone)
        elif round_length is not None:
            raise ValueError(f"round_length: {round_length:g} is not allowed with a mask; must be null")
        if chosen and mask.ndim == 2:
            mask = mask[:, _devices(population, mask.shape[1], devices, shuffle)]
        if mask.ndim != 2 or mask.shape[1] != m or len(mask) == 0:
            must = f"must be [rounds, {m}], one column for each client"
            raise ValueError(f"mask: shape {mask.shape} is not allowed; {must}")
        if not np.isin(mask, (0, 1)).all():
            raise ValueError("mask: values other than 0 and 1 are not allowed; must be 1 where the uplink is on")
        T = len(mask)
        self.mask = mask.astype(bool)
        self.wrap = wrap
        self.round_length = round_length
        # Keys of two numbers: (0,) is the key of round 0.
        self.start = int(stream(self.seed, "participation", 0, 3).integers(T)) if random_start else 0
        if constant_probability and probability is not None:
            raise ValueError("constant_probability: true is not allowed with a probability; leave one of them out")
        self._constant = constant_probability
        self._probability = checked("probability", probability, [(m,), (T, m)], 0, 1)
        impossible = np.flatnonzero((self.mask & (self._probability == 0)).any(axis=0))
        if len(impossible):
            raise ValueError(f"probability: 0 (client {impossible[0]}) is not allowed; the mask has this client on")
        self._stationary = checked("stationary", stationary, [(m,)], 0, 1)
        self._correlation = checked("correlation", correlation, [(m,)], -1, 1)
        self._share = checked("share", share, [(m,)], 0, 1)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        if t + self.start >= len(self.mask) and not self.wrap:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.mask[(t + self.start) % len(self.mask)])

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        p = self.stationary if self._constant else self._probability
        return p if p is None or p.ndim == 1 else p[(t + self.start) % len(self.mask)]

    @property
    def stationary(self) -> Float[np.ndarray, "m"]:
        return self.mask.mean(axis=0) if self._stationary is None else self._stationary

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return lag_one(self.mask) if self._correlation is None else self._correlation

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        if self._share is not None:
            return self._share
        a = self.mask.sum(axis=1, keepdims=True)
        return (self.mask / np.maximum(a, 1)).mean(axis=0)


def _devices(population: Population, recorded: int, devices: np.ndarray | None, shuffle: bool) -> Int[np.ndarray, "m"]:
    """The device of each client."""
    pool = np.arange(recorded) if devices is None else np.asarray(devices)
    if pool.dtype.kind not in "iu" or pool.ndim != 1 or not ((pool >= 0) & (pool < recorded)).all():
        raise ValueError(f"devices: {pool.tolist()} is not allowed; must be numbers from 0 to {recorded - 1}")
    if len(pool) < population.clients:
        must = f"must be at least {population.clients}, one for each client"
        raise ValueError(f"devices: {len(pool)} recorded devices are not allowed; {must}")
    pool = stream(population.seed, "participation", 0, 2).permutation(pool) if shuffle else pool
    return pool[: population.clients]


def lag_one(mask: Bool[np.ndarray, "T m"]) -> Float[np.ndarray, "m"]:
    """P(on|on) + P(off|off) - 1 [m], with the first round following the last: the circular lag-1 autocorrelation."""
    T, on = len(mask), mask.sum(axis=0)
    both = (mask & np.roll(mask, -1, axis=0)).sum(axis=0)
    moves = (on > 0) & (on < T)
    # (both/T - pi^2) / (pi (1 - pi)) with pi = on/T, in whole numbers.
    return np.divide(both * T - on * on, on * (T - on), where=moves, out=np.zeros(len(on)))


def checked(
    name: str, value: np.ndarray | None, shapes: list[tuple[int, ...]], low: float, high: float
) -> np.ndarray | None:
    """The value, if it has one of the shapes and is in [low, high]."""
    if value is None:
        return None
    if value.shape not in shapes:
        allowed = " or ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{name}: shape {value.shape} is not allowed; must be {allowed}")
    outside = value[~((value >= low) & (value <= high))]
    if len(outside):
        raise ValueError(f"{name}: {outside[0]:g} is not allowed; must be in [{low}, {high}]")
    return value
