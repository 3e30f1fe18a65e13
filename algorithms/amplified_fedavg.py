"""Amplified FedAvg: every P rounds, the sum of the last P updates of FedAvg is multiplied by eta.

Wang, Ji, *A Unified Analysis of Federated Learning with Arbitrary Client Participation* (NeurIPS 2022), Algorithm 1.

    D_i  = x_i(K) - x
    u   += mean over A of D_i          0 at first
    x   += mean over A of D_i
    after rounds P - 1, 2 P - 1, ...:
        x  = x_0 + eta u               x_0: the model when u was last 0, so this adds (eta - 1) u
        u  = 0
    A empty: nothing is added; the round counts, and may be the one that amplifies

Cost:
    a K gradients; a models up, a down; memory d.

When to use:
    If clients take turns over a known period P, and the local rate is small.

Differences from the paper:
    The weights of the average are 1/a, as in the authors' code. The paper's local rate gamma is `local.lr`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from rollcall.algorithms.base import Algorithm, Count, LocalWork, Positive, Properties, Round, Vector


@dataclass(frozen=True)
class Interval:
    """u: the sum of the updates since the last amplification, [d]."""

    u: Vector


@dataclass(frozen=True)
class AmplifiedFedAvg(Algorithm[Interval]):
    """Amplified FedAvg: every P rounds, the sum of the last P updates is multiplied by eta.

    Attributes:
        eta: the amplification; 10 in the authors' runs, 1 is FedAvg.
        P: rounds from one amplification to the next; 500 in the authors' runs, whose clients are available for 100
            rounds of each 500. The method is stable where eta P K times the local rate is small against 1 / curvature.
    """

    eta: Positive = 10.0
    P: Count = 500

    needs = ("plain_server",)
    properties: ClassVar[Properties] = Properties(limit="elsewhere", weights=True)

    def init(self, x: Vector, clients: int) -> Interval:
        return Interval(torch.zeros_like(x))

    def round(self, state: Interval, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Interval]:
        A, u = call.active, state.u
        step = torch.zeros_like(x)
        if len(A) > 0:
            step = call.mean(work.sgd(A, x.expand(len(A), -1)) - x)
            u = u + step
        if (call.t + 1) % self.P == 0:
            return step + (self.eta - 1) * u, Interval(torch.zeros_like(u))
        return (step if len(A) > 0 else None), Interval(u)
