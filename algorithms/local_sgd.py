"""Local SGD: what FedAvg would be if every client answered every call.

Stich, *Local SGD Converges Fast and Communicates Little* (ICLR 2019), Algorithm 1.

    D_i = x_i(K) - x
    x  += eta_g * (1/m) sum over ALL i of D_i

Differences from the paper:
    None. It hears every client in every round, whatever the roll call says: the line that no method under that roll
    call can be expected to cross.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round, Traffic


@dataclass(frozen=True)
class LocalSGD(Memoryless):
    properties: ClassVar[Properties] = Properties(limit="optimum", asks_all=True)

    def round(
        self, state: Nothing, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"], Nothing]:
        everyone = torch.arange(call.clients, device=x.device)
        D = work.sgd(everyone, x.expand(call.clients, -1)) - x
        return D.mean(dim=0), state

    def traffic(self, state: Nothing, call: Round) -> Traffic:
        return Traffic(up=call.clients, down=call.clients)
