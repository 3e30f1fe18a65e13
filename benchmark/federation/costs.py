"""The costs of a method: gradients computed, floats communicated, floats stored."""

from dataclasses import asdict, dataclass

import torch

from algorithms import Traffic


@dataclass
class Costs:
    """Sums over the rounds so far.

    Attributes:
        gradients: local minibatch gradients that the clients computed.
        floats_up, floats_down: sent from clients to server and back, as the method declares.
    """

    gradients: int = 0
    floats_up: int = 0
    floats_down: int = 0

    def add(self, gradients: int, traffic: Traffic, d: int) -> None:
        """Add a round with models of d floats."""
        self.gradients += gradients
        self.floats_up += traffic.up * d
        self.floats_down += traffic.down * d

    def named(self, memory: int) -> dict[str, float]:
        """As columns of the history, with the floats that the method stores between rounds (`memory`)."""
        return {f"cost/{name}": value for name, value in (asdict(self) | {"memory": memory}).items()}


def floats(state: torch.nn.Module) -> int:
    """The number of floats in a state."""
    return sum(buffer.numel() for buffer in state.buffers())
