"""Scaffnew: clients step along corrected gradients, and what the average moved them corrects the next ones.

Mishchenko, Malinovsky, Stich, Richtárik, *ProxSkip: Yes! Local Gradient Steps Provably Lead to Communication
Acceleration! Finally!* (ICML 2022), Algorithm 2; under partial participation as the FOCUS paper runs it.

    h_i           shifts, 0 at first
    xh_i          = x - eta (g_i - h_i)             L times from the x that client i pulled, for i in A
    x             = mean over A of xh_i
    h_i          += (x_next - xh_i) / (K eta)       x_next: the x that client i pulls next

After every iteration the clients communicate with probability 1/K, one coin for all, or after every K-th.
A empty: x stays.

Differences from the paper:
    A round is what lies between two communications. A client learns the new x when it is called again, and only then
    renews its h_i; under full participation that is the paper's h_i, and the h_i sum to 0.
"""

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algorithms.base import (
    Algorithm,
    LocalWork,
    Properties,
    Round,
    Setting,
    local_steps,
    refuse_momentum,
    refuse_server_optimizer,
)
from algorithms.rows import Rows


@dataclass(frozen=True)
class Shifts:
    """Of each client.

    Attributes:
        h: its shift, [m, d].
        xh: where its last steps ended, [m, d].
        rate: eta of them, [m]; infinite before the first, when there is nothing to correct.
    """

    h: Rows
    xh: Rows
    rate: Float[Tensor, "m"]


@dataclass(frozen=True)
class Scaffnew(Algorithm[Shifts]):
    """
    Attributes:
        schedule: `deterministic`: L = K; `random`: L is geometric with mean K, from the seed and the round.
    """

    schedule: Literal["deterministic", "random"] = "deterministic"

    properties: ClassVar[Properties] = Properties(limit="elsewhere")

    def check(self, setting: Setting) -> None:
        refuse_server_optimizer("scaffnew", setting)
        refuse_momentum("scaffnew", setting)

    def init(self, x: Float[Tensor, "d"], clients: int) -> Shifts:
        none = Rows.begin(torch.zeros_like(x), clients)
        return Shifts(none, none, x.new_full((clients,), inf))

    def round(
        self, state: Shifts, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Shifts]:
        A = call.active
        if len(A) == 0:
            return None, state
        K = work.steps_of(A)
        h = state.h[A] + (x - state.xh[A]) / (K * state.rate[A])[:, None]
        xh = x.repeat(len(A), 1)
        for k, i, rows in local_steps(A, self._iterations(call, K)):
            g, _ = work.gradients(i, xh[rows], k)
            xh[rows] = xh[rows] - call.lr * (g - h[rows])
        after = Shifts(state.h.put(A, h), state.xh.put(A, xh), state.rate.index_fill(0, A, call.lr))
        return xh.mean(dim=0) - x, after

    def _iterations(self, call: Round, K: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        """L of each client: the same coins for all, each tossed at the client's own chance 1/K_i."""
        if self.schedule == "deterministic":
            return K
        u = 1 - torch.rand((), generator=call.generator(), dtype=torch.float64, device="cpu").item()  # in (0, 1]
        return (log(u) / torch.log1p(-1 / K.double())).ceil().clamp(min=1).long()
