"""The local steps of several clients, computed together."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmark.engines.chunks import pad_clients
from benchmark.engines.local_optimizers import AdamRows, StackedOptimizer, clip_rows
from benchmark.engines.stacked_minibatches import StackedMinibatches
from benchmark.engines.traced import ResultsAt

if TYPE_CHECKING:
    from benchmark.engines.vectorised_work import VectorisedWork


class Descent:
    """The local steps of the clients of a chunk; `y` and `velocity` are changed in place.

    Args:
        work: of the round.
        clients, ids: the clients on the device and on the host, those with the most steps first.
        y: their models.
        lrs: their learning rates.
        correct: added to their gradients.
        velocity: of SGD with momentum.
    """

    def __init__(
        self,
        work: "VectorisedWork",
        clients: Int[Tensor, "a"],
        ids: list[int],
        y: Float[Tensor, "a d"],
        lrs: Float[Tensor, "a 1"],
        correct: Float[Tensor, "a d"] | None,
        velocity: Float[Tensor, "a d"] | None,
    ) -> None:
        self.work = work
        self.engine = work.engine
        self.local = work.local
        self.clients, self.ids = clients, ids
        self.y, self.lrs, self.correct, self.velocity = y, lrs, correct, velocity
        self.positions, self.buffers = work.client_buffers.get(ids, clients.device)
        self.optimizer: AdamRows | None = None
        if self.local.optimizer is not None and isinstance(self.local.optimizer, StackedOptimizer):
            self.optimizer = self.local.optimizer.stacked(pad_clients(y, self.engine.padded_number(len(y))))

    def advance(self, n: int, begin: int, end: int) -> None:
        """Steps `begin` to `end` of the round, of the first n clients."""
        padded = self.engine.padded_number(n)
        y, lrs, correct, velocity = (
            None if rows is None else pad_clients(rows[:n], padded)
            for rows in (self.y, self.lrs, self.correct, self.velocity)
        )
        assert y is not None
        assert lrs is not None
        minibatches = self.work.minibatches(self.clients[:n], self.ids[:n], begin, end)
        pieces = self.engine.split(y)
        gradients_at = self._gradients(n, y, pieces, minibatches)
        if self.optimizer is None and correct is None and velocity is None and not self.local.weight_decay:
            rates = [lrs.view(-1, *(1,) * (piece.ndim - 1)) for piece in pieces]
            for k in range(end - begin):
                torch._foreach_addcmul_(pieces, self._clipped(gradients_at(k)), rates, value=-1)
        else:
            for k in range(end - begin):
                self._step(self._clipped(gradients_at(k)), y, lrs, correct, velocity)
        if padded != n:
            self.y[:n] = y[:n]
            if self.velocity is not None and velocity is not None:
                self.velocity[:n] = velocity[:n]

    def end(self) -> None:
        """Keep the clients' buffers."""
        self.work.client_buffers.put(self.positions, self.buffers)

    def _gradients(
        self, n: int, y: Float[Tensor, "n d"], pieces: list[Tensor], minibatches: StackedMinibatches
    ) -> ResultsAt:
        """The gradients of each step, in the shapes of the parameters."""
        if self.engine.padding:
            return self.engine.gradients_of_steps(pieces, minibatches, losses=False)

        def gradients_at(k: int) -> list[Tensor]:
            before = {name: buffer[:n] for name, buffer in self.buffers.items()}
            gradients, _, after = self.work.differentiate(y, before, minibatches, k)
            self.buffers = {name: torch.cat([after[name], buffer[n:]]) for name, buffer in self.buffers.items()}
            return gradients

        return gradients_at

    def _clipped(self, gradients: list[Tensor]) -> list[Tensor]:
        return gradients if self.local.clip_norm is None else clip_rows(gradients, self.local.clip_norm)

    def _step(
        self,
        gradients: list[Tensor],
        y: Float[Tensor, "n d"],
        lrs: Float[Tensor, "n 1"],
        correct: Float[Tensor, "n d"] | None,
        velocity: Float[Tensor, "n d"] | None,
    ) -> None:
        """One step; y, velocity and the state of the optimizer are changed in place."""
        if self.optimizer is not None:
            rows = torch.cat([piece.flatten(1) for piece in gradients], dim=1)
            self.optimizer.step(y, rows if correct is None else rows.add_(correct), lrs)
            return
        decay = self.local.weight_decay
        if velocity is not None:
            velocity.mul_(self.local.momentum)
            torch._foreach_add_(self.engine.split(velocity), gradients)
            if correct is not None:
                velocity.add_(correct)
            if decay:
                velocity.add_(y, alpha=decay)
            y.addcmul_(velocity, lrs, value=-1)
            return
        if decay:
            y.addcmul_(y.clone(), lrs, value=-decay)
        if correct is not None:
            y.addcmul_(correct, lrs, value=-1)
        for piece, gradient in zip(self.engine.split(y), gradients, strict=True):
            piece.addcmul_(gradient, lrs.view(-1, *(1,) * (gradient.ndim - 1)), value=-1)
