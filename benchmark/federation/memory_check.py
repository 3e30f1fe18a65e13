"""What a method will keep between rounds, known before the run."""

import os
from dataclasses import dataclass

import numpy as np
import torch

from algorithms import Algorithm
from benchmark.config.errors import SettingError
from benchmark.config.trial import Numerics
from benchmark.federation.state import StateBuffers, stored_rows
from participation import Participation


@dataclass(frozen=True)
class Need:
    """Bytes of a state, or of the part of it that one memory holds.

    Attributes:
        fixed: whoever takes part.
        row: for each client that has taken part, and once more for all others.
    """

    fixed: int
    row: int

    @classmethod
    def of(cls, algorithm: Algorithm, d: int, clients: int, dtype: torch.dtype) -> "Need":
        """Taken from tensors that have shapes but no numbers."""
        state = StateBuffers(algorithm.init(torch.empty(d, dtype=dtype, device="meta"), clients))
        row = sum(buffer.numel() * buffer.element_size() for buffer in stored_rows(state))
        return cls(sum(buffer.numel() * buffer.element_size() for buffer in state.buffers()) - row, row)

    def with_rows(self, d: int, dtype: torch.dtype) -> "Need":
        """Together with one more vector of each client, such as its momentum."""
        return Need(self.fixed, self.row + d * dtype.itemsize)

    def twice(self, clients: int) -> int:
        """A round makes the next state while the last one is there."""
        return 2 * (self.fixed + self.row * (1 + clients))


@dataclass(frozen=True)
class Memory:
    """One that a machine has.

    Attributes:
        name: for people.
        size: in bytes.
        need: of what it is to hold.
    """

    name: str
    size: int
    need: Need

    def room(self, clients: int) -> int:
        """The most of so many clients that may take part; -1 where there is no room even without any."""
        if self.need.twice(clients) <= self.size:
            return clients
        return max(-1, (self.size // 2 - self.need.fixed) // self.need.row - 1) if self.need.row else -1


def memories(need: Need, numerics: Numerics) -> list[Memory]:
    """Where a state will be."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if numerics.device == "cpu" or not torch.cuda.is_available():
        return [Memory("the machine", host, need)]
    gpu = torch.cuda.get_device_properties(0).total_memory
    if numerics.client_memory == "device":
        return [Memory("the GPU", gpu, need)]
    return [Memory("the GPU", gpu, Need(need.fixed, 0)), Memory("the machine", host, Need(0, need.row))]


def taking_part(participation: Participation, rounds: int, most: int) -> tuple[int, int]:
    """How many different clients answer, and in how many rounds; counted until they are more than `most`.

    The roll call is a function of (seed, t) that knows of no method, so that the count is what the run will meet.
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
    """Refuse a run whose state will not fit into the memory that it is meant for.

    Args:
        need: of the state.
        label: of the method.
        d: parameters of the model.
        participation: the roll call.
        rounds: T.
        numerics: where the state will be.

    Raises:
        SettingError: it will not.
    """
    m = participation.clients
    least = min(memories(need, numerics), key=lambda memory: memory.room(m))
    with_host = memories(need, numerics.model_copy(update={"client_memory": "host"}))
    room, room_with_host = least.room(m), min(memory.room(m) for memory in with_host)
    if room == m:
        return
    count, t = taking_part(participation, rounds, room)
    if count <= room:
        return
    size = f"{least.size / 2**30:,.1f} GiB"
    if room < 0:
        why = f"its memory takes {least.need.twice(0) / 2**30:,.1f} GiB (twice the state), and {least.name} has {size}"
    else:
        why = (
            f"in {size} {least.name} has room for the rows of {room:,} clients (twice, for the last state and the "
            f"next), and {count:,} take part by round {t:,} of {rounds:,}"
        )
    must = "a method that keeps less, fewer rounds or a smaller federation"
    if room_with_host > room:
        must += f", or numerics.client_memory host, with room for {room_with_host:,} clients"
    raise SettingError(
        f"algorithm.name: {label!r} is not allowed with {m:,} clients and {d:,} parameters: {why}; must be {must}"
    )
