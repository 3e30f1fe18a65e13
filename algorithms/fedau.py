"""FedAU: weights each active client by its average interval between participations.

Wang, Ji, *A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging* (ICLR 2024),
Algorithms 1 and 2.

    w_i [m]   mean length, in rounds, of client i's intervals closed before this round; 1 if there are none

    x   += eta_g * (1/m) sum over A of w_i D_i       divided by m, never by the sum of w

An interval ends when its client participates, or when it has lasted `cutoff` rounds. The next one starts after it. If A
is empty, x stays and the intervals grow.

Cost:
    a K gradients; a models up, a down; memory 3 m.

When to use:
    If availability is unequal and not known, and does not change much over time.

Differences from the paper:
    None.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, Count, LocalWork, Properties, Round, Vector


@dataclass(frozen=True)
class Intervals:
    """The intervals between each client's participations.

    Attributes:
        length: [m], length of the open interval, in rounds.
        closed: [m], number of closed intervals.
        total: [m], sum of the lengths of the closed intervals.
    """

    length: Int[Tensor, "m"]
    closed: Int[Tensor, "m"]
    total: Int[Tensor, "m"]


@dataclass(frozen=True)
class FedAU(Algorithm[Intervals]):
    """FedAU (Algorithms 1 and 2): weights by mean intervals between participations.

    Attributes:
        cutoff: K in the paper: rounds after which an interval is closed although its client was not active.
        intervals: whether a weight is the mean of the intervals closed `before` this round, or also of the interval
            that this round closes (`with_current`; FOCUS's released code).
        divisor: the weighted sum is divided by the number of `clients` m, or by the sum of the active clients'
            `weights` (FOCUS's released code).
    """

    cutoff: Count = 50
    intervals: Literal["before", "with_current"] = "before"
    divisor: Literal["clients", "weights"] = "clients"

    search_space = "cutoff=randint(10,200)"

    @property
    def properties(self) -> Properties:
        # A small cutoff makes the weights of rare clients too small. A sum of weights is a random divisor.
        exact = self.divisor == "clients" and self.cutoff >= FedAU.cutoff
        return Properties(
            limit="optimum on average" if exact else "elsewhere",
            changes_while_inactive=("length", "closed", "total"),
            weights=True,
        )

    def init(self, x: Vector, clients: int) -> Intervals:
        none = torch.zeros(clients, dtype=torch.int64, device=x.device)
        return Intervals(none, none, none)

    def round(self, state: Intervals, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Intervals]:
        A, m = call.active, call.clients
        length = state.length + 1
        closing = (length >= self.cutoff).index_fill(0, A, True)
        after = Intervals(length.where(~closing, 0), state.closed + closing, state.total + length.where(closing, 0))
        if len(A) == 0:
            return None, after
        known = state if self.intervals == "before" else after
        closed = known.closed[A]
        w = (known.total[A].to(x.dtype) / closed).where(closed > 0, 1.0)
        w = call.relative(w)
        D = work.sgd(A, x.expand(len(A), -1)) - x
        divisor = m if self.divisor == "clients" else w.sum().clamp(min=torch.finfo(w.dtype).tiny)
        return w @ D / divisor, after
