"""SCAFFOLD: control variates correct the drift of each client's local steps.

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, *SCAFFOLD: Stochastic Controlled Averaging for Federated Learning*
(ICML 2020), Algorithm 1.

    c [d], c_i [m, d]   control variates of the server and of each client; 0 at first

    y_i -= eta (g_i(y_i) - c_i + c)            K_i times from x, for i in A
    c_i' = g_i(x)                              option I
    c_i' = c_i - c + (x - y_i) / (K_i eta)     option II
    x   += eta_g * mean over A of y_i - x
    c   += (1/m) sum over A of c_i' - c_i      divided by m, not by a
    c_i  = c_i'                                for i in A
    A empty: nothing changes

Cost:
    a K gradients, option I 2 a K; 2 a models up, 2 a down; memory (n + 2) d + m.

When to use:
    If clients differ and take many local steps, and can store a vector each.

Differences from the paper:
    Option I takes g_i(x) as the mean over the round's K_i minibatches, which the client sees in this round anyway. With
    option II, c_i' - c_i = -c - D_i / (K_i eta), so one vector up would do. Costs count both, as the paper sends them.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from rollcall.algorithms.base import Algorithm, LocalWork, Properties, Round, Rows, Traffic, Vector, local_steps


@dataclass(frozen=True)
class Controls:
    """c: [d], of the server; c_i: [m, d], of each client."""

    c: Vector
    c_i: Rows


@dataclass(frozen=True)
class Scaffold(Algorithm[Controls]):
    """SCAFFOLD (Algorithm 1): local steps corrected by control variates.

    Attributes:
        option: how a client updates its control variate. Option I costs K more gradients.
    """

    option: Literal["I", "II"] = "II"

    needs = ("no_momentum",)
    properties: ClassVar[Properties] = Properties(limit="optimum", stores="clients", weights=True)

    def init(self, x: Vector, clients: int) -> Controls:
        return Controls(torch.zeros_like(x), Rows.begin(torch.zeros_like(x), clients))

    def round(self, state: Controls, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Controls]:
        A, m = call.active, call.clients
        if len(A) == 0:
            return None, state
        K = work.steps_of(A)
        start, c, c_i = x.expand(len(A), -1), state.c, state.c_i[A]
        y = work.sgd(A, start, correct=c - c_i)
        if self.option == "I":
            new = torch.zeros_like(c_i)
            for k, i, rows in local_steps(A, K):
                new[rows] += work.gradients(i, start[rows], k)[0]
            new = new / K[:, None]
        else:
            new = c_i - c + (x - y) / (K.to(x.dtype) * call.lr)[:, None]
        return call.mean(y - x), Controls(c + call.relative(new - c_i).sum(dim=0) / m, state.c_i.put(A, new))

    def traffic(self, state: Controls, call: Round) -> Traffic:
        return Traffic(up=2 * len(call.active), down=2 * len(call.active))  # model and control variate
