"""What a method costs: gradients that clients compute, floats that travel, floats that are kept."""

from dataclasses import asdict, dataclass

import torch

from algorithms import Traffic


@dataclass
class Costs:
    """Sums over the rounds so far.

    Attributes:
        gradients: local minibatch gradients, counted where they are computed.
        floats_up, floats_down: between clients and server, as the method states them.
    """

    gradients: int = 0
    floats_up: int = 0
    floats_down: int = 0

    def add(self, gradients: int, traffic: Traffic, d: int) -> None:
        """Take in a round with models of d floats."""
        self.gradients += gradients
        self.floats_up += traffic.up * d
        self.floats_down += traffic.down * d

    def named(self, memory: int) -> dict[str, float]:
        """As columns of the history, with the floats that the method keeps between rounds."""
        return {f"cost/{name}": value for name, value in (asdict(self) | {"memory": memory}).items()}


def floats(state: torch.nn.Module) -> int:
    """How many numbers a state keeps."""
    return sum(buffer.numel() for buffer in state.buffers())
