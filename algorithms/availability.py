"""What a server can learn of pi_i and lambda_i by watching.

Rodio, Faticanti, Marfoq, Neglia, Leonardi, *Federated Learning under Heterogeneous and Correlated Client Availability*
(ToN 2024), the estimators of CA-Fed, for any method that may do without an oracle (`oracle: false`).

    pi_i     = (rounds on + n) / (rounds + n + n')
    lambda_i = P(on|on) + P(off|off) - 1, each smoothed alike, over the rounds that i spent on and off

Differences from the paper:
    None. The prior is one round on and one off (n = n' = 1), whatever the round before was; the round that is weighted
    has been observed.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from algorithms.base import Algorithm, Nothing, Properties, Round

PRIOR = 1.0  # n and n'


@dataclass(frozen=True)
class Watch:
    """What was seen of every client.

    Attributes:
        rounds: how many.
        on: rounds on, [m].
        last: who was on in the last one, [m].
        from_on: rounds on with a round after them, [m]; stayed: those of them whose next round was on too, [m].
        came: rounds on after a round off, [m].
    """

    rounds: Int[Tensor, ""]
    on: Int[Tensor, "m"]
    last: Bool[Tensor, "m"]
    from_on: Int[Tensor, "m"]
    stayed: Int[Tensor, "m"]
    came: Int[Tensor, "m"]

    @classmethod
    def begin(cls, clients: int, device: torch.device) -> "Watch":
        none = torch.zeros(clients, dtype=torch.int64, device=device)
        return cls(none.new_zeros(()), none, none.bool(), none, none, none)

    def observe(self, active: Int[Tensor, "a"]) -> "Watch":
        """With the next round taken in."""
        now = torch.zeros_like(self.last).index_fill(0, active, True)
        before = self.last if self.rounds else now  # the first round follows none
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
        """pi [m], float64."""
        return (self.on.double() + PRIOR) / (self.rounds + 2 * PRIOR)

    @property
    def correlation(self) -> Float[Tensor, "m"]:
        """lambda [m], float64."""
        from_off = (self.rounds - 1).clamp(min=0) - self.from_on
        on_on = (self.stayed.double() + PRIOR) / (self.from_on + 2 * PRIOR)
        off_off = ((from_off - self.came).double() + PRIOR) / (from_off + 2 * PRIOR)
        return on_on + off_off - 1


@dataclass(frozen=True)
class AvailabilityWeighted(Algorithm[Watch | Nothing]):
    """A method that weights clients by their long-run availability.

    Attributes:
        oracle: use the true pi that the participation model tells, and watch nothing; otherwise the estimates.
    """

    oracle: bool = True

    ends: ClassVar[Properties] = Properties()
    """Its properties but for what follows from the estimates."""

    @property
    def requires(self) -> tuple[str, ...]:
        return ("stationary",) if self.oracle else ()

    @property
    def properties(self) -> Properties:
        return replace(self.ends, step="mean" if self.oracle else "some", ages=("last", "from_on"))

    def init(self, x: Float[Tensor, "d"], clients: int) -> Watch | Nothing:
        return Nothing() if self.oracle else Watch.begin(clients, x.device)

    def availability(self, state: Watch | Nothing, call: Round) -> Float[Tensor, "m"]:
        """pi [m], as told, or as seen so far."""
        if isinstance(state, Watch):
            return state.stationary.to(call.alpha.dtype)
        assert call.stationary is not None, "declared in requires"
        return call.stationary


def observed(state: Watch | Nothing, call: Round) -> Watch | Nothing:
    """With this round taken in, where one is watching."""
    return state.observe(call.active) if isinstance(state, Watch) else state
