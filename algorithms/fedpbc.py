"""FedPBC: postponed broadcast, so that a client's silence keeps its own progress alive (implicit gossiping).

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Empowering Federated Learning with Implicit Gossiping*, Algorithm 1.

    x_i   the model client i holds, x^0 at first
    x_i*  = x_i + eta_g (x_i(K) - x_i)   every client computes in every round, uplink on or off
    x     = mean over A of x_i*          and x_i = x for i in A: the broadcast comes after the average
    x_i   = x_i*                         for i not in A
    A empty: x stays, all clients keep x_i*

Differences from the paper:
    Line 14 as printed lets silent clients fall back to x_i; eq. 7 and the authors' released code keep x_i*, as here.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from algorithms.base import Algorithm, LocalWork, Properties, Round, Setting, refuse_server_optimizer


@dataclass(frozen=True)
class LocalModels:
    """models: x_i of every client, [m, d]."""

    models: Float[Tensor, "m d"]


@dataclass(frozen=True)
class FedPBC(Algorithm[LocalModels]):
    """
    Attributes:
        eta_g: scales each client's own move.
        evaluate: the server's model, or the mean of all m local models after the broadcast (the released code).
    """

    eta_g: float = 1.0
    evaluate: Literal["server", "mean_of_clients"] = "server"

    properties: ClassVar[Properties] = Properties(limit="elsewhere", asks_all=True, ages=("models",))

    def check(self, setting: Setting) -> None:
        refuse_server_optimizer("fedpbc", setting)

    def init(self, x: Float[Tensor, "d"], clients: int) -> LocalModels:
        return LocalModels(x.repeat(clients, 1))

    def round(
        self, state: LocalModels, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, LocalModels]:
        A = call.active
        everyone = torch.arange(call.clients, device=x.device)
        x_star = state.models.lerp(work.sgd(everyone, state.models), self.eta_g)
        if len(A) == 0:
            return None, LocalModels(x_star)
        mean = x_star[A].mean(dim=0)
        return mean - x, LocalModels(x_star.index_copy(0, A, mean.expand(len(A), -1)))

    def eval_model(self, state: LocalModels, x: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        return x if self.evaluate == "server" else state.models.mean(dim=0)
