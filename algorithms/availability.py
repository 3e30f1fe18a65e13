"""Estimates of availability and correlation from the rounds in which each client was active.

References:
    Rodio, Faticanti, Marfoq, Neglia, Leonardi, *Federated Learning under Heterogeneous and Correlated Client
    Availability* (CA-Fed; IEEE/ACM ToN 2024), the estimators of pi and lambda.

For methods that can run without an oracle (`oracle: false`)::

    pi_i [m]      = (rounds active + n) / (rounds + n + n')
    lambda_i [m]  = P(on|on) + P(off|off) - 1

P(on|on) and P(off|off) are shares of the rounds that follow an active or an inactive round, smoothed in the same way.

Differences from the paper:
    n and n' are the paper's n_k and m_k, which it does not give; here the prior is one active and one inactive
    round, n = n' = 1, whatever the previous round was. For two states the paper's eigenvalue is this lambda. The
    current round is observed before its updates are weighted.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rollcall.algorithms.base import Algorithm, LocalWork, Nothing, Properties, Round, Rounds, State, Traffic, Vector

PRIOR = 1.0  # n and n'


@dataclass(frozen=True)
class Watch:
    """Counts of the rounds in which each client was active.

    Attributes:
        rounds: number of rounds observed.
        on: [m], rounds in which each client was active.
        last: [m], whether each client was active in the last round.
        from_on: [m], active rounds that were followed by another round.
        stayed: [m], active rounds that were followed by an active round.
        came: [m], active rounds that followed an inactive round.
    """

    rounds: Int[Tensor, ""]
    on: Int[Tensor, "m"]
    last: Bool[Tensor, "m"]
    from_on: Int[Tensor, "m"]
    stayed: Int[Tensor, "m"]
    came: Int[Tensor, "m"]

    @classmethod
    def begin(cls, clients: int, device: torch.device) -> "Watch":
        """The counts before the first round."""
        none = torch.zeros(clients, dtype=torch.int64, device=device)
        return cls(none.new_zeros(()), none, none.bool(), none, none, none)

    def observe(self, active: Int[Tensor, "a"]) -> "Watch":
        """The counts after one more round."""
        now = torch.zeros_like(self.last).index_fill(0, active, True)
        before = self.last if self.rounds else now  # no round precedes the first
        return Watch(
            self.rounds + 1,
            self.on + now,
            now,
            self.from_on + self.last,
            self.stayed + (self.last & now),
            self.came + (now & ~before),
        )

    @property
    def stationary(self) -> Float[Tensor, "m"]:
        """Estimates of the availability pi [m], float64."""
        return (self.on.double() + PRIOR) / (self.rounds + 2 * PRIOR)

    @property
    def correlation(self) -> Float[Tensor, "m"]:
        """Estimates of the correlation lambda [m], float64."""
        from_off = (self.rounds - 1).clamp(min=0) - self.from_on
        on_on = (self.stayed.double() + PRIOR) / (self.from_on + 2 * PRIOR)
        off_off = ((from_off - self.came).double() + PRIOR) / (from_off + 2 * PRIOR)
        return on_on + off_off - 1


@dataclass(frozen=True)
class AvailabilityAware(Algorithm[State]):
    """Base class of methods that use the clients' long-run availability.

    Attributes:
        oracle: use the exact pi of the participation model and observe nothing; otherwise use estimates.
    """

    oracle: bool = True

    @property
    def requires(self) -> tuple[str, ...]:
        return ("stationary",) if self.oracle else ()

    def counts(self, x: Vector, clients: int) -> Watch | Nothing:
        """The part of the state that estimates need, before the first round."""
        return Nothing() if self.oracle else Watch.begin(clients, x.device)

    def availability(self, seen: Watch | Nothing, call: Round) -> Float[Tensor, "m"]:
        """The availability pi [m]: exact, or estimated from the rounds so far."""
        if isinstance(seen, Watch):
            return seen.stationary.to(call.alpha.dtype)
        assert call.stationary is not None, "declared in requires"
        return call.stationary


@dataclass(frozen=True)
class AvailabilityWeighted(AvailabilityAware[Watch | Nothing]):
    """Base class of methods that weight clients by their long-run availability, and store nothing else.

    Attributes:
        watch: number of rounds that only observe, before training starts; no client is contacted.
    """

    watch: Rounds = 0

    ends: ClassVar[Properties] = Properties()
    """The method's properties, except those that depend on its options."""

    @property
    def properties(self) -> Properties:
        return replace(
            self.ends,
            step="mean" if self.oracle and not self.watch else "some",
            changes_while_inactive=("last", "from_on"),
            weights=True,
        )

    def init(self, x: Vector, clients: int) -> Watch | Nothing:
        return self.counts(x, clients)

    @abstractmethod
    def weights(self, pi: Float[Tensor, "m"], call: Round) -> tuple[Int[Tensor, "n"], Float[Tensor, "n"]]:
        """The active clients that train, and their weights q."""

    def round(
        self, state: Watch | Nothing, x: Vector, call: Round, work: LocalWork
    ) -> tuple[Vector | None, Watch | Nothing]:
        seen = observed(state, call)
        A, q = self.weights(self.availability(seen, call), call)
        if len(A) == 0 or call.t < self.watch:
            return None, seen
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return q @ D, seen

    def traffic(self, state: Watch | Nothing, call: Round) -> Traffic:
        return Traffic(up=0, down=0) if call.t < self.watch else super().traffic(state, call)


def observed(state: Watch | Nothing, call: Round) -> Watch | Nothing:
    """The state with this round observed; unchanged if the method uses an oracle."""
    return state.observe(call.active) if isinstance(state, Watch) else state
