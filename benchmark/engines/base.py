"""The interface of an engine."""

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from algorithms import LocalWork, Rows


@runtime_checkable
class Work(LocalWork, Protocol):
    """The local work of one round. It also holds the clients' momentum and buffers (BatchNorm statistics)."""

    @property
    def momentum(self) -> Rows | None:
        """The clients' momentum after their work so far; None if it is not kept over rounds.

        Each call of `sgd` in a round starts from the momentum before the round; the last call of a client counts.
        """
        ...

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        """The mean of each buffer of the model over those of these clients that computed; None if none did.

        Each client's buffers start the round equal to the server's. All that the client computes updates them.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """Computes the clients' local work of a trial.

    An engine is made once per trial from the model, the clients' minibatches, their local training and the number of
    threads. All tensors are on one device. Each thread runs its kernels on one thread (`benchmark.engines.threads`),
    so that results do not depend on the number of threads.
    """

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> Work:
        """The local work of round t at learning rate eta, with the clients' momentum if it is kept over rounds."""
        ...
