"""FedProx: FedAvg with a proximal term that pulls local steps towards the server's model.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, *Federated Optimization in Heterogeneous Networks* (MLSys 2020),
Algorithm 2.

    x_i -= eta (g_i(x_i) + mu (x_i - x))      K times from x, for i in A: SGD on f_i(x_i) + (mu/2) ||x_i - x||^2
    x   += eta_g * mean over A of x_i - x
    A empty: x stays

Cost:
    a K gradients; a models up, a down; memory 0.

When to use:
    If many local steps make clients drift apart. It does not correct for unequal availability.

Differences from the paper:
    K SGD steps replace its gamma-inexact local solver. The mean over A has the weights of `fedavg`.
"""

from dataclasses import dataclass
from typing import ClassVar

from rollcall.algorithms.base import LocalWork, Memoryless, NonNegative, Nothing, Properties, Round, Vector, local_steps


@dataclass(frozen=True)
class FedProx(Memoryless):
    """FedProx (Algorithm 2): local SGD with a proximal term.

    Attributes:
        mu: weight of the proximal term (mu/2) ||x_i - x||^2.
    """

    mu: NonNegative = 0.01

    needs = ("no_momentum",)
    search_space = "mu=loguniform(1e-3,1)"

    properties: ClassVar[Properties] = Properties(limit="shares", weights=True)

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Nothing]:
        A = call.active
        if len(A) == 0:
            return None, state
        x_i = x.repeat(len(A), 1)
        for k, i, rows in local_steps(A, work.steps_of(A)):
            y = x_i[rows]
            g, _ = work.gradients(i, y, k)
            x_i[rows] = y - call.lr * (g + self.mu * (y - x))
        return call.mean(x_i) - x, state
