"""FedAvg: averages the updates of the active clients.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas, *Communication-Efficient Learning of Deep Networks from
Decentralized Data* (AISTATS 2017), Algorithm 1.

    D_i = x_i(K) - x                   for i in A: the change by K local SGD steps from x
    x  += eta_g * mean over A of D_i
    A empty: x stays

Cost:
    a K gradients; a models up, a down; memory 0.

When to use:
    If all clients are equally available, or as the baseline. Unequal availability biases it toward the clients that are
    often active.

Differences from the paper:
    None. The paper's objective weights clients by samples, which is `target: samples`: then the mean over A is weighted
    by alpha_i, as there. The default weights are equal, as in four of the five participation
    papers; those of CA-Fed are general.
"""

from dataclasses import dataclass
from typing import ClassVar

from rollcall.algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round, Vector


@dataclass(frozen=True)
class FedAvg(Memoryless):
    """FedAvg (Algorithm 1): the mean update of the active clients."""

    properties: ClassVar[Properties] = Properties(limit="shares", weights=True)

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Nothing]:
        A = call.active
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return call.mean(D), state
