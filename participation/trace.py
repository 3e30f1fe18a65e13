"""Replay of a recorded roll call."""

import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from rollcall.participation import recording
from rollcall.participation.base import Participation, Population, stream


class Trace(Participation):
    """Replays the rounds of a recording.

    If the recording has intervals, client i is active in round t if one of its intervals covers the start of the round:
    start <= t * round_length < end. Intervals may overlap and be in any order. Round 0 starts at 0 seconds, or, if the
    times are Unix times or dates, at the midnight before the first interval. The recording ends with the last interval.

    The devices of a table are those that occur in it, in the order of their numbers or names. If the data name their
    clients and the recording has one of the names, they are joined by name. Else client i replays device number i, or,
    if the devices have names or larger numbers and are as many as the clients, the i-th one.

    Args:
        mask: [T, m], true (or 1) if client i is active in round t; or the path of a recording in a form of
            `rollcall.participation.recording`, such as a .npy or .csv file; or a name in its `NAMED`, such as phones;
            or the rows of a table, as its `load` returns them.
        round_length: length of a round in seconds, for intervals.
        time_zone: whose midnight it is, and whose dates without a zone are.
        devices: the recorded devices, by number or name, that clients 0, 1, ... replay. Default: see above.
        shuffle: draw the device of each client by the seed, without replacement, from `devices` or from all.
        unknown: the device whose active rounds are gaps of the logger. They are left out of the recording.
        random_start: draw the recorded round that is round 0 by the seed.
        constant_probability: tell an oracle the stationary pi_i as p_i^t of every round.
        probability: p_i^t for an oracle, [m] for all rounds or [T, m]. Default: unknown.
        stationary: pi [m] for an oracle, in [0, 1]. Default: each client's share of the recorded rounds.
        correlation: lambda [m] for an oracle, in [-1, 1]. Default: P(on|on) + P(off|off) - 1 in the recording, with the
            first round following the last, and 0 for clients that never change.
        share: c [m] for an oracle, in [0, 1]. Default: each client's mean of 1{i in A} / |A| in the recording.
        wrap: start again at round 0 after round T - 1; otherwise no client is active after that.

    Attributes:
        notes: what was assumed about the recording, and what is lost of it, with counts.
    """

    def __init__(
        self,
        population: Population,
        *,
        mask: np.ndarray | str | Path,
        round_length: float | None = None,
        time_zone: str = "UTC",
        devices: np.ndarray | Sequence[int | str] | None = None,
        shuffle: bool = False,
        unknown: int | str | None = None,
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
                mask = recording.load(mask)
            except ValueError as error:
                raise ValueError(f"mask: {error}") from None
        mask = np.asarray(mask)
        self.notes: list[str] = []
        table = mask.dtype.names is not None
        if not table and (round_length is not None or time_zone != "UTC"):
            option = f"round_length: {round_length:g}" if round_length is not None else f"time_zone: {time_zone!r}"
            raise ValueError(f"{option} is not allowed with a mask; must be left out")
        if table or (mask.ndim == 2 and (devices is not None or shuffle or unknown is not None)):
            recorded = recording.devices(mask) if table else np.arange(mask.shape[1])
            gaps = _named("unknown", [] if unknown is None else [unknown], recorded)
            recorded = recorded[~np.isin(recorded, gaps)]
            if devices is not None or shuffle:
                chosen = _drawn(population, recorded, devices, shuffle)
            else:
                chosen = _joined(population, recorded, self.notes) if table else recorded
            every = np.concatenate([chosen, gaps])
            mask, lost = recording.mask_of(mask, every, round_length, time_zone) if table else (mask[:, every], [])
            self.notes += lost
            if unknown is not None:
                known = ~mask[:, -1].astype(bool)
                self.notes.append(f"{np.sum(~known):,} of {len(mask):,} rounds are gaps of the logger: left out")
                mask = mask[known, :-1]
        if mask.ndim != 2 or mask.shape[1] != m or len(mask) == 0:
            must = f"must be [rounds, {m}], one column for each client"
            raise ValueError(f"mask: shape {mask.shape} is not allowed; {must}")
        if not np.isin(mask, (0, 1)).all():
            raise ValueError("mask: values other than 0 and 1 are not allowed; must be 1 where the uplink is on")
        T = len(mask)
        self.mask = mask.astype(bool)
        if table:
            self._look_for_losses()
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

    def _look_for_losses(self) -> None:
        """Refuse a table in which nobody is ever active, and note long times without anybody."""
        on = np.flatnonzero(self.mask.any(axis=1))
        if not len(on):
            lost = f" ({'; '.join(self.notes)})" if self.notes else ""
            raise ValueError(f"mask: no client is active in any round{lost}; must be one, such as by shorter rounds")
        empty = int(np.diff(on).max(initial=1)) - 1
        if empty > max(100, len(self.mask) / 4):
            self.notes.append(
                f"{empty:,} of {len(self.mask):,} rounds in a row have no client: if the logger was off, write a device"
                " for this time and name it as `unknown`"
            )

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        if t + self.start >= len(self.mask) and not self.wrap:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.mask[(t + self.start) % len(self.mask)])

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        p = self.stationary if self._constant else self._probability
        if p is not None and t + self.start >= len(self.mask) and not self.wrap:
            return np.zeros(self.clients)
        return p if p is None or p.ndim == 1 else p[(t + self.start) % len(self.mask)]

    @cached_property
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


