"""A client's local training in a round: SGD, and how many steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int


@dataclass(frozen=True)
class LocalTraining:
    """SGD as in torch: v = momentum * v + g + weight_decay * x, then x -= lr * v.

    Attributes:
        steps: K, or K_i of each client, [m].
        momentum: 0 for none.
        weight_decay: 0 for none.
        keep_momentum: whether a client keeps its v from round to round; otherwise every round starts with v = 0.
    """

    steps: int | Int[np.ndarray, "m"]
    momentum: float = 0.0
    weight_decay: float = 0.0
    keep_momentum: bool = False

    def of(self, clients: Sequence[int]) -> list[int]:
        """K_i of these clients."""
        if isinstance(self.steps, int):
            return [self.steps] * len(clients)
        steps: list[int] = self.steps[np.asarray(clients, dtype=np.int64)].tolist()
        return steps
