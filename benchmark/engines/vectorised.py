"""The vectorised engine: computes all clients of a round in one batch of kernels. Meant for GPUs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms import Rows
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.engines.base import Work
from rollcall.benchmark.engines.feed import Feed, StackedMinibatches, stack_minibatches, to_device
from rollcall.benchmark.engines.flat_task import FlatTask
from rollcall.benchmark.engines.local_training import AdamRows, LocalTraining, StackedOptimizer, clip_rows
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
        SettingError: the loss or the local optimizer cannot be vectorised.
    """

    def __init__(
        self,
        model: FlatTask,
        feed: Feed,
        local: LocalTraining,
        workers: int = 1,
        memory: int | None = None,
    ) -> None:
        self.model = model
        self.feed = feed
        self.local = local
        if local.optimizer is not None and not isinstance(local.optimizer, StackedOptimizer):
            raise SettingError(
                "numerics.engine: 'vectorised' is not allowed with a local optimizer from outside; must be sequential"
            )
        loss, few = Loss(model.task, FastCrossEntropy), spread_samples(feed.samples)
        self.shapes = [parameter.shape for parameter in model.parameters_]
        self.per_client = PerClientGradients(loss, [f"task.{name}" for name in model.buffer_names])
        self.padding = not model.buffer_names and is_mean_of_samples(loss, few)
        plain = local.optimizer is None and local.clip_norm is None
        self.chunk_size = ChunkSize.measured(model, loss, few, memory, copies=4 if plain else 10)
        key = kernels_key(model.task)
        self.gradients = {
            (padded, losses): Traced(partial(self.per_client, padded=padded, losses=losses), (padded, losses, key))
            for padded in (False, True)
            for losses in (False, True)
        }
        self._try(few)

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> "VectorisedWork":
        return VectorisedWork(self, t, lr, momentum)

    def gradients_of_steps(self, pieces: list[Tensor], minibatches: StackedMinibatches, losses: bool) -> ResultsAt:
        """The gradients of clients in each step, in the shapes of the parameters, then their losses if asked for.

        For models without buffers.

        Args:
            pieces: the clients' models, as `split` gives them, which may change between steps.
            minibatches: of all steps.
            losses: whether losses are needed.
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

    def padded_number(self, clients: int) -> int:
        """How many clients are computed in the place of so many: see `Vectorised`."""
        return next_round_number(clients, len(self.feed.minibatches.parts)) if self.padding else clients

    def split(self, x: Float[Tensor, "a d"]) -> list[Tensor]:
        """The rows as views in the shapes of the parameters, clients first."""
        pieces = torch.split(x, self.model.sizes, dim=1)
        return [piece.view(-1, *shape) for piece, shape in zip(pieces, self.shapes, strict=True)]

    def _try(self, samples: Samples) -> None:
        """Refuse, before the first round, a loss that cannot be vectorised."""
        batch = tuple(column.expand(2, *column.shape) for column in samples)
        try:
            self.differentiate(self.model.vector().expand(2, -1), self.per_client.server_buffers(2), batch)
        except RuntimeError as error:
            raise SettingError(
                "numerics.engine: 'vectorised' is not allowed with this model; must be sequential. torch.func.vmap "
                f"cannot vectorise its loss: {str(error).splitlines()[0]}"
            ) from error


class VectorisedWork(Work):
    """See `rollcall.benchmark.engines.Work`."""

    def __init__(self, engine: Vectorised, t: int, lr: float, momentum: Rows | None) -> None:
        super().__init__(engine.model, engine.feed, engine.local, lr, momentum)
        self.engine = engine
        self.t = t
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
                pieces, losses[chunk], buffers = self.by_length(x[chunk], buffers, minibatches, 0)
                self.client_buffers.put(positions, buffers)
            torch.cat([piece.flatten(1) for piece in pieces], dim=1, out=gradients[chunk])
        return gradients, losses

    def train(
        self,
        clients: Int[Tensor, "a"],
        y: Float[Tensor, "a d"],
        scale: Float[Tensor, "a"] | None,
        correct: Float[Tensor, "a d"] | None,
        velocity: Float[Tensor, "a d"] | None,
    ) -> None:
        lrs = ((self.lr if scale is None else self.lr * scale) * y.new_ones(len(clients)))[:, None]
        K = np.array(self.local.of(self.ids(clients)))
        if K.size and K.min() == K.max():
            self._descend(clients, K, y, lrs, correct, velocity)
        elif K.size:
            # Clients with the most steps come first, so that those with steps left are always the first n.
            order = to_device(np.argsort(-K, kind="stable"), clients.device)
            sorted_y = y[order]
            sorted_correct = None if correct is None else correct[order]
            sorted_velocity = None if velocity is None else velocity[order]
            self._descend(clients[order], -np.sort(-K), sorted_y, lrs[order], sorted_correct, sorted_velocity)
            y.index_copy_(0, order, sorted_y)
            if velocity is not None and sorted_velocity is not None:
                velocity.index_copy_(0, order, sorted_velocity)

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
                self.ids(clients)[chunk],
                y[chunk],
                lrs[chunk],
                None if correct is None else correct[chunk],
                None if velocity is None else velocity[chunk],
            )
            descent.run(K[chunk])

    def _chunks(self, clients: Int[Tensor, "a"], steps: int) -> Iterator[slice]:
        """As many clients at a time as fit in memory, with their minibatches of that many steps."""
        steps = 1 if self.engine.feed.always_same else min(steps, MOST_STEPS)
        size = self.engine.chunk_size.clients(self._longest(clients), steps)
        for begin in range(0, len(clients), size):
            yield slice(begin, min(begin + size, len(clients)))

    def _longest(self, clients: Int[Tensor, "a"]) -> int:
        """Samples in the longest minibatch of these clients."""
        minibatches = self.engine.feed.minibatches
        most_samples = int(minibatches.parts.sizes[self.ids(clients)].max(initial=0))
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
        )

    def by_length(
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
        work: VectorisedWork,
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

    def run(self, K: Int[np.ndarray, "a"]) -> None:
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

    def _gradients(
        self, n: int, y: Float[Tensor, "n d"], pieces: list[Tensor], minibatches: StackedMinibatches
    ) -> ResultsAt:
        """The gradients of each step, in the shapes of the parameters."""
        if self.engine.padding:
            return self.engine.gradients_of_steps(pieces, minibatches, losses=False)

        def gradients_at(k: int) -> list[Tensor]:
            before = {name: buffer[:n] for name, buffer in self.buffers.items()}
            gradients, _, after = self.work.by_length(y, before, minibatches, k)
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


class ClientBuffers:
    """The buffers of the clients that have computed so far in a round.

    Args:
        server: the server's buffers, repeated for a number of clients.
    """

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


@dataclass
class ChunkSize:
    """The number of clients that fit in memory together.

    Attributes:
        bytes_per_client: the model, its gradient, copies of both in a kernel's layout, and an optimizer's state.
        bytes_per_sample: what the forward pass saves, and what the backward pass makes of it.
        bytes_per_step_sample: the samples of all steps, with what their augmentation needs.
        memory: bytes that may be used.
    """

    bytes_per_client: int
    bytes_per_sample: int
    bytes_per_step_sample: int
    memory: int

    @classmethod
    def measured(
        cls, model: FlatTask, loss: Loss, samples: Samples, memory: int | None, copies: int = 4
    ) -> "ChunkSize":
        """Measured with a few samples; `memory` None means what `free_memory` allows.

        A client needs as much memory as `copies` models.
        """
        return cls(
            copies * sum(p.numel() * p.element_size() for p in model.parameters_),
            2 * activation_bytes(loss, samples),
            16 * sum(column[0].numel() * column.element_size() for column in samples),
            free_memory(samples[0].device) if memory is None else memory,
        )

    def clients(self, length: int, steps: int) -> int:
        """How many clients fit, if each has `steps` minibatches of that length; at least 1, and a round number."""
        fitting = max(1, self.memory // self.bytes_each(length, steps))
        return fitting - fitting % _spacing(fitting)

    def bytes_each(self, length: int, steps: int) -> int:
        """What a client needs that has `steps` minibatches of that length."""
        return self.bytes_per_client + length * (self.bytes_per_sample + steps * self.bytes_per_step_sample)


def spread_samples(samples: Samples) -> Samples:
    """Eight samples from all over the data. Neighbours may share a label, which could hide how samples interact."""
    rows = torch.linspace(0, len(samples[0]) - 1, 8).long()
    return tuple(column[rows.to(column.device)] for column in samples)


def next_round_number(n: int, most: int) -> int:
    """The next of 1, 2, ..., 8, 10, 12, 14, 16, 20, 24, ..., at most a quarter more than n; or `most`, if smaller."""
    return max(n, min(most, n + -n % _spacing(n)))


def pad_clients(rows: Tensor, n: int) -> Tensor:
    """n rows, contiguous in memory: the missing ones are copies of the first."""
    missing = n - len(rows)
    return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])]) if missing else rows.contiguous()


def free_memory(device: torch.device) -> int:
    """Bytes: half of what a GPU has free, including torch's own reserve; 1 GiB on a CPU."""
    if device.type != "cuda":
        return 2**30
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + reserve) // 2


def _spacing(n: int) -> int:
    """The distance between two round numbers around n."""
    return max(1, (1 << n.bit_length()) // 8)
