"""FedAvg: the average over those who answer.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas, *Communication-Efficient Learning of Deep Networks from Decentralized
Data* (AISTATS 2017), Algorithm 1.

    D_i = x_i(K) - x                   what K local SGD steps of client i changed
    x  += eta_g * mean over A of D_i   eta_g is the server optimizer's rate

Differences from the paper:
    The average is uniform over the active set A, not weighted by data size: so all five participation papers run it.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round


@dataclass(frozen=True)
class FedAvg(Memoryless):
    properties: ClassVar[Properties] = Properties(limit="shares")

    def round(
        self, state: Nothing, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Nothing]:
        A = call.active
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return D.mean(dim=0), state
