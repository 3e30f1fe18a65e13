"""Per-client memory: one vector for each client, stored only for clients that have participated."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """A table [m, d] with one row for each client, in which clients that have not participated share one row.

    Attributes:
        values: [1 + n, d], the shared row, then the rows of the n clients that have participated, in the order of their
            first participation.
        place: [m], position of each client's row in `values`; 0 for the shared row.
    """

    values: Float[Tensor, "stored d"]
    place: Int[Tensor, "m"]

    @classmethod
    def begin(cls, row: Float[Tensor, "d"], clients: int) -> "Rows":
        """A table in which every client has this row."""
        return cls(row[None].clone(), torch.zeros(clients, dtype=torch.int64, device=row.device))

    def __getitem__(self, clients: Int[Tensor, "a"]) -> Float[Tensor, "a d"]:
        """The rows of these clients."""
        return self.values[self.place[clients]]

    def put(self, clients: Int[Tensor, "a"], rows: Float[Tensor, "a d"]) -> "Rows":
        """A new table with the rows of these clients, all different, replaced. This table is not changed."""
        place, n = self.place[clients], len(self.values)
        new = place == 0
        place = torch.where(new, n - 1 + new.cumsum(0), place)
        values = torch.cat([self.values, self.values.new_empty(int(new.sum()), self.values.shape[1])])
        values.index_copy_(0, place, rows)
        return Rows(values, self.place.index_copy(0, clients, place))

    def cleared(self) -> "Rows":
        """A new table in which every client has the shared row again."""
        return Rows(self.values[:1].clone(), torch.zeros_like(self.place))

    def mean(self, weights: Float[Tensor, "m"] | None = None) -> Float[Tensor, "d"]:
        """The mean row [d] over all m clients, with weights that sum to 1 if they differ."""
        if weights is not None:
            return weights.new_zeros(len(self.values)).index_add(0, self.place, weights) @ self.values
        sharing = 1 + len(self.place) - len(self.values)
        total = self.values[1:].sum(dim=0) + sharing * self.values[0]
        return total / len(self.place)

    @property
    def stored(self) -> Bool[Tensor, "m"]:
        """[m], whether each client has a row of its own, because it has participated."""
        return self.place > 0

    def dense(self) -> Float[Tensor, "m d"]:
        """All rows [m, d]; only for small m."""
        return self[torch.arange(len(self.place), device=self.place.device)]
