"""The samples of each client, for many clients, without one object for each client."""

from collections.abc import Sequence
from typing import overload

import numpy as np
from jaxtyping import Int


class Holdings(Sequence[Int[np.ndarray, "_"]]):
    """A sequence of each client's rows, stored in one array.

    For a million clients a list of arrays would need more memory than the samples.

    Args:
        rows: [n], the rows of all clients, client after client.
        sizes: [m], number of rows of each client.

    Attributes:
        sizes: [m], number of rows of each client.
    """

    def __init__(self, rows: Int[np.ndarray, "n"], sizes: Int[np.ndarray, "m"]) -> None:
        self.sizes = sizes
        self._rows = rows
        self._ends = np.cumsum(sizes)

    @classmethod
    def of(cls, parts: Sequence[Int[np.ndarray, "_"]]) -> "Holdings":
        """Holdings from one array of rows for each client."""
        return parts if isinstance(parts, cls) else cls(np.concatenate(parts), np.array([len(part) for part in parts]))

    def owners(self) -> Int[np.ndarray, "n"]:
        """The client [n] of each row. All rows together must be 0, 1, ..., n - 1."""
        owner = np.empty_like(self._rows)
        owner[self._rows] = np.repeat(np.arange(len(self)), self.sizes)
        return owner

    def __len__(self) -> int:
        return len(self.sizes)

    def padded(self, clients: Int[np.ndarray, "a"], width: int) -> Int[np.ndarray, "a b"]:
        """The first `width` rows of each of these clients, which repeat its first row where it holds fewer."""
        sizes = self.sizes[clients, None]
        position = np.arange(width)
        return self._rows[self._ends[clients, None] - sizes + np.where(position < sizes, position, 0)]

    def held_of(self, n: int) -> "tuple[Int[np.ndarray, 'k'], Holdings]":
        """Which of n rows any client holds, ascending, and the holdings numbered among them."""
        held = np.sort(self._rows)
        return held, self if len(held) == n else Holdings(np.searchsorted(held, self._rows), self.sizes)

    @overload
    def __getitem__(self, client: int) -> Int[np.ndarray, "_"]: ...
    @overload
    def __getitem__(self, client: slice) -> "Holdings": ...
    def __getitem__(self, client: int | slice) -> "Int[np.ndarray, '_'] | Holdings":
        if isinstance(client, slice):
            return Holdings.of([self[i] for i in range(len(self))[client]])
        end = self._ends[client]
        return self._rows[end - self.sizes[client] : end]
