"""An algorithm's state as buffers of a module."""

import dataclasses
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from rollcall.algorithms import Rows


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
