"""More available: only the clients that are often there, each weighted by its inverse availability.

Rodio, Faticanti, Marfoq, Neglia, Leonardi, *Federated Learning under Heterogeneous and Correlated Client Availability*
(CA-Fed, ToN 2024), the baseline "More available" of section VI.

    M  = the clients with pi_i at or above the mean of pi
    x += eta_g * sum over A and M of (alpha_i / pi_i) D_i
    nobody of M in A: x stays

Differences from the paper:
    The paper's clients come in two classes of availability; the mean of pi is our border between them, which also
    serves where there are more. Where all pi_i are equal, everyone belongs to M.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from algorithms.availability import AvailabilityWeighted, Watch, observed
from algorithms.base import LocalWork, Nothing, Properties, Round, Traffic


@dataclass(frozen=True)
class MoreAvailable(AvailabilityWeighted):
    ends: ClassVar[Properties] = Properties(limit="elsewhere")

    def round(
        self, state: Watch | Nothing, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Watch | Nothing]:
        seen = observed(state, call)
        pi = self.availability(seen, call)
        A = call.active[_often(pi)[call.active]]
        if len(A) == 0:
            return None, seen
        q = (call.alpha / pi)[A]
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return q @ D, seen

    def traffic(self, state: Watch | Nothing, call: Round) -> Traffic:
        a = int(_often(self.availability(state, call))[call.active].sum())
        return Traffic(up=a, down=a)


def _often(pi: Float[Tensor, "m"]) -> Bool[Tensor, "m"]:
    """M; the mean of equal numbers may round to just above them."""
    return pi >= pi.mean() * (1 - 1e-6)
