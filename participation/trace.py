"""Replay of a recorded roll call."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from rollcall.participation.base import Participation, Population
from rollcall.participation.recording import load, mask_of


class Trace(Participation):
    """Replays the rounds of a recording.

    If the recording has intervals in seconds, client i is active in round t if one of its intervals covers the start of
    the round: start <= t * round_length < end. Intervals may overlap and be in any order. Round 0 starts at 0 seconds,
    and the recording ends with the last interval.

    Args:
        mask: [T, m], true (or 1) if client i is active in round t; or the path of such an array (.npy, .npz) or of a
            table (.csv, .parquet) with the columns round,client or client,start,end (in seconds); or the rows of such a
            table, as `rollcall.participation.recording.load` returns them.
        round_length: length of a round in seconds, for a table of intervals.
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
        if mask.dtype.names:
            mask = mask_of(mask, m, round_length)
        elif round_length is not None:
            raise ValueError(f"round_length: {round_length:g} is not allowed with a mask; must be null")
        if mask.ndim != 2 or mask.shape[1] != m or len(mask) == 0:
            must = f"must be [rounds, {m}], one column for each client"
            raise ValueError(f"mask: shape {mask.shape} is not allowed; {must}")
        if not np.isin(mask, (0, 1)).all():
            raise ValueError("mask: values other than 0 and 1 are not allowed; must be 1 where the uplink is on")
        T = len(mask)
        self.mask = mask.astype(bool)
        self.wrap = wrap
        self._probability = checked("probability", probability, [(m,), (T, m)], 0, 1)
        impossible = np.flatnonzero((self.mask & (self._probability == 0)).any(axis=0))
        if len(impossible):
            raise ValueError(f"probability: 0 (client {impossible[0]}) is not allowed; the mask has this client on")
        self._stationary = checked("stationary", stationary, [(m,)], 0, 1)
        self._correlation = checked("correlation", correlation, [(m,)], -1, 1)
        self._share = checked("share", share, [(m,)], 0, 1)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        if t >= len(self.mask) and not self.wrap:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.mask[t % len(self.mask)])

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        p = self._probability
        return p if p is None or p.ndim == 1 else p[t % len(self.mask)]

    @property
    def stationary(self) -> Float[np.ndarray, "m"]:
        return self.mask.mean(axis=0) if self._stationary is None else self._stationary

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return _lag_one(self.mask) if self._correlation is None else self._correlation

    @property
    def share(self) -> Float[np.ndarray, "m"]:
        if self._share is not None:
            return self._share
        a = self.mask.sum(axis=1, keepdims=True)
        return (self.mask / np.maximum(a, 1)).mean(axis=0)


def _lag_one(mask: Bool[np.ndarray, "T m"]) -> Float[np.ndarray, "m"]:
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
