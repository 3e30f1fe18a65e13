"""FedVARP: the last known update of every client makes up for those who are silent.

Jhunjhunwala, Sharma, Nagarkatti, Joshi, *FedVARP: Tackling the Variance Due to Partial Client Participation in
Federated Learning* (UAI 2022), Algorithm 1.

    y_i                                      the last known update of every client, 0 at first; ybar: their mean
    v      = mean over A of (D_i - y_i) + ybar
    x     += eta_g * v
    ybar  += (1/m) sum over A of (D_i - y_i)
    y_i    = D_i                             for i in A
    A empty: x and all memory stay

Differences from the paper:
    The paper knows no empty round; this rule is that of the known codes.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from algorithms.base import Algorithm, LocalWork, Properties, Round
from algorithms.rows import Rows


@dataclass(frozen=True)
class Updates:
    """y: the last update of every client, [m, d]; ybar: their mean, [d]."""

    y: Rows
    ybar: Float[Tensor, "d"]


@dataclass(frozen=True)
class FedVARP(Algorithm[Updates]):
    properties: ClassVar[Properties] = Properties(limit="optimum")

    def init(self, x: Float[Tensor, "d"], clients: int) -> Updates:
        return Updates(Rows.begin(torch.zeros_like(x), clients), torch.zeros_like(x))

    def round(
        self, state: Updates, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Updates]:
        A, m = call.active, call.clients
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        news = D - state.y[A]
        v = news.mean(dim=0) + state.ybar
        return v, Updates(state.y.put(A, D), state.ybar + news.sum(dim=0) / m)
