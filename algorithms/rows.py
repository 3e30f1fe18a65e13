"""Memory of clients: a vector of each, stored for those that have taken part."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """A row of every client, [m, d] to those who ask; all who have not taken part hold the same one, stored once.

    Rows are asked for and given on the device of `place`. `values` may lie on another (`numerics.client_memory: host`):
    only what is asked for, or given, goes from one to the other.

    Attributes:
        values: the row of all others, then those of n clients in the order in which they first took part, [1 + n, d].
        place: where in `values` each client's row is, [m]; 0 for all others.
    """

    values: Float[Tensor, "stored d"]
    place: Int[Tensor, "m"]

    @classmethod
    def begin(cls, row: Float[Tensor, "d"], clients: int) -> "Rows":
        """All clients hold this row."""
        return cls(row[None].clone(), torch.zeros(clients, dtype=torch.int64, device=row.device))

    def __getitem__(self, clients: Int[Tensor, "a"]) -> Float[Tensor, "a d"]:
        return self.values[self.place[clients].to(self.values.device)].to(self.place.device)

    def put(self, clients: Int[Tensor, "a"], rows: Float[Tensor, "a d"]) -> "Rows":
        """With new rows of these clients, each named once; this one stays as it is."""
        place, n = self.place[clients], len(self.values)
        new = place == 0
        place = torch.where(new, n - 1 + new.cumsum(0), place)
        values = torch.cat([self.values, self.values.new_empty(int(new.sum()), self.values.shape[1])])
        values.index_copy_(0, place.to(values.device), rows.to(values.device))
        return Rows(values, self.place.index_copy(0, clients, place))

    def mean(self) -> Float[Tensor, "d"]:
        """Over all m clients."""
        others = 1 + len(self.place) - len(self.values)
        total = self.values[1:].sum(dim=0) + others * self.values[0]
        return (total / len(self.place)).to(self.place.device)

    @property
    def stored(self) -> Bool[Tensor, "m"]:
        """Who has a row of its own: whoever has taken part."""
        return self.place > 0

    def dense(self) -> Float[Tensor, "m d"]:
        """The rows of all clients, to look at where m is small."""
        return self[torch.arange(len(self.place), device=self.place.device)]
