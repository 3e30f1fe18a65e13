"""One round's local work in the vectorised engine."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from algorithms import Rows
from benchmark.engines.client_buffers import ClientBuffers
from benchmark.engines.held_out import held_out_losses
from benchmark.engines.local_optimizers import AdamRows, StackedOptimizer, clip_rows
from benchmark.engines.per_client_gradients import NamedTensors
from benchmark.engines.stacked_minibatches import StackedMinibatches, stack_minibatches, to_device

if TYPE_CHECKING:
    from benchmark.engines.vectorised import Vectorised

MOST_STEPS = 64
"""Steps of a client whose minibatches are gathered together."""


class VectorisedWork:
    """See `benchmark.engines.Work`."""

    def __init__(self, engine: "Vectorised", t: int, lr: float, momentum: Rows | None) -> None:
        self.engine = engine
        self.local = engine.local
        self.t = t
        self.lr = lr
        self.momentum = self._momentum_before = momentum
        self._last_ids: tuple[Tensor, list[int]] | None = None
        self._buffers = ClientBuffers(engine.per_client.server_buffers)

    @property
    def steps(self) -> int:
        return self.local.most

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        if isinstance(self.local.steps, int):
            return torch.full_like(clients, self.local.steps)
        return to_device(np.array(self.local.of(self._ids(clients)), dtype=np.int64), clients.device)

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        return held_out_losses(self.engine.model, self.engine.feed.held_out, clients, x, split)

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        if not self._buffers.stacked:
            return []  # without a transfer of the clients' ids
        return self._buffers.mean(self._ids(clients), clients.device)

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = x.new_empty(x.shape), x.new_empty(len(clients))
        for chunk in self._chunks(clients, 1):
            positions, buffers = self._buffers.get(self._ids(clients)[chunk], clients.device)
            minibatches = self._minibatches(clients, chunk, step, step + 1)
            pieces, losses[chunk], buffers = self._differentiate(x[chunk], buffers, minibatches, 0)
            torch.cat([piece.flatten(1) for piece in pieces], dim=1, out=gradients[chunk])
            self._buffers.put(positions, buffers)
        if self.local.weight_decay:
            gradients.add_(x, alpha=self.local.weight_decay)
        return gradients, losses

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        ends = start.clone(memory_format=torch.contiguous_format)
        lrs = ((self.lr if scale is None else self.lr * scale) * start.new_ones(len(clients)))[:, None]
        velocity = None
        if self.local.momentum:
            velocity = torch.zeros_like(ends) if self._momentum_before is None else self._momentum_before[clients]
        K = np.array(self.local.of(self._ids(clients)))
        if K.size and K.min() == K.max():
            self._descend(clients, K, ends, lrs, correct, velocity)
        elif K.size:
            # Clients with the most steps come first, so that those with steps left are always the first n.
            order = to_device(np.argsort(-K, kind="stable"), clients.device)
            sorted_ends = ends[order]
            sorted_correct = None if correct is None else correct[order]
            sorted_velocity = None if velocity is None else velocity[order]
            self._descend(clients[order], -np.sort(-K), sorted_ends, lrs[order], sorted_correct, sorted_velocity)
            ends.index_copy_(0, order, sorted_ends)
            if velocity is not None and sorted_velocity is not None:
                velocity.index_copy_(0, order, sorted_velocity)
        if self.momentum is not None and velocity is not None:
            self.momentum = self.momentum.put(clients, velocity)
        return ends

    def _descend(
        self,
        clients: Int[Tensor, "a"],
        K: Int[np.ndarray, "a"],
        y: Float[Tensor, "a d"],
        lrs: Float[Tensor, "a 1"],
        correct: Float[Tensor, "a d"] | None,
        velocity: Float[Tensor, "a d"] | None,
    ) -> None:
        """All steps of clients with K_i in descending order; y and velocity are changed in place."""
        for chunk in self._chunks(clients, int(K[0])):
            positions, buffers = self._buffers.get(self._ids(clients)[chunk], clients.device)
            optimizer = self._optimizer(y[chunk])
            steps = K[chunk]
            done = 0
            while done < steps[0]:
                n = int((steps > done).sum())  # clients with steps left: the first n of this chunk
                until = min(int(steps[n - 1]), done + MOST_STEPS)
                now = slice(chunk.start, chunk.start + n)
                active_buffers = {name: buffer[:n] for name, buffer in buffers.items()}
                minibatches = self._minibatches(clients, now, done, until)
                for k in range(until - done):
                    gradients, _, active_buffers = self._differentiate(y[now], active_buffers, minibatches, k)
                    self._step(
                        y[now],
                        gradients,
                        lrs[now],
                        None if correct is None else correct[now],
                        None if velocity is None else velocity[now],
                        optimizer,
                    )
                buffers = {name: torch.cat([after, buffers[name][n:]]) for name, after in active_buffers.items()}
                done = until
            self._buffers.put(positions, buffers)

    def _step(
        self,
        y: Float[Tensor, "n d"],
        gradients: list[Tensor],
        lrs: Float[Tensor, "n 1"],
        correct: Float[Tensor, "n d"] | None,
        velocity: Float[Tensor, "n d"] | None,
        optimizer: AdamRows | None,
    ) -> None:
        """One step; y, velocity and the state of the optimizer are changed in place."""
        if self.local.clip_norm is not None:
            gradients = clip_rows(gradients, self.local.clip_norm)
        if optimizer is not None:
            rows = torch.cat([piece.flatten(1) for piece in gradients], dim=1)
            optimizer.step(y, rows if correct is None else rows.add_(correct), lrs)
            return
        decay = self.local.weight_decay
        if velocity is not None:
            velocity.mul_(self.local.momentum)
            for piece, gradient in zip(self.engine.split(velocity), gradients, strict=True):
                piece.add_(gradient)
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

    def _optimizer(self, y: Float[Tensor, "n d"]) -> AdamRows | None:
        """The optimizer of n clients before their first step; None for SGD."""
        return self.local.optimizer.stacked(y) if isinstance(self.local.optimizer, StackedOptimizer) else None

    def _chunks(self, clients: Int[Tensor, "a"], steps: int) -> Iterator[slice]:
        """As many clients at a time as fit in memory, with their minibatches of that many steps."""
        steps = 1 if self.engine.feed.always_same else min(steps, MOST_STEPS)
        size = self.engine.chunk_size.clients(max(self._longest(clients), self.engine.shortest), steps)
        for begin in range(0, len(clients), size):
            yield slice(begin, min(begin + size, len(clients)))

    def _longest(self, clients: Int[Tensor, "a"]) -> int:
        """Samples in the longest minibatch of these clients."""
        minibatches = self.engine.feed.minibatches
        most_samples = int(minibatches.parts.sizes[self._ids(clients)].max(initial=0))
        return most_samples if minibatches.size == "full" else min(most_samples, minibatches.size)

    def _minibatches(self, clients: Int[Tensor, "a"], chunk: slice, begin: int, end: int) -> StackedMinibatches:
        """The minibatches of a chunk of the clients in steps `begin` to `end` of the round."""
        ids = self._ids(clients)[chunk]
        minibatches = self.engine.feed.minibatches
        first_steps = [self.t * K + begin for K in self.local.of(ids)]
        rows = [
            [minibatches.rows(client, first + k) for k in range(end - begin)]
            for client, first in zip(ids, first_steps, strict=True)
        ]
        dtype = self.engine.model.parameters_[0].dtype
        return stack_minibatches(self.engine.feed, clients[chunk], first_steps, rows, dtype, self.engine.shortest)

    def _differentiate(
        self, x: Float[Tensor, "a d"], buffers: NamedTensors, minibatches: StackedMinibatches, k: int
    ) -> tuple[list[Tensor], Float[Tensor, "a"], NamedTensors]:
        """See `Vectorised.differentiate`."""
        if self.engine.padding:
            return self.engine.differentiate(x, buffers, *minibatches.padded(k))
        groups = minibatches.by_length(k)
        if len(groups) == 1:
            return self.engine.differentiate(x, buffers, groups[0][1], None)
        gradients = [torch.empty_like(piece) for piece in self.engine.split(x)]
        losses = x.new_empty(len(x))
        next_buffers = {name: buffer.clone() for name, buffer in buffers.items()}
        for rows, batch in groups:
            assert rows is not None
            group_buffers = {name: buffer[rows] for name, buffer in buffers.items()}
            group_gradients, losses[rows], changed = self.engine.differentiate(x[rows], group_buffers, batch, None)
            for whole, piece in zip(
                [*gradients, *next_buffers.values()], [*group_gradients, *changed.values()], strict=True
            ):
                whole[rows] = piece
        return gradients, losses, next_buffers

    def _ids(self, clients: Int[Tensor, "a"]) -> list[int]:
        """The ids on the host. This is the only transfer that the host waits for; once for the same tensor."""
        if self._last_ids is None or self._last_ids[0] is not clients:
            self._last_ids = clients, clients.tolist()
        return self._last_ids[1]
