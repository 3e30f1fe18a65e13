"""FedAWE: a client resumes from its own last model and takes a longer step for each round it missed.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Efficient Federated Learning against Heterogeneous and Non-stationary Client
Unavailability* (NeurIPS 2024), Algorithm 1.

    x_i [m, d]    the model that client i holds; x^0 at first
    tau_i [m]     the last round in which client i was active; -1 at first

    x_i^ = x_i + eta_g (t - tau_i) (x_i(K) - x_i)   for i in A, from its own stale x_i
    x    = mean over A of x_i^
    x_i  = x, tau_i = t                             for i in A; the other clients do nothing
    A empty: x stays

The result is the mean of all m clients' models, as in Corollary 1 and in the authors' released code; the server's x is
also measured (`server`).

Cost:
    a K gradients; a models up, a down; memory (n + 1) d + 2 m.

When to use:
    If absences are short. After a long absence its step is long, and x may oscillate.

Differences from the paper:
    Algorithm 1 ends with the server's x; here the result is the clients' mean. The authors' released code clips the
    mean over A of (t - tau_i) (x_i(K) - x_i) to norm 0.5, before eta_g (`clip`).
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
        clip: largest norm of the mean step of the active clients, before eta_g. Default: no limit.
    """

    eta_g: Positive = 1.0
    clip: Positive | None = None

    needs = ("plain_server",)

    @property
    def search_space(self) -> str:
        least = 0.01 if self.clip is None else 0.3  # without a limit, long absences need small steps
        return f"eta_g=loguniform({least},3)"

    @property
    def properties(self) -> Properties:
        return Properties(
            limit="elsewhere",
            step="mean" if self.eta_g == 1 and self.clip is None else "some",
            linear=self.clip is None,
            stores="clients",
        )

    def init(self, x: Vector, clients: int) -> StaleModels:
        return StaleModels(Rows.begin(x, clients), torch.full((clients,), -1, dtype=torch.int64, device=x.device))

    def round(self, state: StaleModels, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, StaleModels]:
        A = call.active
        if len(A) == 0:
            return None, state
        x_i, missed = state.models[A], (call.t - state.tau[A]).to(x.dtype)[:, None]
        step = (missed * (work.sgd(A, x_i) - x_i)).mean(dim=0)
        if self.clip is not None:
            step = step * (self.clip / torch.linalg.vector_norm(step)).clamp(max=1.0)
        mean = x_i.mean(dim=0) + self.eta_g * step
        models = state.models.put(A, mean.expand(len(A), -1))
        return mean - x, StaleModels(models, state.tau.index_fill(0, A, call.t))

    def eval_models(self, state: StaleModels, x: Vector) -> dict[str, Vector]:
        return {"": state.models.mean(), "server": x}
