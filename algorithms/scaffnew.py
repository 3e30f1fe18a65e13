"""Scaffnew: local steps with gradient shifts, which are corrected by the change that averaging made.

Mishchenko, Malinovsky, Stich, Richtárik, *ProxSkip: Yes! Local Gradient Steps Provably Lead to Communication
Acceleration! Finally!* (ICML 2022), Algorithm 2; under partial participation like FOCUS's released code, but for its
first shift.

    h_i [m, d]    shifts; 0 at first
    xh_i [m, d]   where the local steps of client i ended
    x_next        the x that client i receives when it is active the next time

    xh_i          = x - eta (g_i - h_i)             L times from the x that client i received, for i in A
    x             = mean over A of xh_i
    h_i          += (x_next - xh_i) / (K eta)       with the eta of the steps that led to xh_i

After every iteration the clients communicate with probability 1/K (one coin for all), or after every K-th iteration. If
A is empty, x stays.

Cost:
    a K gradients; a models up, a down; memory 2 (n + 1) d + 3 m.

When to use:
    With full participation, for which it was made. With partial participation it may diverge.

Differences from the paper:
    A round is everything between two communications. A client receives the new x when it is active again, and only then
    updates its h_i, as in FOCUS's released code. With full participation this is the paper's h_i, and the h_i sum to 0.
    The paper draws a new sample in every iteration. Here iteration k uses the minibatch of step t K + k, so that with
    `schedule: random` a round longer than K steps shares minibatches with the next one, and a K gradients are the mean.
"""

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, LocalWork, Properties, Round, Rows, Vector, local_steps


@dataclass(frozen=True)
class Shifts:
    """Data of each client.

    Attributes:
        h: [m, d], its shift.
        xh: [m, d], where its last local steps ended.
        lr: [m], eta of those steps; infinite before its first round, so that the first correction is 0.
    """

    h: Rows
    xh: Rows
    lr: Float[Tensor, "m"]


@dataclass(frozen=True)
class Scaffnew(Algorithm[Shifts]):
    """Scaffnew (Algorithm 2): local steps along shifted gradients.

    Attributes:
        schedule: how many local steps L a client takes: `deterministic`, L = K; `random`, L geometric with mean K,
            drawn from the seed and the round.
        first_shift: h_i in a client's first round: `zero`, or `model`, x / (K eta), an error of FOCUS's released code,
            which takes 0 for where the client's last local steps ended.
    """

    schedule: Literal["deterministic", "random"] = "deterministic"
    first_shift: Literal["zero", "model"] = "zero"

    needs = ("plain_server", "no_momentum")
    properties: ClassVar[Properties] = Properties(limit="elsewhere", stores="clients")

    def init(self, x: Vector, clients: int) -> Shifts:
        none = Rows.begin(torch.zeros_like(x), clients)
        return Shifts(none, none, x.new_full((clients,), inf))

    def round(self, state: Shifts, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Shifts]:
        A = call.active
        if len(A) == 0:
            return None, state
        K = work.steps_of(A)
        lr = state.lr[A] if self.first_shift == "zero" else state.lr[A].where(state.h.stored[A], call.lr)
        h = state.h[A] + (x - state.xh[A]) / (K * lr)[:, None]
        xh = x.repeat(len(A), 1)
        for k, i, rows in local_steps(A, self._iterations(call, K)):
            g, _ = work.gradients(i, xh[rows], k)
            xh[rows] = xh[rows] - call.lr * (g - h[rows])
        after = Shifts(state.h.put(A, h), state.xh.put(A, xh), state.lr.index_fill(0, A, call.lr))
        return xh.mean(dim=0) - x, after

    def _iterations(self, call: Round, K: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        """L [a]; if random, geometric with mean K_i, all from one uniform draw: clients of equal K stop together."""
        if self.schedule == "deterministic":
            return K
        u = 1 - torch.rand((), generator=call.generator(), dtype=torch.float64, device="cpu").item()  # in (0, 1]
        return (log(u) / torch.log1p(-1 / K.double())).ceil().clamp(min=1).long()
