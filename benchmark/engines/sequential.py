"""The sequential engine: each client on its own, as many at once as there are threads. Any model; the oracle for every
faster engine."""

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from queue import SimpleQueue
from time import perf_counter

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from benchmark.engines.feed import Feed
from benchmark.engines.flat import Buffers, FlatTask
from tasks import Samples
from tasks.streams import torch_stream

WORTH_A_THREAD = 2e-3
"""Seconds: of a shorter step Python is too large a part, and Python runs in one thread at a time."""


class Sequential:
    """See `benchmark.engines.Engine`.

    On a CPU each thread that torch may use works on a client of its own, with kernels of one thread. So results do not
    depend on the number of threads.

    Args:
        model: the task, of which the engine works on copies.
        feed: the clients' minibatches.
        steps: K.
    """

    def __init__(self, model: FlatTask, feed: Feed, steps: int) -> None:
        self.model = model
        self.feed = feed
        self.steps = steps
        self.on_cpu = model.parameters_[0].device.type == "cpu"
        self.channels_last = self.pools_first = self.draws = False
        seconds = 0.0
        if self.on_cpu:
            with self.kernels_of_one_thread():
                largest = int(feed.minibatches.parts.sizes.argmax())
                self.channels_last = takes_channels_last(model, feed.batch(largest, 0))
                batch = self.batch(largest, 0)
                self.pools_first = may_pool_first(model, batch)
                self.draws, seconds = self._try(batch)
        # torch's own generator, which layers such as dropout draw from, is one for all threads.
        alone = self.draws or seconds < WORTH_A_THREAD
        self.threads = 1 if alone else torch.get_num_threads()
        self.replicas = [Replica(model, self.pools_first) for _ in range(self.threads)]
        self.idle: SimpleQueue[Replica] = SimpleQueue()
        for replica in self.replicas:
            self.idle.put(replica)
        self.home = model.vector()
        self.pool = ThreadPoolExecutor(self.threads, initializer=prepare_thread)

    def round(self, t: int, lr: float) -> "SequentialWork":
        return SequentialWork(self, t, lr)

    def batch(self, client: int, step: int) -> Samples:
        """A minibatch in the layout that suits the model."""
        batch = self.feed.batch(client, step)
        return in_channels_last(batch) if self.channels_last else batch

    def _try(self, batch: Samples) -> tuple[bool, float]:
        """Whether a step draws random numbers, and how long it takes."""
        replica = Replica(self.model, self.pools_first)
        with torch_stream(0, "noise"):
            before = torch.get_rng_state()
            replica.differentiate(batch)
            draws = not torch.equal(before, torch.get_rng_state())
            began = perf_counter()
            replica.differentiate(batch)
            return draws, perf_counter() - began

    @contextmanager
    def kernels_of_one_thread(self) -> Iterator[None]:
        threads = torch.get_num_threads()
        if threads == 1 or not self.on_cpu:
            yield
            return
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


