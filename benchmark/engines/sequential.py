"""The sequential engine: one client after another, or one per thread. It works with any model; the other engine is
tested against it."""

import copy
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import perf_counter
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms import Rows
from rollcall.benchmark.engines.base import LocalState, LocalTraining, Work
from rollcall.benchmark.engines.feed import Feed
from rollcall.benchmark.engines.flat_task import Buffers, FlatTask, accepts_channels_last, in_channels_last, thread_pool
from rollcall.tasks import Samples
from rollcall.tasks.streams import torch_stream

Tensors: TypeAlias = list[Tensor] | tuple[Tensor, ...]

WORTH_A_THREAD = 2e-3
"""Seconds. A shorter step spends too much of its time in Python, which runs in one thread at a time."""


class Sequential:
    """See `rollcall.benchmark.engines.Engine`.

    Args:
        model: the task; the engine works on copies of it.
        feed: the clients' minibatches.
        local: the clients' local training.
        workers: threads; on a CPU each computes a client of its own.
    """

    def __init__(self, model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> None:
        self.model, self.feed, self.local = model, feed, local
        self.channels_last = self.draws = False
        self.threads = 1
        if model.parameters_[0].device.type == "cpu":
            seconds = self._try(int(feed.minibatches.parts.sizes.argmax()))
            # All threads share torch's generator, from which layers such as dropout draw.
            self.threads = 1 if self.draws or seconds < WORTH_A_THREAD else workers
        self.replicas = [Replica(model) for _ in range(self.threads)]
        self.idle: SimpleQueue[Replica] = SimpleQueue()
        for replica in self.replicas:
            self.idle.put(replica)
        self.home = model.vector()
        self.pool = thread_pool(self.threads)

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> "SequentialWork":
        return SequentialWork(self, t, lr, momentum)

    def batches(self, client: int, steps: range) -> Iterator[Samples]:
        """Minibatches in the memory format that suits the model."""
        batches = self.feed.batches(client, steps)
        return map(in_channels_last, batches) if self.channels_last else batches

    def _try(self, client: int) -> float:
        """Set `channels_last`, and whether a step draws random numbers; returns the seconds of a step."""
        with torch_stream(0, "noise"):
            self.channels_last = accepts_channels_last(Replica(self.model).differentiate, self.feed.batch(client, 0))
            replica, batch = Replica(self.model), next(self.batches(client, range(1)))
            before = torch.get_rng_state()
            replica.differentiate(batch)
            self.draws = not torch.equal(before, torch.get_rng_state())
            began = perf_counter()
            replica.differentiate(batch)
            return perf_counter() - began


class SequentialWork(Work):
    """One round's local work: see `rollcall.benchmark.engines.Work`."""

    def __init__(self, engine: Sequential, t: int, lr: float, momentum: Rows | None) -> None:
        super().__init__(engine, t, lr, momentum)
        self.engine = engine
        self._buffers: dict[int, Buffers] = {}

    def buffers(self, clients: Int[Tensor, "a"]) -> Buffers | None:
        if not self.model.buffer_names:
            return []  # without a transfer of the clients' ids
        client_buffers = [self._buffers[client] for client in clients.tolist() if client in self._buffers]
        if not client_buffers:
            return None
        return [torch.stack(values).to(torch.float64).mean(dim=0) for values in zip(*client_buffers, strict=True)]

    def differentiate(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(len(clients))

        def work(row: int, client: int, replica: Replica) -> None:
            replica.move(x[row].contiguous())
            at = self.t * self.local.of([client])[0] + step
            losses[row], pieces = self._gradient(
                replica, client, at, next(self.engine.batches(client, range(at, at + 1)))
            )
            torch.cat([piece.flatten() for piece in pieces], out=gradients[row])

        self._for_each(clients, work)
        return gradients, losses

    def train(self, clients: Int[Tensor, "a"], moving: LocalState) -> None:
        y, scale, correct, velocity = moving
        lrs = [self.lr] * len(clients) if scale is None else (self.lr * scale).tolist()

        def work(row: int, client: int, replica: Replica) -> None:
            replica.move(y[row])  # the steps change this row in place
            corrections = None if correct is None else self.model.split(correct[row])
            velocities = None if velocity is None else self.model.split(velocity[row])
            (K,) = self.local.of([client])
            steps = range(self.t * K, (self.t + 1) * K)
            for step, batch in zip(steps, self.engine.batches(client, steps), strict=True):
                _, gradients = self._gradient(replica, client, step, batch)
                replica.descend(gradients, lrs[row], self.local, corrections, velocities)

        self._for_each(clients, work)

    @torch.no_grad()
    def _for_each(self, clients: Int[Tensor, "a"], work: Callable[[int, int, "Replica"], None]) -> None:
        """Call work(row, client, replica) for all clients."""
        idle, server_buffers = self.engine.idle, self.model.buffers_()

        def work_with_replica(row: int, client: int) -> None:
            replica = idle.get()
            try:
                if server_buffers:
                    before = self._buffers.get(client, server_buffers)
                    for buffer, value in zip(replica.buffers, before, strict=True):
                        buffer.copy_(value)
                work(row, client, replica)
                if server_buffers:
                    self._buffers[client] = [buffer.clone() for buffer in replica.buffers]
            finally:
                idle.put(replica)

        # Autocast is set for each thread separately.
        in_this_thread = self.engine.threads == 1 or len(clients) == 1 or torch.is_autocast_enabled("cpu")
        for _ in (map if in_this_thread else self.engine.pool.map)(
            work_with_replica, range(len(clients)), clients.tolist()
        ):
            pass
        for replica in self.engine.replicas:
            replica.move(self.engine.home)  # otherwise it would keep the memory of this round's models

    def _gradient(
        self, replica: "Replica", client: int, step: int, batch: Samples
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss and gradients at the replica's parameters, on the client's minibatch of a step, counted from round 0."""
        if not self.engine.draws:
            return replica.differentiate(batch)
        with torch_stream(self.engine.feed.minibatches.seed, "noise", client, step):
            return replica.differentiate(batch)


class Replica:
    """A copy of a task, used by one thread at a time."""

    def __init__(self, model: FlatTask) -> None:
        self.model = model
        self.task = copy.deepcopy(model.task)
        self.parameters: list[Tensor] = list(self.task.parameters())
        self.buffers = [self.task.get_buffer(name) for name in model.buffer_names]

    def move(self, vector: Float[Tensor, "d"]) -> None:
        """Set the parameters to a vector: they become views of it."""
        for parameter, piece in zip(self.parameters, self.model.split(vector), strict=True):
            parameter.data = piece

    def differentiate(self, batch: Samples) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss and gradients on a batch."""
        with torch.enable_grad():
            loss = self.task.loss(batch)
            return loss.detach(), torch.autograd.grad(loss, self.parameters, materialize_grads=True)

    def descend(
        self, gradients: Tensors, lr: float, local: LocalTraining, corrections: Tensors | None, velocity: Tensors | None
    ) -> None:
        """One step of SGD; parameters and `velocity` are changed in place."""
        if local.weight_decay:
            gradients = torch._foreach_add(gradients, self.parameters, alpha=local.weight_decay)
        if velocity is not None:
            torch._foreach_mul_(velocity, local.momentum)
            for directions in (gradients, corrections):
                if directions is not None:
                    torch._foreach_add_(velocity, directions)
            gradients, corrections = velocity, None
        if corrections is not None:
            torch._foreach_sub_(self.parameters, corrections, alpha=lr)
        torch._foreach_sub_(self.parameters, gradients, alpha=lr)
