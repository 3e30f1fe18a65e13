"""FOCUS: gradient tracking by push and pull, which converges to the optimum under any participation.

Ying, Li, Yang, *Exact and Linear Convergence for Federated Learning under Arbitrary Client Participation is
Attainable* (FOCUS; NeurIPS 2025), Algorithms 1 and 2 (with minibatches: SG-FOCUS), equations 13 to 22.

    y [d]        the server's tracker; 0 at first
    h_i [m, d]   the last gradient that client i has computed; 0 at first

    z = x, y_i = 0, then K times, for i in A:
        g    = g_i(z)
        y_i += g - h_i
        h_i  = g
        z   -= eta y_i
    y += sum over A of y_i    a sum, so that y is always the sum of h_i over all clients
    x -= eta y

If A is empty, y stays and the step x -= eta y is still made.

Cost:
    a K gradients; a models up, a down; memory (n + 2) d + m.

When to use:
    If the exact optimum matters and clients can store a gradient each. Its step is of size m eta.

Differences from the paper:
    None. The authors' released code makes no step in an empty round: `empty: skip`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from rollcall.algorithms.base import Algorithm, LocalWork, Properties, Round, Rows, Vector, local_steps


@dataclass(frozen=True)
class Tracking:
    """y: [d], the server's tracker; h: [m, d], last gradient of each client."""

    y: Vector
    h: Rows


@dataclass(frozen=True)
class Focus(Algorithm[Tracking]):
    """FOCUS (Algorithm 1) and SG-FOCUS (Algorithm 2): gradient tracking by push and pull.

    Attributes:
        empty: in an empty round make the `step` x -= eta y, or `skip` it (released code).
    """

    empty: Literal["step", "skip"] = "step"

    needs = ("no_momentum",)
    properties: ClassVar[Properties] = Properties(limit="optimum", step="sum", stores="clients")

    def init(self, x: Vector, clients: int) -> Tracking:
        return Tracking(torch.zeros_like(x), Rows.begin(torch.zeros_like(x), clients))

    def round(self, state: Tracking, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Tracking]:
        A, eta = call.active, call.lr
        if len(A) == 0 and self.empty == "skip":
            return None, state
        z, h = x.repeat(len(A), 1), state.h[A]
        y_i = torch.zeros_like(z)
        for k, i, rows in local_steps(A, work.steps_of(A)):
            g, _ = work.gradients(i, z[rows], k)
            y_i[rows] += g - h[rows]
            h[rows] = g
            z[rows] = z[rows] - eta * y_i[rows]
        y = state.y + y_i.sum(dim=0)
        return -eta * y, Tracking(y, state.h.put(A, h))
