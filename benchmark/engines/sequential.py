"""The sequential engine: one client after another, or one per thread. It works with any model; the other engine is
tested against it."""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from queue import SimpleQueue
from time import perf_counter
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.benchmark.engines.base import Engine, LocalState, LocalTraining, Work, clipped
from rollcall.benchmark.engines.feed import Feed
from rollcall.benchmark.engines.flat_task import FlatTask, accepts_channels_last, in_channels_last, thread_pool
from rollcall.tasks import Samples
from rollcall.tasks.streams import torch_state, torch_stream

NOTHING: AbstractContextManager[None] = nullcontext()

Tensors: TypeAlias = list[Tensor] | tuple[Tensor, ...]

WORTH_A_THREAD = 2e-3
"""Seconds. A shorter step spends too much of its time in Python, which runs in one thread at a time."""


class Sequential(Engine):
    """See `rollcall.benchmark.engines.Engine`."""

    def __init__(self, model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> None:
        super().__init__(model, feed, local, workers)
        self.channels_last = self.draws = False
        on_cpu = feed.samples[0].device.type == "cpu"
        seconds = self._try(int(feed.minibatches.parts.sizes.argmax()), on_cpu)
        # All threads share torch's generator, from which layers such as dropout draw.
        self.threads = workers if on_cpu and not self.draws and seconds >= WORTH_A_THREAD else 1
        self.replicas = [Replica(model) for _ in range(self.threads)]
        self.idle: SimpleQueue[Replica] = SimpleQueue()
        for replica in self.replicas:
            self.idle.put(replica)
        self.home = model.vector()
        self.pool = thread_pool(self.threads)

    def differentiate(
        self, work: Work, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(len(clients))

        def one_step(row: int, client: int) -> None:
            at = work.t * self.local.of([client])[0] + step
            with self._replica(work, client, x[row].contiguous()) as replica, self._noise(client, at):
                losses[row], pieces = replica.differentiate(next(self.batches(client, range(at, at + 1))))
                torch.cat([piece.flatten() for piece in pieces], out=gradients[row])

        list(self._map(clients)(one_step, range(len(clients)), work.ids(clients)))
        self._rest()
        return gradients, losses

    def train(self, work: Work, clients: Int[Tensor, "a"], state: LocalState) -> None:
        y, scale, correct, velocity = state
        lrs = [work.lr] * len(clients) if scale is None else (work.lr * scale).tolist()

        def all_steps(row: int, client: int) -> None:
            corrections = None if correct is None else self.model.split(correct[row])
            velocities = None if velocity is None else self.model.split(velocity[row])
            (K,) = self.local.of([client])
            steps = range(work.t * K, (work.t + 1) * K)
            with self._replica(work, client, y[row]) as replica:  # the steps change this row in place
                for step, batch in zip(steps, self.batches(client, steps), strict=True):
                    with self._noise(client, step):
                        _, gradients = replica.differentiate(batch)
                    replica.descend(gradients, lrs[row], self.local, corrections, velocities)

        list(self._map(clients)(all_steps, range(len(clients)), work.ids(clients)))
        self._rest()

    def batches(self, client: int, steps: range) -> Iterator[Samples]:
        """Minibatches in the memory format that suits the model."""
        batches = self.feed.batches(client, steps)
        return map(in_channels_last, batches) if self.channels_last else batches

    def _map(self, clients: Int[Tensor, "a"]) -> Callable[..., Iterator[None]]:
        """`map`, one client after another or one per thread. Autocast is set for each thread separately."""
        in_this_thread = self.threads == 1 or len(clients) == 1 or torch.is_autocast_enabled("cpu")
        return map if in_this_thread else self.pool.map

    def _rest(self) -> None:
        """Set the replicas to a model of their own, to free the memory of the clients' models."""
        for replica in self.replicas:
            replica.move(self.home)

    @contextmanager
    def _replica(self, work: Work, client: int, x: Float[Tensor, "d"]) -> Iterator["Replica"]:
        """An idle replica at x, with the client's buffers, which are stored at the end."""
        replica, server_buffers = self.idle.get(), self.model.buffers_()
        try:
            with torch.no_grad():
                replica.move(x)
                for buffer, value in zip(replica.buffers, work.client_buffers.get(client, server_buffers), strict=True):
                    buffer.copy_(value)
                yield replica
                if server_buffers:
                    work.client_buffers[client] = [buffer.clone() for buffer in replica.buffers]
        finally:
            self.idle.put(replica)

    def _noise(self, client: int, step: int) -> AbstractContextManager[None]:
        """The random numbers of a client's step, counted from round 0, for a model that draws some (dropout)."""
        return torch_stream(self.feed.minibatches.seed, "noise", client, step) if self.draws else NOTHING

    def _try(self, client: int, on_cpu: bool) -> float:
        """Set `channels_last`, and whether a step draws random numbers; returns the seconds of a step."""
        with torch_stream(0, "noise"):
            if on_cpu:
                one = self.feed.batch(client, 0)
                self.channels_last = accepts_channels_last(Replica(self.model).differentiate, one)
            replica, batch = Replica(self.model), next(self.batches(client, range(1)))
            before = torch_state()
            replica.differentiate(batch)
            self.draws = torch_state() != before
            began = perf_counter()
            replica.differentiate(batch)
            return perf_counter() - began


class Replica:
    """A copy of a task, used by one thread at a time."""

    def __init__(self, model: FlatTask) -> None:
        self.model = model
        self.task = copy.deepcopy(model.task)
        self.parameters: list[Tensor] = [self.task.get_parameter(name) for name in model.parameter_names]
        self.buffers = [self.task.get_buffer(name) for name in model.buffer_names]

    def move(self, vector: Float[Tensor, "d"]) -> None:
        """Set the parameters to a vector: they become views of it."""
        for parameter, piece in zip(self.parameters, self.model.split(vector), strict=True):
            parameter.data = piece

    def differentiate(self, batch: Samples) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss and gradients on a batch."""
        torch.clear_autocast_cache()  # it may hold copies of the parameters as they were before the last step
        with torch.enable_grad():
            loss = self.task.loss(batch)
            return loss.detach(), torch.autograd.grad(loss, self.parameters, materialize_grads=True)

    def descend(
        self, gradients: Tensors, lr: float, local: LocalTraining, corrections: Tensors | None, velocity: Tensors | None
    ) -> None:
        """One step of SGD; parameters and `velocity` are changed in place."""
        if local.clip:
            gradients = [piece[0] for piece in clipped([piece[None] for piece in gradients], local.clip)]
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
