"""Local work under observation."""

from jaxtyping import Float, Int
from torch import Tensor

from algorithms import LocalWork


class Observed:
    """Local work that notes what a method asks of the clients in a round: see `algorithms.LocalWork`.

    Attributes:
        count: how many minibatch gradients the clients have computed.
        told: the losses that each call of `gradients` or `losses` has told the method, [a].
    """

    def __init__(self, work: LocalWork) -> None:
        self.work = work
        self.count = 0
        self.told: list[Tensor] = []

    @property
    def steps(self) -> int:
        return self.work.steps

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        return self.work.steps_of(clients)

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        losses = self.work.losses(clients, x, split)
        self.told.append(losses)
        return losses

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        self.count += len(clients)
        gradients, losses = self.work.gradients(clients, x, step)
        self.told.append(losses)
        return gradients, losses

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        self.count += int(self.work.steps_of(clients).sum())
        return self.work.sgd(clients, start, scale=scale, correct=correct)