class SequentialWork:
    """One round's local work: see `benchmark.engines.Work`."""

    def __init__(self, engine: Sequential, t: int, lr: float) -> None:
        self.engine = engine
        self.model = engine.model
        self.steps = engine.steps
        self.t = t
        self.lr = lr
        self._buffers: dict[int, Buffers] = {}

    def buffers(self, clients: Int[Tensor, "a"]) -> Buffers | None:
        if not self.model.buffer_names:
            return []  # without asking who the clients are
        heard = [self._buffers[client] for client in clients.tolist() if client in self._buffers]
        if not heard:
            return None
        return [torch.stack(theirs).to(torch.float64).mean(dim=0) for theirs in zip(*heard, strict=True)]

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(len(clients))

        def differentiate(row: int, client: int, replica: Replica) -> None:
            replica.move(x[row].contiguous())
            losses[row], found = self._differentiate(replica, client, step)
            torch.cat([gradient.flatten() for gradient in found], out=gradients[row])

        self._for_each(clients, differentiate)
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
        rates = [self.lr] * len(clients) if scale is None else (self.lr * scale).tolist()

        def train(row: int, client: int, replica: Replica) -> None:
            replica.move(ends[row])  # where the steps then leave their result
            corrections = None if correct is None else self.model.split(correct[row])
            for step in range(self.steps):
                _, gradients = self._differentiate(replica, client, step)
                if corrections is not None:
                    torch._foreach_sub_(replica.parameters, corrections, alpha=rates[row])
                torch._foreach_sub_(replica.parameters, gradients, alpha=rates[row])

        self._for_each(clients, train)
        return ends

    @torch.no_grad()
    def _for_each(self, clients: Int[Tensor, "a"], work: Callable[[int, int, "Replica"], None]) -> None:
        """Work(row, client, replica) for all clients."""
        idle, shared = self.engine.idle, self.model.buffers_()

        def one(row: int, client: int) -> None:
            replica = idle.get()
            try:
                if shared:
                    replica.take_buffers(self._buffers.get(client, shared))
                work(row, client, replica)
                if shared:
                    self._buffers[client] = [buffer.clone() for buffer in replica.buffers]
            finally:
                idle.put(replica)

        # Autocast is a thread's own affair.
        alone = self.engine.threads == 1 or len(clients) == 1 or torch.is_autocast_enabled("cpu")
        with self.engine.kernels_of_one_thread():
            for _ in (map if alone else self.engine.pool.map)(one, range(len(clients)), clients.tolist()):
                pass
        for replica in self.engine.replicas:
            replica.move(self.engine.home)  # or it would keep the memory of the last round's points

    def _differentiate(self, replica: "Replica", client: int, step: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss and gradients, where the replica is, on the client's minibatch of a step."""
        step += self.t * self.steps
        batch = self.engine.batch(client, step)
        if not self.engine.draws:
            return replica.differentiate(batch)
        with torch_stream(self.engine.feed.minibatches.seed, "noise", client, step):
            return replica.differentiate(batch)


class Replica:
    """A copy of a task to work on.

    Args:
        model: of the task.
        pools_first: see `pool_first`.
    """

    def __init__(self, model: FlatTask, pools_first: bool = False) -> None:
        self.model = model
        self.task = copy.deepcopy(model.task)
        if pools_first:
            pool_first(self.task)
        self.parameters: list[Tensor] = list(self.task.parameters())
        self.buffers = [self.task.get_buffer(name) for name in model.buffer_names]

    def move(self, vector: Float[Tensor, "d"]) -> None:
        """Take the parameters to a point: they become views of it."""
        for parameter, piece in zip(self.parameters, self.model.split(vector), strict=True):
            parameter.data = piece

    def take_buffers(self, values: Buffers) -> None:
        for buffer, value in zip(self.buffers, values, strict=True):
            buffer.copy_(value)

    def differentiate(self, batch: Samples) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss and gradients on a batch."""
        with torch.enable_grad():
            loss = self.task.loss(batch)
            return loss.detach(), torch.autograd.grad(loss, self.parameters, materialize_grads=True)


def prepare_thread() -> None:
    """Both are a thread's own settings."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)


def in_channels_last(batch: Samples) -> Samples:
    """The same numbers, images [n, c, h, w] among them with their channels side by side in memory."""
    return tuple(
        column.contiguous(memory_format=torch.channels_last) if column.dim() == 4 else column for column in batch
    )


def takes_channels_last(model: FlatTask, batch: Samples) -> bool:
    """Whether images may come with their channels last, which convolutions like; `Tensor.view` may refuse them."""
    if not any(column.dim() == 4 for column in batch):
        return False
    try:
        with torch_stream(0, "noise"):
            Replica(model).differentiate(in_channels_last(batch))
    except RuntimeError:
        return False
    return True


def may_pool_first(model: FlatTask, batch: Samples) -> bool:
    """Whether `pool_first` has something to swap, and no part of the task looks between the two layers."""
    if not pool_first(copy.deepcopy(model.task)):
        return False
    found = []
    for replica in (Replica(model), Replica(model, pools_first=True)):
        with torch_stream(0, "noise"):
            loss, gradients = replica.differentiate(batch)
        found.append([loss, *gradients])
    return all(torch.equal(given, swapped) for given, swapped in zip(*found, strict=True))


def pool_first(task: nn.Module) -> bool:
    """Swap each ReLU with the max-pooling after it: bit for bit the same, on fewer numbers. False if there is none."""
    swapped = False
    for parent in task.modules():
        if type(parent) is not nn.Sequential:
            continue
        for i, (layer, pooling) in enumerate(pairwise(list(parent))):
            if type(layer) is nn.ReLU and type(pooling) is nn.MaxPool2d and not pooling.return_indices:
                parent[i], parent[i + 1] = pooling, layer
                swapped = True
    return swapped
