"""FedAvg with known probabilities: every answer is weighted by the inverse of its chance.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, *Empowering Federated Learning with Implicit Gossiping* (FedPBC), the baseline
"FedAvg with known p_i^t" of section VII.

    D_i = x_i(K) - x                                for i in A
    x  += eta_g * (1/m) sum over A of D_i / p_i^t   p_i^t: this round's true probability

Differences from the paper:
    None. The authors' released code divides every D_i by the p of the last client: `probability: last_client`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from algorithms.base import LocalWork, Memoryless, Nothing, Properties, Round


@dataclass(frozen=True)
class FedAvgKnown(Memoryless):
    """
    Attributes:
        probability: whose p_i^t divides D_i: its `own`, or that of the `last_client` in A (the released code).
    """

    probability: Literal["own", "last_client"] = "own"

    properties: ClassVar[Properties] = Properties(limit="optimum on average")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("probability",)

    def round(
        self, state: Nothing, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, Nothing]:
        A, m = call.active, call.clients
        assert call.probability is not None, "declared in requires"
        if len(A) == 0:
            return None, state
        p = call.probability[A if self.probability == "own" else A[-1:]]
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return (D / p[:, None]).sum(dim=0) / m, state
