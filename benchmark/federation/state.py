"""An algorithm's state: as buffers of a module, and its memory. A run whose state cannot fit is refused."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollcall.algorithms import Rows
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.trial import Numerics
from rollcall.participation import Participation


class StateBuffers(nn.Module):
    """An algorithm's state as buffers, so that it follows the module to devices and into checkpoints.

    Args:
        state: a dataclass of tensors, or of such dataclasses.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._kind = type(state)
        self._names = [field.name for field in dataclasses.fields(state)]
        for name in self._names:
            value = getattr(state, name)
            if dataclasses.is_dataclass(value):
                self.add_module(name, StateBuffers(value))
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


def refuse_what_cannot_fit(
    states: Sequence[Any], label: str, d: int, participation: Participation, rounds: int, numerics: Numerics
) -> None:
    """Refuse a run whose state will not fit in the memory of the GPU, or without a GPU in that of the machine.

    A round computes the next state while it still needs the last. `states` are the first ones, of the method and of
    momentum that is kept; on the `meta` device they take no memory. The clients that take part have a row.

    Raises:
        SettingError: the state will not fit.
    """
    buffers, m = nn.ModuleList(map(StateBuffers, states)), participation.clients
    row = sum(buffer.numel() * buffer.element_size() for buffer in stored_rows(buffers))
    fixed = sum(buffer.numel() * buffer.element_size() for buffer in buffers.buffers()) - row
    name, size = "the machine", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if numerics.device != "cpu" and torch.cuda.is_available():
        name, size = "the GPU", torch.cuda.get_device_properties(0).total_memory
    if 2 * (fixed + row * (1 + m)) <= size:
        return
    seen = np.zeros(m, dtype=bool)
    for t in range(rounds if row else 0):
        seen[participation.active(t)] = True
    count = int(seen.sum())
    need = 2 * (fixed + row * (1 + count))
    if need > size:
        rows = f", with rows of the {count:,} clients that take part," if row else ""
        raise SettingError(
            f"algorithm.name: {label!r} is not allowed with {m:,} clients and {d:,} parameters: its state{rows} needs "
            f"{need / 2**30:,.1f} GiB (for two rounds), and {name} has {size / 2**30:,.1f} GiB; must be a method that "
            f"stores less, fewer rounds or fewer clients"
        )
