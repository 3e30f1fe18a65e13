"""The buffers of a model (BatchNorm statistics) of each client that computes in a round, stacked."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from benchmark.engines.per_client_gradients import NamedTensors
from benchmark.engines.stacked_minibatches import to_device


class ClientBuffers:
    """The buffers of the clients that have computed so far in a round.

    Args:
        server: the server's buffers, repeated for a number of clients.
    """

    def __init__(self, server: Callable[[int], NamedTensors]) -> None:
        self.server = server
        self.stacked = server(0)
        self.position: dict[int, int] = {}

    def get(self, ids: list[int], device: torch.device) -> tuple[Int[Tensor, "n"] | None, NamedTensors]:
        """Positions in the stack, and copies of the buffers; the server's for a client that has not computed yet."""
        if not self.stacked:
            return None, {}
        new = [client for client in ids if client not in self.position]
        self.position |= {client: len(self.position) + i for i, client in enumerate(new)}
        server = self.server(len(new))
        self.stacked = {name: torch.cat([buffers, server[name]]) for name, buffers in self.stacked.items()}
        positions = to_device(np.array([self.position[client] for client in ids]), device)
        return positions, {name: buffers[positions] for name, buffers in self.stacked.items()}

    def put(self, positions: Int[Tensor, "n"] | None, buffers: NamedTensors) -> None:
        """Store the buffers of the clients at these positions."""
        for name, values in buffers.items():
            self.stacked[name][positions] = values

    def mean(self, ids: list[int], device: torch.device) -> list[Tensor] | None:
        """The mean of each buffer over those of these clients that have computed; None if none has."""
        positions = [self.position[client] for client in ids if client in self.position]
        if not positions:
            return None
        rows = to_device(np.array(positions), device)
        return [buffers[rows].to(torch.float64).mean(dim=0) for buffers in self.stacked.values()]
