"""FedVARP: uses the last known update of each inactive client to reduce the variance of partial participation.

Jhunjhunwala, Sharma, Nagarkatti, Joshi, *FedVARP: Tackling the Variance Due to Partial Client Participation in
Federated Learning* (UAI 2022), Algorithm 1.

    y_i [m, d]   the last known update of each client; 0 at first
    ybar [d]     the mean of y_i over all m clients

    v      = mean over A of (D_i - y_i) + ybar
    x     += eta_g * v
    ybar  += (1/m) sum over A of (D_i - y_i)
    y_i    = D_i                             for i in A

If A is empty, x and all memory stay.

Cost:
    a K gradients; a models up, a down; memory (n + 2) d + m.

When to use:
    If the server can store an update of every client, and steps should follow the active ones.

Differences from the paper:
    The paper has no empty rounds. The rule for them is that of FedAU's and FedAWE's released code. The updates D_i are
    stored as they are, not divided by eta: if eta falls over the rounds, old ones weigh more than new ones (`mifa`
    divides).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from rollcall.algorithms.base import Algorithm, LocalWork, Properties, Round, Rows, Vector


@dataclass(frozen=True)
class Updates:
    """y: [m, d], last update of each client; 0 at first; ybar: [d], the mean of y over all clients."""

    y: Rows
    ybar: Vector


@dataclass(frozen=True)
class FedVARP(Algorithm[Updates]):
    """FedVARP (Algorithm 1): last known updates as control variates at the server."""

    properties: ClassVar[Properties] = Properties(limit="optimum", stores="server", weights=True)

    def init(self, x: Vector, clients: int) -> Updates:
        return Updates(Rows.begin(torch.zeros_like(x), clients), torch.zeros_like(x))

    def round(self, state: Updates, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Updates]:
        A, m = call.active, call.clients
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        change = call.relative(D - state.y[A])
        fresh = change.mean(dim=0)
        if call.weighted:  # clients of weight 0, such as those without samples, count neither in m nor in a
            counts = call.alpha > 0
            fresh = change.sum(dim=0) * counts.sum() / (m * counts[A].sum().clamp(min=1))
        return fresh + state.ybar, Updates(state.y.put(A, D), state.ybar + change.sum(dim=0) / m)
