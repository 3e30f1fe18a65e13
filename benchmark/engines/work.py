"""What an engine is."""

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from algorithms import LocalWork, Rows


@runtime_checkable
class Work(LocalWork, Protocol):
    """One round's local work; what a model learns besides parameters (BatchNorm's statistics) is kept in it too."""

    @property
    def momentum(self) -> Rows | None:
        """The clients' momentum after what they have computed so far; None where it is not kept over rounds.

        All that a client computes in a round begins with its momentum before the round; the last word counts.
        """
        ...

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        """The mean over these clients of each buffer of the model, of those that computed; None if nobody did.

        The buffers of all clients start a round as the server's and follow all that the client computes in it.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """Made once a trial from the model, the clients' minibatches, their local training, and the number of threads that
    may compute side by side. Everything is on the device of the work. Each thread runs kernels of one thread
    (`benchmark.engines.threads`), so that results do not depend on the number of threads."""

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> Work:
        """The local work of round t at learning rate eta; with the clients' momentum where it is kept over rounds."""
        ...
