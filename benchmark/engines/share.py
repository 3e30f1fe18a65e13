"""The share of a process in the work of a round, for trials that several processes compute."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algorithms import Rows
from benchmark.engines.base import Engine


class MomentumRows(Rows):
    """Stands in for the table of all clients' momentum: holds the rows of the clients of one call."""

    rows: Tensor

    def __init__(self) -> None:
        """Without rows, which each call of `Share.sgd` sets."""

    def __getitem__(self, clients: Int[Tensor, "a"]) -> Float[Tensor, "a d"]:
        return self.rows

    def put(self, clients: Int[Tensor, "a"], rows: Float[Tensor, "a d"]) -> "MomentumRows":
        self.rows = rows
        return self


class Share:
    """The work of one process in one round. Each method returns tensors with a row for each client.

    Args:
        engine: of the process.
        t, lr: see `Engine.round`.
        keep_momentum: whether calls of `sgd` bring and return the clients' momentum.
    """

    def __init__(self, engine: Engine, t: int, lr: float, keep_momentum: bool) -> None:
        self.momentum = MomentumRows() if keep_momentum else None
        self.work = engine.round(t, lr, self.momentum)

    def call(
        self, method: str, clients: Int[Tensor, "a"], rows: Mapping[str, Tensor], options: Mapping[str, Any]
    ) -> list[Tensor]:
        """Call a method with rows from `part`."""
        whole = {name: values.expand(len(clients), *values.shape[1:]) for name, values in rows.items()}
        answer: list[Tensor] = getattr(self, method)(clients, **whole, **options)
        return answer

    def gradients(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int) -> list[Tensor]:
        return list(self.work.gradients(clients, x, step))

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> list[Tensor]:
        return [self.work.losses(clients, x, split)]

    def sgd(self, clients: Int[Tensor, "a"], momentum: Tensor | None = None, **rows: Tensor) -> list[Tensor]:
        if self.momentum is None or momentum is None:
            return [self.work.sgd(clients, **rows)]
        self.momentum.rows = momentum.clone()
        return [self.work.sgd(clients, **rows), self.momentum.rows]

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor]:
        """The buffers of each of these clients, which have computed."""
        each = [self.work.buffers(client[None]) or [] for client in clients]
        return [torch.stack(values) for values in zip(*each, strict=True)]
