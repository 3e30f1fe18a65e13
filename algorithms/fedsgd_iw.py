"""Importance-weighted FedSGD: divides each gradient by its client's mean weight in the averages so far.

Harrak, Egan, Goursaud, Alberi Morel, Conte, *Bias Mitigation for Federated Learning with Spatially Correlated
Participation* (HAL hal-05265910, 2025), section IV, equation 11.

    Z_i [m]   sum of client i's weights 1/a in the averages so far
    c_i [m]   estimate of E[1{i in A} / a], at least delta

    Z_i += 1/a                                     for i in A
    c_i  = max(Z_i / (t + 1), delta)               t + 1 rounds so far, with this one
    x   -= eta * mean over A of g_i(x) / (m c_i)
    A empty: x stays; the round counts

Cost:
    a gradients; a models up, a down; memory m.

When to use:
    With one gradient in each round, if clients fail together: it needs no probabilities. Not if all c_i are far
    below delta and nearly all rounds are empty: in harrak/fig2 (collisions, M_max = 1) its loss is then 1.6 times
    FedSGD's (1.3 to 1.9). With M_max = 2, where four of ten c_i are below delta, its loss is half of FedSGD's.

Differences from the paper:
    The paper does not say what an empty round does; here x stays, and the round counts for the shares. m is the paper's
    M, and its rounds count from 1. `oracle: true` takes the exact c_i from the participation model.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from rollcall.algorithms.base import Algorithm, LocalWork, NonNegative, Nothing, Properties, Round, Vector


@dataclass(frozen=True)
class Shares:
    """Z: [m], sum over rounds of 1{i in A} / a."""

    Z: Float[Tensor, "m"]


@dataclass(frozen=True)
class FedSGDIW(Algorithm[Shares | Nothing]):
    """Importance-weighted FedSGD (equation 11): gradients divided by m c_i.

    Attributes:
        delta: lower bound of the estimated c_i, below 1/m: Theorem 2 needs c_i > delta, and the c_i sum to at most 1.
        oracle: use the exact c_i of the participation model, without delta.
    """

    delta: NonNegative = 0.01
    oracle: bool = False

    needs = ("one_step", "no_momentum")
    properties: ClassVar[Properties] = Properties(weights=True)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("share",) if self.oracle else ()

    def init(self, x: Vector, clients: int) -> Shares | Nothing:
        if self.oracle:
            return Nothing()
        if self.delta * clients >= 1:  # then most c_i are delta, and nothing is corrected
            raise ValueError(
                f"delta: {self.delta:g} is not allowed with {clients} clients; must be below {1 / clients:g}, the "
                "largest mean of the c_i"
            )
        return Shares(x.new_zeros(clients))

    def round(
        self, state: Shares | Nothing, x: Vector, call: Round, work: LocalWork
    ) -> tuple[Vector | None, Shares | Nothing]:
        A, a, m = call.active, len(call.active), call.clients
        if a == 0:
            return None, state
        if isinstance(state, Shares):
            state = Shares(state.Z.index_add(0, A, x.new_full((a,), 1 / a)))
            c = (state.Z / (call.t + 1)).clamp(min=self.delta)
        else:
            assert call.share is not None, "declared in requires"
            c = call.share
        g, _ = work.gradients(A, x.expand(a, -1), 0)
        return -call.lr * (call.relative(g) / (m * c[A])[:, None]).mean(dim=0), state
