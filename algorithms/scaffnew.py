"""Scaffnew: local steps with gradient shifts, which are corrected by the change that averaging made.

Mishchenko, Malinovsky, Stich, Richtárik, *ProxSkip: Yes! Local Gradient Steps Provably Lead to Communication
Acceleration! Finally!* (ICML 2022), Algorithm 2. The paper has full participation. Of its extensions to partial
participation, the default is that of FOCUS's released code, but for the first shift; `shift: at_once` is another one.

    h_i [m, d]    shifts; 0 at first
    xh_i [m, d]   where the local steps of client i ended
    x_next        the x that client i receives when it is active the next time; with `at_once`, the new x of this round

    xh_i          = x - eta (g_i - h_i)             L times from the x that client i received, for i in A
    x             = mean over A of xh_i
    h_i          += (x_next - xh_i) / (K eta)       with the eta of the steps that led to xh_i

After every iteration the clients communicate with probability 1/K (one coin for all), or after every K-th iteration. If
A is empty, x stays.

Cost:
    a K gradients; a models up, a down; memory 2 (n + 1) d + 3 m. With `at_once` 2 a down, x at the start and at the end
    of the round; memory (n + 1) d + m.

When to use:
    With full participation, for which it was made. With partial participation the default may diverge; `at_once`
    reaches the optimum in our tests.

Differences from the paper:
    A round is everything between two communications. By default a client receives the new x when it is active again,
    and only then updates its h_i, as in FOCUS's released code. With full participation both rules are the paper's, and
    the h_i sum to 0; with `at_once` they always do, for equal K.
    The paper draws a new sample in every iteration. Here iteration k uses the minibatch of step t K + k, so that with
    `schedule: random` a round longer than K steps shares minibatches with the next one, and a K gradients are the mean.
"""

from dataclasses import dataclass
from math import inf, log
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms.base import (
    Algorithm,
    LocalWork,
    Nothing,
    Properties,
    Round,
    Rows,
    Traffic,
    TrainingSetup,
    Vector,
    local_steps,
)


@dataclass(frozen=True)
class Ends:
    """Where the last local steps of each client ended, until its shift is updated.

    Attributes:
        xh: [m, d].
        lr: [m], eta of those steps; infinite before its first round, so that the first correction is 0.
    """

    xh: Rows
    lr: Float[Tensor, "m"]


@dataclass(frozen=True)
class Shifts:
    """Data of each client: h [m, d], its shift, and the ends of its local steps if it is updated on return."""

    h: Rows
    ends: Ends | Nothing


@dataclass(frozen=True)
class Scaffnew(Algorithm[Shifts]):
    """Scaffnew (Algorithm 2): local steps along shifted gradients.

    Attributes:
        schedule: how many local steps L a client takes: `deterministic`, L = K; `random`, L geometric with mean K,
            drawn from the seed and the round.
        first_shift: h_i in a client's first round: `zero`, or `model`, x / (K eta), an error of FOCUS's released code,
            which takes 0 for where the client's last local steps ended.
        shift: when h_i is updated: `on_return`, when the client is active again, or `at_once`, with the new x.
    """

    schedule: Literal["deterministic", "random"] = "deterministic"
    first_shift: Literal["zero", "model"] = "zero"
    shift: Literal["on_return", "at_once"] = "on_return"

    needs = ("plain_server", "no_momentum")

    @property
    def properties(self) -> Properties:
        return Properties(limit="optimum" if self.shift == "at_once" else "elsewhere", stores="clients")

    def check(self, setting: TrainingSetup) -> None:
        if self.shift == "at_once" and self.first_shift == "model":
            raise ValueError("algorithm.first_shift: model is not allowed with shift: at_once; must be zero")

    def init(self, x: Vector, clients: int) -> Shifts:
        none = Rows.begin(torch.zeros_like(x), clients)
        return Shifts(none, Nothing() if self.shift == "at_once" else Ends(none, x.new_full((clients,), inf)))

    def round(self, state: Shifts, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Shifts]:
        A = call.active
        if len(A) == 0:
            return None, state
        K, h = work.steps_of(A), state.h[A]
        if isinstance(state.ends, Ends):
            lr = state.ends.lr[A]
            lr = lr if self.first_shift == "zero" else lr.where(state.h.stored[A], call.lr)
            h = h + (x - state.ends.xh[A]) / (K * lr)[:, None]
        xh = x.repeat(len(A), 1)
        for k, i, rows in local_steps(A, self._iterations(call, K)):
            g, _ = work.gradients(i, xh[rows], k)
            xh[rows] = xh[rows] - call.lr * (g - h[rows])
        x_next = xh.mean(dim=0)
        if isinstance(state.ends, Ends):
            ends = Ends(state.ends.xh.put(A, xh), state.ends.lr.index_fill(0, A, call.lr))
            return x_next - x, Shifts(state.h.put(A, h), ends)
        return x_next - x, Shifts(state.h.put(A, h + (x_next - xh) / (K.to(x.dtype) * call.lr)[:, None]), state.ends)

    def traffic(self, state: Shifts, call: Round) -> Traffic:
        a = len(call.active)
        return Traffic(up=a, down=a if isinstance(state.ends, Ends) else 2 * a)

    def _iterations(self, call: Round, K: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        """L [a]; if random, geometric with mean K_i, all from one uniform draw: clients of equal K stop together."""
        if self.schedule == "deterministic":
            return K
        u = 1 - torch.rand((), generator=call.generator(), dtype=torch.float64, device="cpu").item()  # in (0, 1]
        return (log(u) / torch.log1p(-1 / K.double())).ceil().clamp(min=1).long()
