"""Local work that records what an algorithm asks of the clients."""

from jaxtyping import Float, Int
from torch import Tensor

from algorithms import LocalWork


class Observed:
    """Wraps a round's local work and records what the algorithm asks for: see `algorithms.LocalWork`.

    Args:
        work: of an engine.

    Attributes:
        gradient_count: how many minibatch gradients the clients have computed.
        loss_calls: the losses [a] that each call of `gradients` or `losses` returned, in order.
    """

    def __init__(self, work: LocalWork) -> None:
        self.work = work
        self.gradient_count = 0
        self.loss_calls: list[Tensor] = []

    @property
    def steps(self) -> int:
        return self.work.steps

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        return self.work.steps_of(clients)

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        losses = self.work.losses(clients, x, split)
        self.loss_calls.append(losses)
        return losses

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        self.gradient_count += len(clients)
        gradients, losses = self.work.gradients(clients, x, step)
        self.loss_calls.append(losses)
        return gradients, losses

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        self.gradient_count += int(self.work.steps_of(clients).sum())
        return self.work.sgd(clients, start, scale=scale, correct=correct)
