"""FedDyn: a linear term and a pull towards the server's model change each client's loss from round to round.

Acar, Zhao, Matas Navarro, Mattina, Whatmough, Saligrama, *Federated Learning Based on Dynamic Regularization*
(ICLR 2021), Algorithm 1.

    g_k        stands for the gradient of L_k at the client's last model, 0 at first
    h          mean over ALL k of g_k, 0 at first
    theta_k    = argmin of L_k(theta) - <g_k, theta> + (alpha/2) ||theta - x||^2    for k in A
    g_k       -= alpha (theta_k - x)                                                for k in A
    h         -= alpha (1/m) sum over A of (theta_k - x)                            m, not a
    x          = mean over A of theta_k - h / alpha
    A empty: nothing changes

Cost:
    a K gradients; a models up, a down; memory (n + 2) d + m.

When to use:
    If clients differ and can store a vector each. Rare clients need many participations with a small alpha.

Differences from the paper:
    K_k SGD steps from x stand for the argmin, as in the authors' code:
    theta -= eta (gradient of L_k at theta - g_k + alpha (theta - x)). The paper has no empty round. The authors' code
    divides alpha by the client's relative number of samples and clips gradients; this does neither. It evaluates the
    mean over A of theta_k and the mean of all clients' last models; here x is the result, and the mean over A in the
    last round that had clients, x + h / alpha, is measured, too (`active`).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from rollcall.algorithms.base import Algorithm, LocalWork, Positive, Properties, Round, Rows, Vector, local_steps


@dataclass(frozen=True)
class Duals:
    """g: the linear term of each client, [m, d]; h: their mean, [d]."""

    g: Rows
    h: Vector


@dataclass(frozen=True)
class FedDyn(Algorithm[Duals]):
    """FedDyn: each client's loss gets a linear term and a proximal term that are updated in each round.

    Attributes:
        alpha: strength of the pull towards x. With K steps of size eta a client comes close to the argmin only where
            alpha K eta is not small.
    """

    alpha: Positive = 0.01

    needs = ("no_momentum", "plain_server")
    search_space = "alpha=loguniform(1e-2,1)"

    # It ends at the optimum, but only after several times 1 / (alpha eta) rounds of the client that is seldom there.
    properties: ClassVar[Properties] = Properties(limit="elsewhere", step="some", stores="clients")

    def init(self, x: Vector, clients: int) -> Duals:
        return Duals(Rows.begin(torch.zeros_like(x), clients), torch.zeros_like(x))

    def round(self, state: Duals, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Duals]:
        A, m, alpha = call.active, call.clients, self.alpha
        if len(A) == 0:
            return None, state
        g, theta = state.g[A], x.repeat(len(A), 1)
        for k, i, rows in local_steps(A, work.steps_of(A)):
            y = theta[rows]
            gradient, _ = work.gradients(i, y, k)
            theta[rows] = y - call.lr * (gradient - g[rows] + alpha * (y - x))
        moved = theta - x
        h = state.h - alpha * moved.sum(dim=0) / m
        return moved.mean(dim=0) - h / alpha, Duals(state.g.put(A, g - alpha * moved), h)

    def eval_models(self, state: Duals, x: Vector) -> dict[str, Vector]:
        return {"": x, "active": x + state.h / self.alpha}
