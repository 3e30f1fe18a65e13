"""The vectorised engine: computes all clients of a round in one batch of kernels. Meant for GPUs."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms import Rows
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.engines.base import LocalState, LocalTraining, Work
from rollcall.benchmark.engines.feed import Feed, Stacked, to_device
from rollcall.benchmark.engines.flat_task import FlatTask
from rollcall.benchmark.engines.loss import (
    FastCrossEntropy,
    Loss,
    NamedTensors,
    PerClientGradients,
    activation_bytes,
    is_mean_of_samples,
    kernels_key,
)
from rollcall.benchmark.engines.recording import ResultsAt, Traced
from rollcall.tasks import Samples

MOST_STEPS = 64
"""Steps of a client whose minibatches are gathered together."""


class Vectorised:
    """See `rollcall.benchmark.engines.Engine`.

    If the loss is the mean of its samples' losses (tried once, in float64), shorter minibatches are padded and the
    padding has weight 0. Otherwise (BatchNorm) clients are grouped by the length of their minibatch and nothing is
    padded, so that every module gives the same result as in the sequential engine. Full batches of clients whose
    numbers of samples all differ are then computed one by one.

    The host draws the samples of a round. It waits for the device only to learn the ids of the clients. Kernels are
    traced once for each combination of shapes, so there should be few shapes: where minibatches may be padded, the
    number of clients is too, to 1, 2, ... 8, 10, 12, 14, 16, 20, 24 ... or all.

    Args:
        model: the task. Its loss must work with `torch.func.vmap` and must not draw random numbers (dropout), because
            these would depend on the device rather than on the client.
        feed: the clients' minibatches.
        local: the clients' local training.
        workers: not used; a batch of kernels is one piece of work.
        memory: bytes for the clients computed at once; by default half of the GPU's free memory, and 1 GiB on a CPU.

    Raises:
        SettingError: the loss cannot be vectorised.
    """

    def __init__(
        self, model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1, memory: int | None = None
    ) -> None:
        self.model, self.feed, self.local = model, feed, local
        # Eight samples from all over the data. Neighbours may share a label, which could hide how samples interact.
        rows = torch.linspace(0, len(feed.samples[0]) - 1, 8).long()
        few = tuple(column[rows.to(column.device)] for column in feed.samples)
        loss = Loss(model.task, FastCrossEntropy)
        self.shapes = [parameter.shape for parameter in model.parameters_]
        self.per_client = PerClientGradients(loss, [f"task.{name}" for name in model.buffer_names])
        self.padding = not model.buffer_names and is_mean_of_samples(loss, few)
        self.chunk_size = ChunkSize(model, loss, few, memory)
        key = kernels_key(model.task)
        self.gradients = {
            (padded, losses): Traced(partial(self.per_client, padded=padded, losses=losses), (padded, losses, key))
            for padded in (False, True)
            for losses in (False, True)
        }
        try:
            batch = tuple(column.expand(2, *column.shape) for column in few)
            self.differentiate(model.vector().expand(2, -1), self.per_client.server_buffers(2), batch)
        except RuntimeError as error:
            raise SettingError(
                "numerics.engine: 'vectorised' is not allowed with this model; must be sequential. torch.func.vmap "
                f"cannot vectorise its loss: {str(error).splitlines()[0]}"
            ) from error

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> "VectorisedWork":
        return VectorisedWork(self, t, lr, momentum)

    def gradients_of_steps(self, pieces: list[Tensor], minibatches: Stacked, losses: bool) -> ResultsAt:
        """The gradients of clients in each step, in the shapes of the parameters, then their losses if asked for.

        For models without buffers, in pieces as `split` gives them, which may change between steps.
        """
        weights = minibatches.weights
        data = minibatches.samples if weights is None else (*minibatches.samples, weights)
        return self.gradients[weights is not None, losses].at_steps(pieces, data)

    def differentiate(
        self, x: Float[Tensor, "a d"], buffers: NamedTensors, batch: Samples
    ) -> tuple[list[Tensor], Float[Tensor, "a"], NamedTensors]:
        """Gradients (in the shapes of the parameters), losses and next buffers of clients, on batches [a, b, ...]."""
        model, data = [*self.split(x), *buffers.values()], [column[None] for column in batch]
        results = self.gradients[False, True].at_steps(model, data)(0)
        n = len(self.shapes)
        return results[:n], results[n], dict(zip(buffers, results[n + 1 :], strict=True))

    def by_length(
        self, x: Float[Tensor, "a d"], buffers: NamedTensors, minibatches: Stacked, k: int
    ) -> tuple[list[Tensor], Float[Tensor, "a"], NamedTensors]:
        """See `differentiate`; for step k of minibatches of different lengths."""
        groups = minibatches.by_length(k)
        if len(groups) == 1:
            return self.differentiate(x, buffers, groups[0][1])
        gradients = [torch.empty_like(piece) for piece in self.split(x)]
        losses = x.new_empty(len(x))
        after = {name: buffer.clone() for name, buffer in buffers.items()}
        for rows, batch in groups:
            assert rows is not None
            before = {name: buffer[rows] for name, buffer in buffers.items()}
            parts, losses[rows], changed = self.differentiate(x[rows], before, batch)
            for whole, part in zip([*gradients, *after.values()], [*parts, *changed.values()], strict=True):
                whole[rows] = part
        return gradients, losses, after

    def padded_number(self, clients: int) -> int:
        """How many clients are computed in the place of this number: see `Vectorised`."""
        return next_round_number(clients, len(self.feed.minibatches.parts)) if self.padding else clients

    def split(self, x: Float[Tensor, "a d"]) -> list[Tensor]:
        """The rows as views in the shapes of the parameters, clients first."""
        pieces = torch.split(x, self.model.sizes, dim=1)
        return [piece.view(-1, *shape) for piece, shape in zip(pieces, self.shapes, strict=True)]


class VectorisedWork(Work):
    """See `rollcall.benchmark.engines.Work`."""

    def __init__(self, engine: Vectorised, t: int, lr: float, momentum: Rows | None) -> None:
        super().__init__(engine, t, lr, momentum)
        self.engine = engine
        self.client_buffers = ClientBuffers(engine.per_client.server_buffers)

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        if not self.client_buffers.stacked:
            return []  # without a transfer of the clients' ids
        return self.client_buffers.mean(self.ids(clients), clients.device)

    def differentiate(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = x.new_empty(x.shape), x.new_empty(len(clients))
        for chunk in self._chunks(clients, 1):
            ids = self.ids(clients)[chunk]
            minibatches = self.minibatches(clients[chunk], ids, step, step + 1)
            if self.engine.padding:
                pieces = self.engine.split(pad_clients(x[chunk], self.engine.padded_number(len(ids))))
                *pieces, padded_losses = self.engine.gradients_of_steps(pieces, minibatches, losses=True)(0)
                pieces, losses[chunk] = [piece[: len(ids)] for piece in pieces], padded_losses[: len(ids)]
            else:
                positions, buffers = self.client_buffers.get(ids, clients.device)
                pieces, losses[chunk], buffers = self.engine.by_length(x[chunk], buffers, minibatches, 0)
                self.client_buffers.put(positions, buffers)
            torch.cat([piece.flatten(1) for piece in pieces], dim=1, out=gradients[chunk])
        return gradients, losses

    def train(self, clients: Int[Tensor, "a"], moving: LocalState) -> None:
        K = np.array(self.local.of(self.ids(clients)))
        if not K.size:
            return
        whole, order = moving, None
        if K.min() != K.max():
            # Clients with the most steps come first, so that those with steps left are always the first n.
            order = to_device(np.argsort(-K, kind="stable"), clients.device)
            clients, K, moving = clients[order], -np.sort(-K), whole.each(lambda rows: rows[order])
        for chunk in self._chunks(clients, int(K[0])):
            part = moving.each(lambda rows, chunk=chunk: rows[chunk])  # type: ignore[misc]
            Descent(self, clients[chunk], self.ids(clients)[chunk], part).run(K[chunk])
        if order is not None:
            whole.write(moving, order)

    def _chunks(self, clients: Int[Tensor, "a"], steps: int) -> Iterator[slice]:
        """As many clients at a time as fit in memory, with their minibatches of that many steps."""
        steps = 1 if self.feed.always_same else min(steps, MOST_STEPS)
        longest = int(self.feed.minibatches.longest[self.ids(clients)].max(initial=0))
        size = self.engine.chunk_size.clients(longest, steps)
        for begin in range(0, len(clients), size):
            yield slice(begin, min(begin + size, len(clients)))

    def minibatches(self, clients: Int[Tensor, "a"], ids: list[int], begin: int, end: int) -> Stacked:
        """The minibatches of clients in steps `begin` to `end` of the round, repeated for `padded_number` clients."""
        n = self.engine.padded_number(len(ids))
        ids = ids + ids[:1] * (n - len(ids))
        first_steps = [self.t * K + begin for K in self.local.of(ids)]
        return self.feed.stacked(pad_clients(clients, n), ids, first_steps, end - begin)


class Descent:
    """The local steps of the clients of a chunk, those with the most steps first."""

    def __init__(self, work: VectorisedWork, clients: Int[Tensor, "n"], ids: list[int], moving: LocalState) -> None:
        self.work = work
        self.engine = work.engine
        self.local = work.local
        self.clients, self.ids = clients, ids
        self.moving = moving
        self.positions, self.buffers = work.client_buffers.get(ids, clients.device)

    def run(self, K: Int[np.ndarray, "n"]) -> None:
        """All steps, K_i of each client."""
        done = 0
        while done < K[0]:
            n = int((K > done).sum())  # clients with steps left
            until = min(int(K[n - 1]), done + MOST_STEPS)
            self._advance(n, done, until)
            done = until
        self.work.client_buffers.put(self.positions, self.buffers)

    def _advance(self, n: int, begin: int, end: int) -> None:
        """Steps `begin` to `end` of the round, of the first n clients."""
        padded = self.engine.padded_number(n)
        moving = self.moving.each(lambda rows: pad_clients(rows[:n], padded))
        minibatches = self.work.minibatches(self.clients[:n], self.ids[:n], begin, end)
        lr = self.work.lr if moving.scale is None else self.work.lr * moving.scale
        lrs = (lr * moving.y.new_ones(padded))[:, None]
        pieces = self.engine.split(moving.y)
        gradients_at = self._gradients(n, moving.y, pieces, minibatches)
        plain = not self.local.weight_decay and moving.correct is moving.velocity is None
        rates = [lrs.view(-1, *(1,) * (piece.ndim - 1)) for piece in pieces]
        for k in range(end - begin):
            if plain:
                torch._foreach_addcmul_(pieces, gradients_at(k), rates, value=-1)
            else:
                self._step(gradients_at(k), lrs, moving)
        if padded != n:
            self.moving.write(moving.each(lambda rows: rows[:n]), slice(n))

    def _gradients(self, n: int, y: Float[Tensor, "n d"], pieces: list[Tensor], minibatches: Stacked) -> ResultsAt:
        """The gradients of each step, in the shapes of the parameters."""
        if self.engine.padding:
            return self.engine.gradients_of_steps(pieces, minibatches, losses=False)

        def gradients_at(k: int) -> list[Tensor]:
            before = {name: buffer[:n] for name, buffer in self.buffers.items()}
            gradients, _, after = self.engine.by_length(y, before, minibatches, k)
            self.buffers = {name: torch.cat([after[name], buffer[n:]]) for name, buffer in self.buffers.items()}
            return gradients

        return gradients_at

    def _step(self, gradients: list[Tensor], lrs: Float[Tensor, "n 1"], moving: LocalState) -> None:
        """One step; models and velocities are changed in place."""
        y, _, correct, velocity = moving
        decay = self.local.weight_decay
        if velocity is not None:
            velocity.mul_(self.local.momentum)
            torch._foreach_add_(self.engine.split(velocity), gradients)
            if correct is not None:
                velocity.add_(correct)
            if decay:
                velocity.add_(y, alpha=decay)
            y.addcmul_(velocity, lrs, value=-1)
        else:
            if decay:
                y.addcmul_(y.clone(), lrs, value=-decay)
            if correct is not None:
                y.addcmul_(correct, lrs, value=-1)
            for piece, gradient in zip(self.engine.split(y), gradients, strict=True):
                piece.addcmul_(gradient, lrs.view(-1, *(1,) * (gradient.ndim - 1)), value=-1)


class ClientBuffers:
    """The buffers of the clients that have computed so far in a round; `server` repeats the server's for a number."""

    def __init__(self, server: Callable[[int], NamedTensors]) -> None:
        self.server = server
        self.stacked = server(0)
        self.position: dict[int, int] = {}

    def get(self, ids: list[int], device: torch.device) -> tuple[Int[Tensor, "n"] | None, NamedTensors]:
        """Positions in the stack, and copies of the buffers; the server's for a client that has not computed yet."""
        if not self.stacked:
            return None, {}
        new = [client for client in ids if client not in self.position]
        self.position |= {client: len(self.position) + i for i, client in enumerate(new)}
        server = self.server(len(new))
        self.stacked = {name: torch.cat([buffers, server[name]]) for name, buffers in self.stacked.items()}
        positions = to_device(np.array([self.position[client] for client in ids]), device)
        return positions, {name: buffers[positions] for name, buffers in self.stacked.items()}

    def put(self, positions: Int[Tensor, "n"] | None, buffers: NamedTensors) -> None:
        """Store the buffers of the clients at these positions."""
        for name, values in buffers.items():
            self.stacked[name][positions] = values

    def mean(self, ids: list[int], device: torch.device) -> list[Tensor] | None:
        """The mean of each buffer over those of these clients that have computed; None if none has."""
        positions = [self.position[client] for client in ids if client in self.position]
        if not positions:
            return None
        rows = to_device(np.array(positions), device)
        return [buffers[rows].to(torch.float64).mean(dim=0) for buffers in self.stacked.values()]


