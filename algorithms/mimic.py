"""MimiC: each update is corrected by what the server did with the client's last one.

Sun, Mao, Zhang, *MimiC: Combating Client Dropouts in Federated Learning by Mimicking Central Updates* (arXiv
2306.12212; IEEE TMC 2024).

    c_i [m, d]   correction of each client; 0 at first; the c_i sum to 0

    v    = mean over A of D_i + c_i
    x   += eta_g * v
    c_i  = v - D_i                   for i in A
    A empty: nothing changes

Cost:
    a K gradients; a models up, a down; memory (n + 1) d + m.

When to use:
    If the server can store a vector of every client, availability is unknown, and every client returns again and again.

Differences from the paper:
    The equations are those of the released code (github.com/hiyuchang/mimic_codes), which keeps v and D_i apart. It has
    all clients active in the first round; here a client's first update has no correction. v and D_i are stored as they
    are, not divided by eta: if eta falls, old corrections weigh more than new updates.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from rollcall.algorithms.base import Algorithm, LocalWork, Properties, Round, Rows, Vector


@dataclass(frozen=True)
class Corrections:
    """c: [m, d], correction of each client's next update; 0 at first."""

    c: Rows


@dataclass(frozen=True)
class MimiC(Algorithm[Corrections]):
    """MimiC: updates corrected toward the server's step of the client's last round."""

    properties: ClassVar[Properties] = Properties(limit="optimum", stores="server")

    def init(self, x: Vector, clients: int) -> Corrections:
        return Corrections(Rows.begin(torch.zeros_like(x), clients))

    def round(self, state: Corrections, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Corrections]:
        A = call.active
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        v = (D + state.c[A]).mean(dim=0)
        return v, Corrections(state.c.put(A, v - D))
