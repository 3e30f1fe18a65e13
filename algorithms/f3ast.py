"""F3AST: selects the active clients that were selected least for their weight, and corrects by the selection rate.

Ribero, Vikalo, de Veciana, *Federated Learning Under Intermittent Client Availability and Time-Varying
Communication Constraints* (IEEE JSTSP, 2023; arXiv 2205.06730), Algorithm 1, as the FedPBC paper runs it.

    r_i [m]   running share of rounds in which client i was selected; `start` at first
    S         the `capacity` clients of A with the largest alpha_i / r_i (ties: lowest id); all of A if it has no more

    r    = (1 - beta) r + beta 1{i in S}
    x   += eta_g * sum over S of (alpha_i / r_i) D_i     with the updated r
    A empty: x stays, r decays

Cost:
    s K gradients; s models up, s down, with s = min(a, C) and C the `capacity`; memory m.

When to use:
    If the server can talk to a few clients in each round only.

Differences from the paper:
    The default of `start`, 1, is that of FedPBC's released code. F3AST's own starts r at alpha or at 1/m, and divides
    the sum by the number of clients of a round; the boards have its start of 1/m without this divisor. With equal
    weights the smallest r_i are selected; the FedPBC paper prints the limit and beta, not how clients are selected or
    where r starts. FedPBC's released code uses positions in the list A as client ids once A has `capacity` clients
    (ties: highest position), so that wrong clients are selected, including inactive ones: `selection: released`. In the
    CA-Fed paper's experiments all methods know the availabilities, F3AST too: r_i = pi_i in all rounds, `oracle: true`.
"""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, Count, Fraction, LocalWork, Positive, Properties, Round, Traffic, Vector


@dataclass(frozen=True)
class Rates:
    """r: [m], running share of rounds in which each client was selected."""

    r: Float[Tensor, "m"]


@dataclass(frozen=True)
class F3AST(Algorithm[Rates]):
    """F3AST (Algorithm 1): selects the active clients that were selected least for their weight in the objective.

    Attributes:
        capacity: largest number of clients selected in a round.
        beta: weight of the current round in r.
        start: r before the first round.
        selection: by client id (`paper`), or by position in A (`released`, the authors' code).
        oracle: r is the exact availability pi of the participation model, in all rounds.
    """

    capacity: Count = 10
    beta: Fraction = 0.01
    start: Positive = 1.0
    selection: Literal["paper", "released"] = "paper"
    oracle: bool = False

    search_space = "beta=loguniform(0.01,0.3)"

    @property
    def properties(self) -> Properties:
        return Properties(
            limit="elsewhere", changes_while_inactive=("r",), step="mean" if self.start == 1 else "some", weights=True
        )

    @property
    def requires(self) -> tuple[str, ...]:
        return ("stationary",) if self.oracle else ()

    def init(self, x: Vector, clients: int) -> Rates:
        return Rates(x.new_full((clients,), self.start))

    def round(self, state: Rates, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Rates]:
        m = call.clients
        relative = m * call.alpha  # 1 for every client if the objective has equal weights
        pi = call.stationary if self.oracle else None
        S = self._select((state.r if pi is None else pi) / relative, call.active)
        if self.selection == "released":
            S = S[call.alpha[S] > 0]  # a position in A may be the id of a client without samples
        r = (state.r * (1 - self.beta)).index_add(0, S, x.new_full((len(S),), self.beta)) if pi is None else pi
        if len(S) == 0:
            return None, Rates(r)
        D = work.sgd(S, x.expand(len(S), -1)) - x
        return (relative[S, None] * (D / r[S, None])).sum(dim=0) / m, Rates(r)

    def _select(self, relative_rates: Float[Tensor, "m"], A: Int[Tensor, "a"]) -> Int[Tensor, "s"]:
        """S, ascending."""
        if len(A) < self.capacity:
            return A
        rates = relative_rates[A]
        if self.selection == "released":
            backwards = rates.flip(0).sort(stable=True).indices[: self.capacity]
            return (len(A) - 1 - backwards).sort().values
        return A[rates.sort(stable=True).indices[: self.capacity].sort().values]

    def traffic(self, state: Rates, call: Round) -> Traffic:
        selected = min(len(call.active), self.capacity)
        return Traffic(up=selected, down=selected)
