"""FedStale: fresh updates of active clients, and the last known updates of all clients with weight beta.

Rodio, Neglia, *FedStale: leveraging stale client updates in federated learning* (arXiv 2405.04171, 2024).

    w_i [m]      weight of client i in the objective
    p_i [m]      availability of client i, exact or estimated
    h_i [m, d]   the last known update of each client; 0 at first
    hbar [d]     the sum over all i of w_i h_i

    v     = sum over A of (w_i / p_i) D_i
            + beta (sum over the others of w_i h_i + sum over A of (w_i - w_i / p_i) h_i)
          = sum over A of (w_i / p_i) (D_i - beta h_i) + beta hbar
    x    += eta_g * v
    h_i   = D_i                                for i in A
    A empty: x += eta_g * beta * hbar, or, with `empty: skip`, x stays

beta = 0 is `unbiased`. beta = 1 with p_i = a / m and `empty: skip` is `fedvarp`.

Cost:
    a K gradients; a models up, a down; memory (n + 2) d + m; with estimates, 5 m + 1 more.

When to use:
    If p_i is known or steady, and stale updates help at some clients but are too old at others.

Differences from the paper:
    The equations are those of the released code (github.com/arodio/FedStale). There x stays in an empty round
    (`empty: skip`), each server step also decays x by 5e-4, and the experiments take 1 / p_i from FedAU's intervals.
    The updates D_i are stored as they are, not divided by eta: if eta falls, old ones weigh more than new ones.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Le

from rollcall.algorithms.availability import AvailabilityAware, Watch, observed
from rollcall.algorithms.base import Limit, LocalWork, Nothing, Properties, Round, Rows, Vector


@dataclass(frozen=True)
class Stale:
    """h: [m, d], last update of each client; hbar: [d], their weighted sum; seen: counts for estimates of p_i."""

    h: Rows
    hbar: Vector
    seen: Watch | Nothing


@dataclass(frozen=True)
class FedStale(AvailabilityAware[Stale]):
    """FedStale: updates weighted by w_i / p_i, with stale updates as control variates of weight beta.

    Attributes:
        beta: weight of stale updates, from 0 (`unbiased`) to 1 (FedVARP with weights 1 / p_i).
        empty: in a round without active clients, `step` along the stale updates, or `skip`, as in the released code.
    """

    beta: Annotated[float, Ge(0), Le(1)] = 0.5
    empty: Literal["step", "skip"] = "step"

    search_space = "beta=uniform(0,1)"

    @property
    def properties(self) -> Properties:
        """With beta = 1, stale updates cancel the noise of the fresh ones at the optimum."""
        limit: Limit = "optimum" if self.beta == 1 else "optimum on average"
        return Properties(
            limit=limit,
            step="mean" if self.oracle else "some",
            changes_while_inactive=("seen",),
            stores="server",
            weights=True,
        )

    def init(self, x: Vector, clients: int) -> Stale:
        return Stale(Rows.begin(torch.zeros_like(x), clients), torch.zeros_like(x), self.counts(x, clients))

    def round(self, state: Stale, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Stale]:
        A, w = call.active, call.alpha[call.active]
        seen = observed(state.seen, call)
        if len(A) == 0 and (self.empty == "skip" or self.beta == 0):
            return None, replace(state, seen=seen)
        p = self.availability(seen, call)[A]
        D, h = work.sgd(A, x.expand(len(A), -1)) - x, state.h[A]
        v = (w / p) @ (D - self.beta * h) + self.beta * state.hbar
        return v, Stale(state.h.put(A, D), state.hbar + w @ (D - h), seen)
