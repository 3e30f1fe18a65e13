"""A client's local training in a round: how many steps, and by which optimizer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from benchmark.engines.local_optimizers import ClientOptimizer


@dataclass(frozen=True)
class LocalTraining:
    """SGD as in torch: v = momentum * v + g + weight_decay * x, then x -= lr * v; or another optimizer.

    Attributes:
        steps: K, or K_i of each client, [m].
        momentum: of SGD; 0 for none.
        weight_decay: of SGD; 0 for none.
        keep_momentum: whether a client keeps its v from round to round; otherwise every round starts with v = 0.
        optimizer: takes the steps instead of SGD, with a new state in every round; None for SGD.
        clip_norm: a larger norm of a client's minibatch gradient is scaled down to this before a step; None for none.
    """

    steps: int | Int[np.ndarray, "m"]
    momentum: float = 0.0
    weight_decay: float = 0.0
    keep_momentum: bool = False
    optimizer: ClientOptimizer | None = None
    clip_norm: float | None = None

    @property
    def most(self) -> int:
        """K, or the largest K_i."""
        return self.steps if isinstance(self.steps, int) else int(self.steps.max())

    def of(self, clients: Sequence[int]) -> list[int]:
        """K_i of these clients."""
        if isinstance(self.steps, int):
            return [self.steps] * len(clients)
        steps: list[int] = self.steps[np.asarray(clients, dtype=np.int64)].tolist()
        return steps
