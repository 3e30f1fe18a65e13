"""FedPBC: all clients train in every round, and the server broadcasts to the active ones after averaging.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Empowering Federated Learning with Implicit Gossiping: Mitigating Connection
Unreliability Amidst Unknown and Arbitrary Dynamics* (FedPBC; arXiv 2404.10091), Algorithm 1. Because
the broadcast comes last, the active clients average their own models with each other (implicit gossiping, Equation 4).

    x_i [m, d]   the model that client i holds; x^0 at first

    x_i*  = x_i + eta_g (x_i(K) - x_i)   for all i: every client computes, active or not
    x     = mean over A of x_i*          then x_i = x for i in A: the broadcast follows the average
    x_i   = x_i*                         for i not in A

If A is empty, x stays and all clients keep x_i*. With a clock, a client that is not available does not compute:
x_i* = x_i. The result is the mean of all m models x_i after the broadcast (Equation 6), which Theorem 1 is about and
which the authors' released code evaluates; `server` is x.

Cost:
    m K gradients; a models up, a down; memory m d.

When to use:
    If clients can train while they are cut off. Its bias is small without any knowledge of the probabilities.

Differences from the paper:
    Line 14 as printed resets inactive clients to x_i. Equation 7 and the authors' released code keep x_i*, as here. K
    is the paper's s. Algorithm 1 has no eta_g; the experiments search one (appendix B), and it scales a client's own
    update as in the released code. The paper writes one sample for all steps of a round; here, as in the released code,
    each step has its own minibatch. The paper has no clock: clients that do not compute are not in its theory.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from rollcall.algorithms.base import Algorithm, LocalWork, Positive, Properties, Round, Vector


@dataclass(frozen=True)
class LocalModels:
    """models: [m, d], x_i."""

    models: Float[Tensor, "m d"]


@dataclass(frozen=True)
class FedPBC(Algorithm[LocalModels]):
    """FedPBC (Algorithm 1): all clients train, and the broadcast follows the average.

    Attributes:
        eta_g: factor of each client's own update.
    """

    eta_g: Positive = 1.0

    needs = ("plain_server",)
    search_space = "eta_g=loguniform(0.3,3)"

    @property
    def properties(self) -> Properties:
        return Properties(
            limit="elsewhere",
            step="mean" if self.eta_g == 1 else "some",
            asks_all=True,
            changes_while_inactive=("models",),
            stores="clients",
        )

    def init(self, x: Vector, clients: int) -> LocalModels:
        return LocalModels(x.repeat(clients, 1))

    def round(self, state: LocalModels, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, LocalModels]:
        A, B = call.active, call.computing
        x_i = state.models[B]
        x_star = state.models.index_copy(0, B, x_i.lerp(work.sgd(B, x_i), self.eta_g))
        if len(A) == 0:
            return None, LocalModels(x_star)
        mean = x_star[A].mean(dim=0)
        return mean - x, LocalModels(x_star.index_copy(0, A, mean.expand(len(A), -1)))

    def eval_models(self, state: LocalModels, x: Vector) -> dict[str, Vector]:
        return {"": state.models.mean(dim=0), "server": x}
