"""An algorithm's state: as buffers of a module, and its memory. A run whose state cannot fit is refused."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from rollcall.algorithms import Rows
from rollcall.benchmark.config.errors import SettingError


class StateBuffers(nn.Module):
    """An algorithm's state as buffers, so that it follows the module to devices and into checkpoints.

    Args:
        state: a dataclass of tensors, or of such dataclasses.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._kind = type(state)
        self._fields = [field.name for field in dataclasses.fields(state) if field.init]
        self._names = [f"{name}_" if hasattr(self, name) else name for name in self._fields]  # `type`, `buffers`, `get`
        for field, name in zip(self._fields, self._names, strict=True):
            value = getattr(state, field)
            if dataclasses.is_dataclass(value):
                self.add_module(name, StateBuffers(value))
            else:
                # Loading a checkpoint writes into buffers, so no two may share memory.
                self.register_buffer(name, value.clone())

    def get(self) -> Any:
        """The state."""
        parts = (part.get() if isinstance(part, StateBuffers) else part for part in self._parts())
        return self._kind(**dict(zip(self._fields, parts, strict=True)))

    def set(self, state: Any) -> None:
        """Replace the state."""
        for field, name, part in zip(self._fields, self._names, self._parts(), strict=True):
            if isinstance(part, StateBuffers):
                part.set(getattr(state, field))
            else:
                setattr(self, name, getattr(state, field))

    def _parts(self) -> list[Any]:
        return [getattr(self, name) for name in self._names]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if self._kind is Rows and f"{prefix}values" in state_dict:
            # The checkpoint has a row for each client that had taken part.
            values, stored = self.get_buffer("values"), len(state_dict[f"{prefix}values"])
            self.register_buffer("values", values.new_empty(stored, values.shape[1]))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def refuse_what_cannot_fit(states: Sequence[Any], label: str, d: int, clients: int, device: str) -> None:
    """Refuse a run whose first states will not fit in the memory of the GPU, or without a GPU in that of the machine.

    A round computes the next state while it still needs the last. On the `meta` device states take no memory.

    Raises SettingError: the state will not fit.
    """
    need = 2 * sum(one.numel() * one.element_size() for state in states for one in StateBuffers(state).buffers())
    name, size = "the machine", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if device == "cuda":
        name, size = "the GPU", torch.cuda.get_device_properties(0).total_memory
    if need > size:
        raise SettingError(
            f"algorithm.name: {label!r} is not allowed with {clients:,} clients and {d:,} parameters: its state needs "
            f"{need / 2**30:,.1f} GiB (for two rounds), and {name} has {size / 2**30:,.1f} GiB; must be a method that "
            "stores less, or fewer clients"
        )
