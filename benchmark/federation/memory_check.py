"""The memory that a method's state needs, computed before the run; a run that cannot fit is refused."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rollcall.algorithms import Algorithm
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.trial import Numerics
from rollcall.benchmark.federation.checked import check_init, located
from rollcall.benchmark.federation.state import StateBuffers, stored_rows
from rollcall.participation import Participation


@dataclass(frozen=True)
class Need:
    """Bytes of a state, or of the part of it that one memory holds.

    Attributes:
        fixed: independent of which clients take part.
        row: for each client that has taken part, and once for all others.
    """

    fixed: int
    row: int

    @classmethod
    def of(cls, algorithm: Algorithm[Any], d: int, clients: int, dtype: torch.dtype) -> "Need":
        """Computed with tensors on the `meta` device, which take no memory."""
        state = algorithm.init(torch.empty(d, dtype=dtype, device="meta"), clients)
        with located(algorithm):
            check_init(algorithm, state)
        buffers = StateBuffers(state)
        row = sum(buffer.numel() * buffer.element_size() for buffer in stored_rows(buffers))
        return cls(sum(buffer.numel() * buffer.element_size() for buffer in buffers.buffers()) - row, row)

    def with_rows(self, d: int, dtype: torch.dtype) -> "Need":
        """The need with one more vector for each client, such as its momentum."""
        return Need(self.fixed, self.row + d * dtype.itemsize)

    def twice(self, clients: int) -> int:
        """Bytes for two states: a round computes the next state while it still needs the last."""
        return 2 * (self.fixed + self.row * (1 + clients))


@dataclass(frozen=True)
class Memory:
    """A memory of the machine.

    Attributes:
        name: for messages.
        size: in bytes.
        need: of the part of the state that it holds.
    """

    name: str
    size: int
    need: Need

    def room(self, clients: int) -> int:
        """How many of the clients may take part; -1 if not even the fixed part fits."""
        if self.need.twice(clients) <= self.size:
            return clients
        return max(-1, (self.size // 2 - self.need.fixed) // self.need.row - 1) if self.need.row else -1


def memories(need: Need, numerics: Numerics) -> list[Memory]:
    """The memories that will hold a state."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if numerics.device == "cpu" or not torch.cuda.is_available():
        return [Memory("the machine", host, need)]
    gpu = torch.cuda.get_device_properties(0).total_memory
    if numerics.client_memory == "device":
        return [Memory("the GPU", gpu, need)]
    return [Memory("the GPU", gpu, Need(need.fixed, 0)), Memory("the machine", host, Need(0, need.row))]


def taking_part(participation: Participation, rounds: int, most: int) -> tuple[int, int]:
    """How many different clients take part, and in how many rounds; counted until there are more than `most`.

    The active sets depend only on (seed, t), so the count is exact for the run.
    """
    seen = np.zeros(participation.clients, dtype=bool)
    count, t = 0, 0
    while count <= most and t < rounds:
        active = participation.active(t)
        count += int(np.count_nonzero(~seen[active]))
        seen[active] = True
        t += 1
    return count, t


def refuse_what_cannot_fit(
    need: Need,
    label: str,
    d: int,
    participation: Participation,
    rounds: int,
    numerics: Numerics,
) -> None:
    """Refuse a run whose state will not fit in memory.

    Args:
        need: of the state.
        label: of the method.
        d: parameters of the model.
        participation: the participation model.
        rounds: T.
        numerics: decides where the state will be.

    Raises:
        SettingError: the state will not fit.
    """
    m = participation.clients
    smallest = min(memories(need, numerics), key=lambda memory: memory.room(m))
    room = smallest.room(m)
    if room == m:
        return
    count, t = taking_part(participation, rounds, room)
    if count <= room:
        return
    size = f"{smallest.size / 2**30:,.1f} GiB"
    if room < 0:
        why = f"its state takes {smallest.need.twice(0) / 2**30:,.1f} GiB (for two rounds); {smallest.name} has {size}"
    else:
        why = (
            f"{smallest.name} has {size}, enough for the rows of {room:,} clients (for two rounds), but {count:,} take "
            f"part by round {t:,} of {rounds:,}"
        )
    must = "a method that stores less, fewer rounds or fewer clients"
    with_host = memories(need, numerics.model_copy(update={"client_memory": "host"}))
    room_with_host = min(memory.room(m) for memory in with_host)
    if room_with_host > room:
        must += f", or `numerics.client_memory: host`, which has room for {room_with_host:,} clients"
    raise SettingError(
        f"algorithm.name: {label!r} is not allowed with {m:,} clients and {d:,} parameters: {why}; must be {must}"
    )