class ChunkSize:
    """The number of clients that fit in memory together, measured with a few samples.

    Args:
        model: the task.
        loss: of the task.
        samples: a few.
        memory: bytes that may be used; None for half of what a GPU has free, and 1 GiB on a CPU.
    """

    def __init__(self, model: FlatTask, loss: Loss, samples: Samples, memory: int | None) -> None:
        device = samples[0].device
        if memory is None and device.type == "cuda":
            reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            memory = int(torch.cuda.mem_get_info(device)[0] + reserve) // 2
        self.memory = 2**30 if memory is None else memory
        # Its model and gradient, and copies of both in a kernel's layout.
        self.bytes_per_client = 4 * sum(p.numel() * p.element_size() for p in model.parameters_)
        # What the forward pass saves, and what the backward pass makes of it.
        self.bytes_per_sample = 2 * activation_bytes(loss, samples)
        # The samples of all steps, with what their augmentation needs.
        self.bytes_per_step_sample = 16 * sum(column[0].numel() * column.element_size() for column in samples)

    def clients(self, length: int, steps: int) -> int:
        """How many clients fit, if each has `steps` minibatches of that length; at least 1, and a round number."""
        each = self.bytes_per_client + length * (self.bytes_per_sample + steps * self.bytes_per_step_sample)
        fitting = max(1, self.memory // each)
        return fitting - fitting % _spacing(fitting)


def next_round_number(n: int, most: int) -> int:
    """The next of 1, 2, ..., 8, 10, 12, 14, 16, 20, 24, ..., at most a quarter more than n; or `most`, if smaller."""
    return max(n, min(most, n + -n % _spacing(n)))


def pad_clients(rows: Tensor, n: int) -> Tensor:
    """n rows, contiguous in memory: the missing ones are copies of the first."""
    missing = n - len(rows)
    return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])]) if missing else rows.contiguous()


def _spacing(n: int) -> int:
    """The distance between two round numbers around n."""
    return max(1, (1 << n.bit_length()) // 8)
