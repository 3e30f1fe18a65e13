"""FedAvg over all clients: averages over all m clients and counts an inactive client as a zero update.

References:
    Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Empowering Federated Learning with Implicit Gossiping* (FedPBC), the
    baseline "FedAvg over all clients" of section VII.

In each round::

    D_i = x_i(K) - x                        for i in A
    x  += eta_g * (1/m) sum over A of D_i   divided by m, not by a

If A is empty, x stays.

Differences from the paper:
    None.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from rollcall.algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round


@dataclass(frozen=True)
class FedAvgAll(Memoryless):
    """FedAvg over all clients: the sum of the active clients' updates, divided by m."""

    properties: ClassVar[Properties] = Properties(limit="probabilities")

    def round(
        self, state: Nothing, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Nothing]:
        A, m = call.active, call.clients
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return D.sum(dim=0) / m, state
