"""Amplified SCAFFOLD: control variates that change once in P rounds, and an amplified sum of the P updates.

Crawshaw, Liu, *Federated Learning under Periodic Client Participation and Heterogeneous Data: A New
Communication-Efficient Algorithm and Analysis* (NeurIPS 2024).

    c [d], c_i [m, d]   control variates of the server and of each client; 0 at first
    G_i [m, d]          sum of the minibatch gradients of client i in this period, without c_i and c
    n_i [m]             number of these gradients

    y_i -= eta (g_i(y_i) - c_i + c)                K_i times from x, for i in A
    G_i += sum over its steps of g_i(y_i);  n_i += K_i
    x   += mean over A of y_i - x
    after rounds P - 1, 2 P - 1, ...:
        x   = x_0 + gamma (x - x_0)                x_0: x at the start of the period
        c_i = G_i / n_i                            for each i that was active in the period; the others keep theirs
        c   = mean over all m of c_i
        G_i = 0, n_i = 0
    A empty: nothing is added; the round counts, and may be the last of a period

Cost:
    a K gradients; 2 a models up, 2 a down; memory (n + k + 4) d + 3 m,
    where n clients have taken part in earlier periods and k in this one.

When to use:
    If clients take turns over a known period P, differ, and can store a vector each.

Differences from the paper:
    The equations are those of the released code (github.com/MingruiLiu-ML-Lab/FL-under-Periodic-Participation). Its
    synthetic part divides the local rate by gamma; here `local.lr` is eta itself. G_i is computed from y_i, which saves
    the sum at every step: the gradients sum to (x - y_i) / eta + K_i (c_i - c).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, Count, LocalWork, Positive, Properties, Round, Rows, Traffic, Vector


@dataclass(frozen=True)
class Period:
    """Control variates, and sums since the last amplification.

    Attributes:
        c, c_i: [d] and [m, d], control variates of the server and of each client.
        G, n: [m, d] and [m], sum and number of each client's gradients.
        u: [d], sum of the updates of x.
    """

    c: Vector
    c_i: Rows
    G: Rows
    n: Int[Tensor, "m"]
    u: Vector


@dataclass(frozen=True)
class AmplifiedScaffold(Algorithm[Period]):
    """Amplified SCAFFOLD: period-wise control variates and amplified updates.

    Attributes:
        gamma: the amplification; 1.5 in the authors' runs on real data.
        P: rounds of a period; 50 (CIFAR-10) or 20 (Fashion-MNIST) in the authors' runs.
    """

    gamma: Positive = 1.5
    P: Count = 50

    needs = ("plain_server", "no_momentum")
    properties: ClassVar[Properties] = Properties(
        limit="optimum", changes_while_inactive=("c_i", "G", "n"), stores="clients"
    )

    def init(self, x: Vector, clients: int) -> Period:
        zero, none = torch.zeros_like(x), Rows.begin(torch.zeros_like(x), clients)
        return Period(zero, none, none, torch.zeros(clients, dtype=torch.int64, device=x.device), zero)

    def round(self, state: Period, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Period]:
        A, c, c_i, G, n, u = call.active, state.c, state.c_i, state.G, state.n, state.u
        step = torch.zeros_like(x)
        if len(A) > 0:
            K, away = work.steps_of(A), c_i[A] - c
            y = work.sgd(A, x.expand(len(A), -1), correct=-away)
            step = (y - x).mean(dim=0)
            g = (x - y) / call.lr + K[:, None] * away
            G, n, u = G.put(A, G[A] + g), n.index_add(0, A, K), u + step
        if (call.t + 1) % self.P > 0:
            return (step if len(A) > 0 else None), Period(c, c_i, G, n, u)
        seen = n.nonzero().flatten()
        new = G[seen] / n[seen, None]
        c = c + (new - c_i[seen]).sum(dim=0) / call.clients
        none, zero = torch.zeros_like(n), torch.zeros_like(u)
        return step + (self.gamma - 1) * u, Period(c, c_i.put(seen, new), Rows.begin(zero, call.clients), none, zero)

    def traffic(self, state: Period, call: Round) -> Traffic:
        return Traffic(up=2 * len(call.active), down=2 * len(call.active))
