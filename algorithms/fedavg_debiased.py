"""Debiased FedAvg: scales each client's local steps by the inverse of how often it has participated.

Sun, Zhang, Xu, Joshi, Sharma, Wei, *Debiasing Federated Learning with Correlated Client Participation* (ICLR 2025),
Algorithm 1.

    n_i [m]    rounds in which client i has participated
    nu_i [a]   factor of client i's local steps

    n_i  += 1                              for i in A
    nu_i  = (t + 1) a / (n_i m)
    x_i  -= eta nu_i g_i(x_i)              K times from x
    x     = mean over A of x_i
    A empty: x stays; the round counts

Cost:
    a K gradients; a models up, a down; memory m.

When to use:
    If availability is unequal and correlated over time but not known. With many local steps at a fixed rate a
    small bias remains.

Differences from the paper:
    The paper draws B clients in every round; a, the number of active clients, stands for B. Its theorem is about a
    model drawn from all rounds; here the last one is evaluated. n_i is its t_i, and nu_i its 1 / (lambda_i N). The
    authors' released code takes nu_i = T / n_i over a horizon of T rounds: `horizon`. With known shares pi_i of the
    rounds (section 5) nu_i = a / (pi_i m): `oracle`. This pi_i is B times the paper's, whose shares sum to 1.
"""

from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, Count, LocalWork, Positive, Properties, Round, TrainingSetup, Vector


@dataclass(frozen=True)
class Counts:
    """n: [m], number of rounds in which each client has participated."""

    n: Int[Tensor, "m"]


@dataclass(frozen=True)
class FedAvgDebiased(Algorithm[Counts]):
    """Debiased FedAvg (Algorithm 1): local steps scaled by nu_i.

    Attributes:
        cap: largest nu_i. Default: no limit, as in the paper.
        horizon: T of the released code's nu_i = T / n_i, with the current n_i. Default: the paper's nu_i.
        oracle: take the exact pi_i of the participation model instead of counting.
    """

    cap: Positive | None = None
    horizon: Count | None = None
    oracle: bool = False

    @property
    def properties(self) -> Properties:
        if self.horizon is not None or self.cap is not None:  # the steps are not those of the paper's nu_i
            return Properties(limit="elsewhere", step="some", weights=True)
        return Properties(weights=True)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("stationary",) if self.oracle else ()

    def check(self, setting: TrainingSetup) -> None:
        if self.oracle and self.horizon is not None:
            raise ValueError(f"algorithm.horizon: {self.horizon} is not allowed with oracle; must be left out")

    def init(self, x: Vector, clients: int) -> Counts:
        return Counts(torch.zeros(clients, dtype=torch.int64, device=x.device))

    def round(self, state: Counts, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Counts]:
        A, a, m = call.active, len(call.active), call.clients
        if call.weighted:  # clients of weight 0, such as those without samples, count neither in m nor in a
            counts = call.alpha > 0
            a, m = int(counts[A].sum()), int(counts.sum())
        if a == 0:
            return None, state
        n = state.n.index_add(0, A, torch.ones_like(A))
        if self.oracle:
            assert call.stationary is not None, "declared in requires"
            nu = a / (m * call.stationary[A])
        else:
            nu = ((call.t + 1) * a / m if self.horizon is None else self.horizon) / n[A].to(x.dtype)
        nu = nu.clamp(max=inf if self.cap is None else self.cap)
        y = work.sgd(A, x.expand(len(A), -1), scale=nu)
        if call.weighted:
            return m / a * (call.alpha[A] @ (y - x)), Counts(n)
        return y.mean(dim=0) - x, Counts(n)
