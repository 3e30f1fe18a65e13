"""FedAvg with known probabilities: divides each update by the client's participation probability.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Empowering Federated Learning with Implicit Gossiping: Mitigating Connection
Unreliability Amidst Unknown and Arbitrary Dynamics* (FedPBC; arXiv 2404.10091), the baseline FedAvg *known p_i^t's* of
section VII-B, for which it cites Perazzone, Wang, Ji, Chan, *Communication-Efficient Device Scheduling for Federated
Learning Using Stochastic Optimization* (INFOCOM 2022; not read here).

    p_i^t [m]   true probability that client i is active in this round

    D_i = x_i(K) - x                                for i in A
    x  += eta_g * (1/m) sum over A of D_i / p_i^t
    A empty: x stays

Cost:
    a K gradients; a models up, a down; memory 0.

When to use:
    As the reference without bias, where the probabilities are known. Rare clients make its steps noisy.

Differences from the paper:
    None. The authors' released code divides every D_i by p_m^t, that of the last of all clients, whether or not it is
    active: `probability: last_client`.
"""

from dataclasses import dataclass
from typing import Literal

from rollcall.algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round, Vector


@dataclass(frozen=True)
class FedAvgKnown(Memoryless):
    """FedAvg with known probabilities: updates divided by p_i^t.

    Attributes:
        probability: which p^t divides D_i: the client's `own`, or that of the `last_client` of all m (released code).
    """

    probability: Literal["own", "last_client"] = "own"

    @property
    def properties(self) -> Properties:
        return Properties(limit="optimum on average" if self.probability == "own" else "elsewhere", weights=True)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("probability",)

    def round(self, state: Nothing, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Nothing]:
        A, m = call.active, call.clients
        assert call.probability is not None, "declared in requires"
        if len(A) == 0:
            return None, state
        p = call.probability[A] if self.probability == "own" else call.probability[-1:]
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return (call.relative(D) / p[:, None]).sum(dim=0) / m, state
