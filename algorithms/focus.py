"""FOCUS: gradient tracking by push and pull, exact for any participation.

*Exact and Linear Convergence for Federated Learning under Arbitrary Client Participation is Attainable*, Algorithms 1
and 2 (with minibatches: SG-FOCUS), equations 13 to 22.

    y, h_i        the server's tracker and each client's stored gradient, 0 at first
    z = x, y_i = 0, then K_i times, for i in A:
        g    = g_i(z)
        y_i += g - h_i        h_i: at first the last gradient of the client's previous participation
        h_i  = g
        z   -= eta y_i
    y += sum over A of y_i    a sum, so that y = sum over ALL i of h_i, always
    x -= eta y
    A empty: y keeps, and the step x -= eta y still happens

Differences from the paper:
    None. The authors' released code makes no step in an empty round: `empty: skip`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from algorithms.base import Algorithm, LocalWork, Properties, Round, Setting, local_steps, refuse_momentum
from algorithms.rows import Rows


@dataclass(frozen=True)
class Tracking:
    """y: the server's tracker, [d]; h: the stored gradient of each client, [m, d]."""

    y: Float[Tensor, "d"]
    h: Rows


@dataclass(frozen=True)
class Focus(Algorithm[Tracking]):
    """
    Attributes:
        empty: what an empty round does: the `step` x -= eta y, or `skip` it.
    """

    empty: Literal["step", "skip"] = "step"

    properties: ClassVar[Properties] = Properties(limit="optimum", step="sum")

    def check(self, setting: Setting) -> None:
        refuse_momentum("focus", setting)

    def init(self, x: Float[Tensor, "d"], clients: int) -> Tracking:
        return Tracking(torch.zeros_like(x), Rows.begin(torch.zeros_like(x), clients))

    def round(
        self, state: Tracking, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Tracking]:
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
