"""An algorithm's state: as buffers of a module, and its memory. A run whose state cannot fit is refused."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollcall.algorithms import Algorithm, Rows
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.trial import Numerics
from rollcall.benchmark.federation.checked import check_init, located
from rollcall.participation import Participation


class StateBuffers(nn.Module):
    """An algorithm's state as buffers, so that it follows the module to devices and into checkpoints.

    Args:
        state: a dataclass of tensors, or of such dataclasses.
        host: keep the stored rows of clients (`Rows.values`) in host memory when the module moves to a device.
    """

    def __init__(self, state: Any, host: bool = False) -> None:
        super().__init__()
        self._kind = type(state)
        self._host = host
        self._names = [field.name for field in dataclasses.fields(state)]
        for name in self._names:
            value = getattr(state, name)
            if dataclasses.is_dataclass(value):
                self.add_module(name, StateBuffers(value, host))
            else:
                # Loading a checkpoint writes into buffers, so no two may share memory.
                self.register_buffer(name, value.clone())

    def get(self) -> Any:
        """The state."""
        return self._kind(*(part.get() if isinstance(part, StateBuffers) else part for part in self._parts()))

    def set(self, state: Any) -> None:
        """Replace the state."""
        for name, part in zip(self._names, self._parts(), strict=True):
            if isinstance(part, StateBuffers):
                part.set(getattr(state, name))
            else:
                setattr(self, name, getattr(state, name))

    def _parts(self) -> list[Any]:
        return [getattr(self, name) for name in self._names]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "StateBuffers":
        """torch moves and casts modules through this method. Rows in host memory are cast but not moved."""
        if not self._host or self._kind is not Rows:
            super()._apply(fn, recurse)  # type: ignore[no-untyped-call, unused-ignore]
            return self
        values = self.get_buffer("values")

        def cast_values(tensor: Tensor) -> Tensor:
            return tensor.to(fn(tensor.new_empty(0)).dtype) if tensor is values else fn(tensor)

        super()._apply(cast_values, recurse)  # type: ignore[no-untyped-call, unused-ignore]
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if self._kind is Rows and f"{prefix}values" in state_dict:
            # The checkpoint has a row for each client that had taken part.
            values, stored = self.get_buffer("values"), len(state_dict[f"{prefix}values"])
            self.register_buffer("values", values.new_empty(stored, values.shape[1]))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def stored_rows(state: nn.Module) -> list[Tensor]:
    """The buffers that have a row for each client that has taken part, and one row for all others."""
    parts = [part for part in state.modules() if isinstance(part, StateBuffers)]
    return [part.get_buffer("values") for part in parts if part._kind is Rows]


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

    def twice(self, clients: int) -> int:
        """Bytes for two states: a round computes the next state while it still needs the last."""
        return 2 * (self.fixed + self.row * (1 + clients))

    def room(self, size: int, clients: int) -> int:
        """How many of the clients may take part in a memory of `size` bytes; -1 if not even the fixed part fits."""
        if self.twice(clients) <= size:
            return clients
        return max(-1, (size // 2 - self.fixed) // self.row - 1) if self.row else -1


def tightest(need: Need, numerics: Numerics, clients: int) -> tuple[int, str, int, Need]:
    """The memory with room for the fewest clients: this number, its name, its bytes and its part of the need."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memories = [("the machine", host, need)]
    if numerics.device != "cpu" and torch.cuda.is_available():
        gpu = torch.cuda.get_device_properties(0).total_memory
        memories = [("the GPU", gpu, need)]
        if numerics.client_memory == "host":
            memories = [("the GPU", gpu, Need(need.fixed, 0)), ("the machine", host, Need(0, need.row))]
    return min(((part.room(size, clients), name, size, part) for name, size, part in memories), key=lambda one: one[0])


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
    room, name, size, part = tightest(need, numerics, m)
    if room == m:
        return
    count, t = taking_part(participation, rounds, room)
    if count <= room:
        return
    has = f"{name} has {size / 2**30:,.1f} GiB"
    if room < 0:
        why = f"its state takes {part.twice(0) / 2**30:,.1f} GiB (for two rounds); {has}"
    else:
        why = (
            f"{has}, enough for the rows of {room:,} clients (for two rounds), but {count:,} take part by round "
            f"{t:,} of {rounds:,}"
        )
    must = "a method that stores less, fewer rounds or fewer clients"
    room_with_host = tightest(need, numerics.model_copy(update={"client_memory": "host"}), m)[0]
    if room_with_host > room:
        must += f", or `numerics.client_memory: host`, which has room for {room_with_host:,} clients"
    raise SettingError(
        f"algorithm.name: {label!r} is not allowed with {m:,} clients and {d:,} parameters: {why}; must be {must}"
    )
