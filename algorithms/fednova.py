"""FedNova: each client's move is divided by its number of local steps before the average.

Wang, Liu, Liang, Joshi, Poor, *Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization*
(NeurIPS 2020).

    p_i      = alpha_i / sum over A of alpha_j   the clients' weights in the objective, over those that answer
    |a_i|_1  = K_i                               with momentum rho: sum over k = 1..K_i of (1 - rho^k) / (1 - rho)
    d_i      = (x - x_i(K_i)) / (eta |a_i|_1)    the client's mean gradient along its steps
    tau_eff  = sum over A of p_i |a_i|_1
    x       -= eta_g * tau_eff * sum over A of p_i eta d_i
    A empty: x stays

Cost:
    a K gradients; a models up, a down; memory 0.

When to use:
    If clients take different numbers of local steps. It does not correct for unequal availability.

Differences from the paper:
    The paper's server samples clients itself. Here the weights are those of the clients in A, divided by their sum.
    With `target: uniform` they are 1/a, as with FedAvg.
    tau_eff with momentum is that of the authors' code; without momentum it is the paper's sum of p_i K_i. The proximal
    local solver is left out. The formula of |a_i|_1 needs momentum buffers that start at zero in every round, so
    `local.keep_momentum` is refused.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms.base import (
    Decay,
    LocalWork,
    Memoryless,
    Nothing,
    Properties,
    Round,
    TrainingSetup,
    Vector,
    normalised,
)


@dataclass(frozen=True)
class FedNova(Memoryless):
    """FedNova: each client's update is divided by its number of local steps before averaging.

    Attributes:
        rho: the momentum of the clients' SGD; the same number as `local.momentum`.
    """

    rho: Decay = 0.0

    properties: ClassVar[Properties] = Properties(limit="shares", weights=True)

    def check(self, setting: TrainingSetup) -> None:
        if setting.keep_momentum:
            raise ValueError(
                "local.keep_momentum: true is not allowed with fednova, whose weights count momentum that starts at "
                "zero in every round; must be false"
            )
        if setting.momentum != self.rho:
            raise ValueError(
                f"local.momentum: {setting.momentum:g} is not allowed with fednova's rho {self.rho:g}; "
                "must be the same number"
            )

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Nothing]:
        A = call.active
        if len(A) == 0:
            return None, state
        p = normalised(call.alpha[A])
        a = self._norm(work.steps_of(A), x.dtype)
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return (p @ a) * ((p / a) @ D), state

    def _norm(self, K: Int[Tensor, "a"], dtype: torch.dtype) -> Float[Tensor, "a"]:
        """|a_i|_1 of each client."""
        steps, rho = K.to(dtype), self.rho
        return (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho)
