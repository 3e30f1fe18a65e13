"""AdaFed: weights by inverse availability, normalised over the active clients.

Tan, Zhang, Zhou, Che, Hu, Chen, Wu, *AdaFed: Optimizing Participation-Aware Federated Learning With Adaptive
Aggregation Weights* (IEEE TNSE 2022), as the CA-Fed paper uses it (Rodio et al., ToN 2024, section V-A(c)).

    alpha_i [m]   weight of client i in the objective
    pi_i [m]      availability of client i, exact or estimated

    D_i  = x_i(K) - x                                     for i in A
    q_i  = (alpha_i / pi_i) / sum over j in A of alpha_j / pi_j
    x   += eta_g * sum over A of q_i D_i
    A empty: x stays. In the first `watch` rounds, too: the server only observes

Cost:
    a K gradients; a models up, a down; memory 0, with estimates 5 m + 1.

When to use:
    If `unbiased` is too noisy: weights that sum to 1 keep the step bounded, at the price of a bias.

Differences from the paper:
    The source is the CA-Fed paper and its released code. AdaFed's own optimisation of participation is not implemented.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms.availability import AvailabilityWeighted
from rollcall.algorithms.base import Properties, Round, normalised


@dataclass(frozen=True)
class AdaFed(AvailabilityWeighted):
    """AdaFed ([CAF] section V-A(c)): inverse availability weights that sum to 1 over the active clients."""

    ends: ClassVar[Properties] = Properties(limit="elsewhere")

    def weights(self, pi: Float[Tensor, "m"], call: Round) -> tuple[Int[Tensor, "n"], Float[Tensor, "n"]]:
        return call.active, normalised((call.alpha / pi)[call.active])
