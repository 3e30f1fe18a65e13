"""What an engine is."""

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from algorithms import LocalWork


@runtime_checkable
class Work(LocalWork, Protocol):
    """One round's local work; what a model learns besides parameters (BatchNorm's statistics) is kept in it too."""

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        """The mean over these clients of each buffer of the model, of those that computed; None if nobody did.

        The buffers of all clients start a round as the server's and follow all that the client computes in it.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """Made once a trial, with everything on the device of the work: the model, the clients' minibatches, and K."""

    def round(self, t: int, lr: float) -> Work:
        """The local work of round t at rate eta."""
        ...
