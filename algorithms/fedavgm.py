"""FedAvgM: FedAvg with momentum on the server.

Hsu, Qi, Brown, *Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification* (2019).

    D_i  = x_i(K) - x
    v    = beta v + mean over A of D_i   0 at first
    x   += eta_g v
    A empty: x and v stay

Cost:
    a K gradients; a models up, a down; memory d.

When to use:
    If the updates of few clients are noisy. It leaves FedAvg's bias as it is.

Differences from the paper:
    The mean over A has the weights of `fedavg`. The paper has eta_g = 1 and no empty round. The momentum is that of
    the paper's formula. Its experiments have Nesterov's, x += eta_g (mean over A of D_i + beta v), as reproductions of
    it report.
"""

from dataclasses import dataclass

import torch

from rollcall.algorithms.base import Algorithm, Decay, LocalWork, Positive, Properties, Round, Vector


@dataclass(frozen=True)
class Velocity:
    """v: the sum of past moves, each discounted by beta for every later one, [d]."""

    v: Vector


@dataclass(frozen=True)
class FedAvgM(Algorithm[Velocity]):
    """FedAvgM: FedAvg with server momentum.

    Attributes:
        beta: momentum; the paper searches 0, 0.7, 0.9, 0.97, 0.99 and 0.997.
        eta_g: the server's rate.
    """

    beta: Decay = 0.9
    eta_g: Positive = 1.0

    needs = ("plain_server",)

    @property
    def properties(self) -> Properties:
        return Properties(limit="shares", step="mean" if self.eta_g == 1 else "some", weights=True)

    def init(self, x: Vector, clients: int) -> Velocity:
        return Velocity(torch.zeros_like(x))

    def round(self, state: Velocity, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Velocity]:
        A = call.active
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        v = self.beta * state.v + call.mean(D)
        return self.eta_g * v, Velocity(v)
