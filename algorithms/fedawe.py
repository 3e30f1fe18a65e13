"""FedAWE: a client resumes from its own last model and takes a longer step for each round it missed.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Efficient Federated Learning against Heterogeneous and Non-stationary Client
Unavailability* (NeurIPS 2024), Algorithm 1.

    x_i [m, d]    the model that client i holds; x^0 at first
    tau_i [m]     the last round in which client i was active; -1 at first

    x_i^ = x_i + eta_g (t - tau_i) (x_i(K) - x_i)   for i in A, from its own stale x_i
    x    = mean over A of x_i^
    x_i  = x, tau_i = t                             for i in A; the other clients do nothing
    A empty: x stays

Cost:
    a K gradients; a models up, a down; memory (n + 1) d + 2 m.

When to use:
    If absences are short. After a long absence its step is long, and x may oscillate.

Differences from the paper:
    None. The authors' released code clips the averaged update to norm 0.5 (`clip`) and evaluates the mean of all m
    clients' models after the round (`clients`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, LocalWork, Positive, Properties, Round, Rows, Vector


@dataclass(frozen=True)
class StaleModels:
    """models: [m, d], x_i; tau: [m], the last round in which each client was active; -1 at first."""

    models: Rows
    tau: Int[Tensor, "m"]


@dataclass(frozen=True)
class FedAWE(Algorithm[StaleModels]):
    """FedAWE (Algorithm 1): stale starting points, and steps scaled by the rounds missed.

    Attributes:
        eta_g: factor of each client's own update.
        clip: largest norm of the server's update. Default: no limit.
    """

    eta_g: float = 1.0
    clip: Positive | None = None

    needs = ("plain_server",)
    search_space = "eta_g=loguniform(0.1,3)"

    @property
    def properties(self) -> Properties:
        return Properties(limit="elsewhere", linear=self.clip is None, stores="clients")

    def init(self, x: Vector, clients: int) -> StaleModels:
        return StaleModels(Rows.begin(x, clients), torch.full((clients,), -1, dtype=torch.int64, device=x.device))

    def round(self, state: StaleModels, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, StaleModels]:
        A = call.active
        if len(A) == 0:
            return None, state
        x_i, missed = state.models[A], (call.t - state.tau[A]).to(x.dtype)[:, None]
        update = (x_i + self.eta_g * missed * (work.sgd(A, x_i) - x_i)).mean(dim=0) - x
        if self.clip is not None:
            update = update * (self.clip / torch.linalg.vector_norm(update)).clamp(max=1.0)
        broadcast = (x + update).expand(len(A), -1)
        return update, StaleModels(state.models.put(A, broadcast), state.tau.index_fill(0, A, call.t))

    def eval_models(self, state: StaleModels, x: Vector) -> dict[str, Vector]:
        return {"": x, "clients": state.models.mean()}
