"""MIFA: averages the last known update of every client in each round.

Gu, Huang, Zhang, Huang, *Fast Federated Learning in the Presence of Arbitrary Device Unavailability* (NeurIPS
2021), Algorithm 1.

    G_i [m, d]   the last known update of each client, divided by eta; 0 at first

    G_i  = (x - x_i(K)) / eta              for i in A
    x   -= eta_g * eta * mean over all i of G_i
    A empty: the step is still made

Cost:
    a K gradients; a models up, a down; memory (n + 1) d + m.

When to use:
    If the server can store an update of every client. Old updates count as much as new ones.

Differences from the paper:
    In the paper every client is active in the first round. Here G_i starts at zero, or, with `wait_for_all`, x stays
    until every client with samples has participated once. The authors' code has both.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from rollcall.algorithms.base import Algorithm, LocalWork, Nothing, Properties, Round, Rows, Vector


@dataclass(frozen=True)
class Memory:
    """The last known updates.

    Attributes:
        G: [m, d], last update of each client; 0 at first.
        ends: [m, d], where each client's last local steps ended; 0 at first. Only for `memory: differences`.
    """

    G: Rows
    ends: Rows | Nothing


@dataclass(frozen=True)
class MIFA(Algorithm[Memory]):
    """MIFA (Algorithm 1): the mean of all clients' last known updates.

    Attributes:
        wait_for_all: make no step until every client has participated once.
        memory: stored vectors: `gradients`, -D_i divided by the eta of its round, or `updates`, -D_i itself (several
            released codes). They differ if eta changes over the rounds. `differences` is an error of FOCUS's released
            code: a client's last local model less its new one, x_i'(K) - x_i(K), with x_i'(K) = 0 at first. Under
            partial participation it diverges.
    """

    wait_for_all: bool = False
    memory: Literal["gradients", "updates", "differences"] = "gradients"

    properties: ClassVar[Properties] = Properties(limit="optimum", stores="server", weights=True)

    def init(self, x: Vector, clients: int) -> Memory:
        zeros = Rows.begin(torch.zeros_like(x), clients)
        return Memory(zeros, zeros if self.memory == "differences" else Nothing())

    def round(self, state: Memory, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Memory]:
        A = call.active
        eta = call.lr if self.memory == "gradients" else 1.0
        ended, before, ends = work.sgd(A, x.expand(len(A), -1)), x, state.ends
        if isinstance(ends, Rows):
            before, ends = ends[A], ends.put(A, ended)
        after = Memory(state.G.put(A, (before - ended) / eta), ends)
        if self.wait_for_all and not after.G.stored[call.alpha > 0].all():
            return None, after
        return -eta * after.G.mean(call.alpha if call.weighted else None), after
