"""FedSGD: averages one minibatch gradient of each active client.

Harrak, Egan, Goursaud, Alberi Morel, Conte, *Bias Mitigation for Federated Learning with Spatially Correlated
Participation* (HAL hal-05265910, 2025), equations 4 and 5.

    x -= eta * mean over A of g_i(x)
    A empty: x stays

Cost:
    a gradients; a models up, a down; memory 0.

When to use:
    For the theory with one gradient in each round. It is biased as FedAvg is.

Differences from the paper:
    None; the method itself is of McMahan et al. (AISTATS 2017). The paper's K is the size of a minibatch,
    `local.batch_size`. Its equation 5 prints the gradient at w_t; Theorem 1 is about the gradient at the model before
    the round, as here.
"""

from dataclasses import dataclass
from typing import ClassVar

from rollcall.algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round, Vector


@dataclass(frozen=True)
class FedSGD(Memoryless):
    """FedSGD (equations 4 and 5): the mean minibatch gradient of the active clients."""

    needs = ("one_step", "no_momentum")
    properties: ClassVar[Properties] = Properties(limit="shares", weights=True)

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Nothing]:
        A = call.active
        if len(A) == 0:
            return None, state
        g, _ = work.gradients(A, x.expand(len(A), -1), 0)
        return -call.lr * call.mean(g), state
