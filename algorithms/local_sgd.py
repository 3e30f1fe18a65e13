"""Local SGD: FedAvg with full participation, whatever the participation model says.

Stich, *Local SGD Converges Fast and Communicates Little* (ICLR 2019), Algorithm 1.

    D_i = x_i(K) - x                        for all i
    x  += eta_g * (1/m) sum over all i of D_i

Cost:
    m K gradients; m models up, m down; memory 0.

When to use:
    As the reference without absences: FedAvg if every client were active in every round.

Differences from the paper:
    None. It ignores the active set A, so it is the reference without absences. With several local steps it keeps
    FedAvg's drift, which SCAFFOLD and FOCUS remove even under partial participation.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from rollcall.algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round, Traffic, Vector


@dataclass(frozen=True)
class LocalSGD(Memoryless):
    """Local SGD (Algorithm 1): the mean update of all clients, in every round."""

    properties: ClassVar[Properties] = Properties(limit="optimum", asks_all=True, weights=True)

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector, Nothing]:
        all_clients = torch.arange(call.clients, device=x.device)
        D = work.sgd(all_clients, x.expand(call.clients, -1)) - x
        return (call.alpha @ D if call.weighted else D.mean(dim=0)), state

    def traffic(self, state: Nothing, call: Round) -> Traffic:
        return Traffic(up=call.clients, down=call.clients)
