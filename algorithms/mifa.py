"""MIFA: memory for those who are silent.

Gu, Huang, Zhang, Huang, *Fast Federated Learning in the Presence of Arbitrary Device Unavailability* (NeurIPS 2021),
Algorithm 1.

    G_i                                    the last known update of every client, 0 at first
    G_i  = (x - x_i(K)) / eta              for i in A
    x   -= eta_g * eta * mean over ALL i of G_i, in every round, an empty one too

Differences from the paper:
    The paper lets every client answer in the first round; here G_i starts at zero, or, with `wait_for_all`, x stays
    until every client was heard once.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from algorithms.base import Algorithm, LocalWork, Properties, Round
from algorithms.rows import Rows


@dataclass(frozen=True)
class Memory:
    """G: the last update of every client, [m, d]."""

    G: Rows


@dataclass(frozen=True)
class MIFA(Algorithm[Memory]):
    """
    Attributes:
        wait_for_all: no step until every client was heard once.
        memory: what is remembered: `gradients`, D_i divided by the rate of its round, or the raw `updates` D_i (several
            released codes). The two differ when eta changes over the rounds.
    """

    wait_for_all: bool = False
    memory: Literal["gradients", "updates"] = "gradients"

    properties: ClassVar[Properties] = Properties(limit="optimum")

    def init(self, x: Float[Tensor, "d"], clients: int) -> Memory:
        return Memory(Rows.begin(torch.zeros_like(x), clients))

    def round(
        self, state: Memory, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Memory]:
        A = call.active
        eta = call.lr if self.memory == "gradients" else 1.0
        G = state.G.put(A, (x - work.sgd(A, x.expand(len(A), -1))) / eta)
        if self.wait_for_all and not G.stored.all():
            return None, Memory(G)
        return -eta * G.mean(), Memory(G)
