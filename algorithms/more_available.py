"""More available: only clients of above-average availability train, weighted by inverse availability.

Rodio, Faticanti, Marfoq, Neglia, Leonardi, *Federated Learning under Heterogeneous and Correlated Client
Availability* (CA-Fed; IEEE/ACM ToN 2024), the baseline "More available" of section V-A(c).

    alpha_i [m]   weight of client i in the objective
    pi_i [m]      availability of client i, exact or estimated
    M             clients whose pi_i is at least the mean of pi

    D_i  = x_i(K) - x                                  for i in A and M
    x   += eta_g * sum over A and M of (alpha_i / pi_i) D_i
    A and M empty: x stays. In the first `watch` rounds, too: the server only observes

Cost:
    a' K gradients; a' models up, a' down, where a' of the active clients are in M; memory 0, with estimates 5 m + 1.

When to use:
    As a baseline: what is lost if rare clients never train.

Differences from the paper:
    The paper's clients have two levels of availability. The mean of pi separates them here, and also works for more
    levels. If all pi_i are equal, M contains all clients. The paper prints no weights; alpha_i / pi_i are those of
    `unbiased`. With one level in M they only scale the server's rate.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor

from rollcall.algorithms.availability import AvailabilityWeighted, Watch
from rollcall.algorithms.base import Nothing, Properties, Round, Traffic


@dataclass(frozen=True)
class MoreAvailable(AvailabilityWeighted):
    """ "More available" ([CAF] section V-A(c)): only clients with pi_i at or above the mean."""

    ends: ClassVar[Properties] = Properties(limit="elsewhere")

    def weights(self, pi: Float[Tensor, "m"], call: Round) -> tuple[Int[Tensor, "n"], Float[Tensor, "n"]]:
        A = call.active[_more_available(pi, call.alpha)[call.active]]
        return A, (call.alpha / pi)[A]

    def traffic(self, state: Watch | Nothing, call: Round) -> Traffic:
        of_more = _more_available(self.availability(state, call), call.alpha)[call.active]
        return super().traffic(state, replace(call, active=call.active[of_more]))


def _more_available(pi: Float[Tensor, "m"], alpha: Float[Tensor, "m"]) -> Bool[Tensor, "m"]:
    """Whether each client is in M; the mean is over clients with a weight.

    Tolerant: the mean of equal numbers may round to just above them.
    """
    return pi >= pi[alpha > 0].mean() * (1 - 1e-6)
