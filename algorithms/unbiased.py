"""Unbiased: weights each update by the client's inverse long-run availability, without normalising.

Rodio, Faticanti, Marfoq, Neglia, Leonardi, *Federated Learning under Heterogeneous and Correlated Client
Availability* (CA-Fed; IEEE/ACM ToN 2024), the baseline "Unbiased" of section V-A(c).

    alpha_i [m]   weight of client i in the objective
    pi_i [m]      availability of client i, exact or estimated

    D_i  = x_i(K) - x                                  for i in A
    x   += eta_g * sum over A of (alpha_i / pi_i) D_i
    A empty: x stays. In the first `watch` rounds, too: the server only observes

Cost:
    a K gradients; a models up, a down; memory 0, with estimates 5 m + 1.

When to use:
    If the long-run availability is known or can be estimated. Rare clients make its steps noisy.

Differences from the paper:
    None.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms.availability import AvailabilityWeighted
from rollcall.algorithms.base import Round


@dataclass(frozen=True)
class Unbiased(AvailabilityWeighted):
    """ "Unbiased" ([CAF] section V-A(c)): updates weighted by alpha_i / pi_i."""

    def weights(self, pi: Float[Tensor, "m"], call: Round) -> tuple[Int[Tensor, "n"], Float[Tensor, "n"]]:
        A = call.active
        return A, (call.alpha / pi)[A]
