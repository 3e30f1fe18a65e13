"""FedAvg over all clients: averages over all m clients and counts an inactive client as a zero update.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Empowering Federated Learning with Implicit Gossiping: Mitigating Connection
Unreliability Amidst Unknown and Arbitrary Dynamics* (FedPBC; arXiv 2404.10091), the baseline FedAvg *all* of section
VII-B.

    D_i = x_i(K) - x                        for i in A
    x  += eta_g * (1/m) sum over A of D_i   divided by m, not by a
    A empty: x stays

Cost:
    a K gradients; a models up, a down; memory 0.

When to use:
    As a baseline. Its steps are smaller when fewer clients are active, and it is biased as FedAvg is.

Differences from the paper:
    None.
"""

from dataclasses import dataclass
from typing import ClassVar

from rollcall.algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round, Vector


@dataclass(frozen=True)
class FedAvgAll(Memoryless):
    """FedAvg over all clients: the sum of the active clients' updates, divided by m."""

    properties: ClassVar[Properties] = Properties(limit="probabilities", weights=True)

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Nothing]:
        A, m = call.active, call.clients
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return call.relative(D).sum(dim=0) / m, state
