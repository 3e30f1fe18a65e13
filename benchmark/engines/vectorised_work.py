"""One round's local work in the vectorised engine."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from algorithms import Rows
from benchmark.engines.chunks import pad_clients
from benchmark.engines.client_buffers import ClientBuffers
from benchmark.engines.descent import Descent
from benchmark.engines.held_out import held_out_losses
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
        self.client_buffers = ClientBuffers(engine.per_client.server_buffers)

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
        if not self.client_buffers.stacked:
            return []  # without a transfer of the clients' ids
        return self.client_buffers.mean(self._ids(clients), clients.device)

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = x.new_empty(x.shape), x.new_empty(len(clients))
        for chunk in self._chunks(clients, 1):
            ids = self._ids(clients)[chunk]
            minibatches = self.minibatches(clients[chunk], ids, step, step + 1)
            if self.engine.padding:
                pieces = self.engine.split(pad_clients(x[chunk], self.engine.padded_number(len(ids))))
                *pieces, padded_losses = self.engine.gradients_of_steps(pieces, minibatches, losses=True)(0)
                pieces, losses[chunk] = [piece[: len(ids)] for piece in pieces], padded_losses[: len(ids)]
            else:
                positions, buffers = self.client_buffers.get(ids, clients.device)
                pieces, losses[chunk], buffers = self.differentiate(x[chunk], buffers, minibatches, 0)
                self.client_buffers.put(positions, buffers)
            torch.cat([piece.flatten(1) for piece in pieces], dim=1, out=gradients[chunk])
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
            descent = Descent(
                self,
                clients[chunk],
                self._ids(clients)[chunk],
                y[chunk],
                lrs[chunk],
                None if correct is None else correct[chunk],
                None if velocity is None else velocity[chunk],
            )
            steps = K[chunk]
            done = 0
            while done < steps[0]:
                n = int((steps > done).sum())  # clients with steps left: the first n of this chunk
                until = min(int(steps[n - 1]), done + MOST_STEPS)
                descent.advance(n, done, until)
                done = until
            descent.end()

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

    def minibatches(self, clients: Int[Tensor, "a"], ids: list[int], begin: int, end: int) -> StackedMinibatches:
        """The minibatches of clients in steps `begin` to `end` of the round, repeated for `padded_number` clients."""
        n = self.engine.padded_number(len(ids))
        ids = ids + ids[:1] * (n - len(ids))
        return stack_minibatches(
            self.engine.feed,
            pad_clients(clients, n),
            ids,
            [self.t * K + begin for K in self.local.of(ids)],
            end - begin,
            self.engine.model.parameters_[0].dtype,
            self.engine.shortest,
        )

    def differentiate(
        self, x: Float[Tensor, "a d"], buffers: NamedTensors, minibatches: StackedMinibatches, k: int
    ) -> tuple[list[Tensor], Float[Tensor, "a"], NamedTensors]:
        """See `Vectorised.differentiate`; for minibatches of different lengths."""
        groups = minibatches.by_length(k)
        if len(groups) == 1:
            return self.engine.differentiate(x, buffers, groups[0][1])
        gradients = [torch.empty_like(piece) for piece in self.engine.split(x)]
        losses = x.new_empty(len(x))
        next_buffers = {name: buffer.clone() for name, buffer in buffers.items()}
        for rows, batch in groups:
            assert rows is not None
            group_buffers = {name: buffer[rows] for name, buffer in buffers.items()}
            group_gradients, losses[rows], changed = self.engine.differentiate(x[rows], group_buffers, batch)
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