def _drawn(
    population: Population,
    recorded: Shaped[np.ndarray, "n"],
    devices: np.ndarray | Sequence[int | str] | None,
    shuffle: bool,
) -> Shaped[np.ndarray, "m"]:
    """The device of each client, out of chosen ones."""
    pool = recorded if devices is None else _named("devices", devices, recorded)
    if len(pool) < population.clients:
        must = f"must be at least {population.clients}, one for each client"
        raise ValueError(f"devices: {len(pool)} recorded devices are not allowed; {must}")
    pool = stream(population.seed, "participation", 0, 2).permutation(pool) if shuffle else pool
    return pool[: population.clients]


def _named(
    option: str, names: np.ndarray | Sequence[int | str], recorded: Shaped[np.ndarray, "n"]
) -> Shaped[np.ndarray, "k"]:
    """The devices of these numbers or names."""
    place = {text: device for device, text in enumerate(recorded.astype(str).tolist())}
    names = np.asarray(names).astype(str)
    for name in names.tolist():
        if name not in place:
            raise ValueError(f"{option}: {name!r} is not allowed; must be recorded devices: {_some(recorded)}")
    if twice := [name for name, times in Counter(names.tolist()).items() if times > 1]:
        raise ValueError(f"{option}: {twice[0]!r} is not allowed twice; must be a device for each client")
    return recorded[np.array([place[name] for name in names.tolist()], dtype=np.int64)]


def _joined(population: Population, recorded: Shaped[np.ndarray, "n"], notes: list[str]) -> Shaped[np.ndarray, "m"]:
    """The device of each client by name, number or order."""
    m, n, names = population.clients, len(recorded), population.names
    numbered = recorded.dtype.kind != "U"
    texts = recorded.astype(str)
    joined = names is not None and np.isin(names, texts).any()
    if joined:
        ids = np.array(names)
        ids = np.where(np.isin(ids, texts), ids, "-2").astype(np.int64) if numbered else ids  # -2: no device
    elif numbered and recorded.max(initial=0) < m:
        ids = np.arange(m)
    elif n == m and names is None:
        ids = recorded
        notes.append(f"client 0 replays device {ids[0]}, and so on in the order of numbers or names")
    else:
        by_name = "" if names is None else f", and none has the name of one of the clients of the data: {_some(names)}"
        must = f"must be {m} for {m} clients; `devices` or `shuffle` choose among more"
        raise ValueError(f"mask: {n} recorded devices ({_some(recorded)}) are not allowed{by_name}; {must}")
    absent, others = (~np.isin(ids, recorded)).sum(), (~np.isin(recorded, ids)).sum()
    notes += [f"{absent:,} clients are not in the recording: never active"] if absent else []
    notes += [f"{others:,} devices are no client of the data: left out"] if others else []
    if 2 * absent > m:
        warnings.warn(f"mask: {absent} of {m} clients are not in the recording and are never active", stacklevel=4)
    return ids


def _some(names: Sequence[str] | Shaped[np.ndarray, "n"]) -> str:
    """The first names in words."""
    return ", ".join(map(str, names[:4])) + (f", ... ({len(names):,})" if len(names) > 4 else "")


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
