"""The interface of an engine, and the parts that all engines share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.algorithms import Rows
from rollcall.benchmark.engines.feed import Feed, to_device
from rollcall.benchmark.engines.flat_task import Buffers, FlatTask
from rollcall.tasks import evaluating


@dataclass(frozen=True)
class LocalTraining:
    """SGD as in torch: v = momentum * v + g + weight_decay * x, then x -= lr * v.

    Attributes:
        steps: K, or K_i of each client, [m].
        momentum: 0 for none.
        weight_decay: 0 for none.
        keep_momentum: whether a client keeps its v from round to round; otherwise every round starts with v = 0.
        clip: the largest norm of a minibatch gradient g, which a larger one is scaled to; None for no limit.
    """

    steps: int | Int[np.ndarray, "m"]
    momentum: float = 0.0
    weight_decay: float = 0.0
    keep_momentum: bool = False
    clip: float | None = None

    def of(self, clients: Sequence[int]) -> list[int]:
        """K_i of these clients."""
        if isinstance(self.steps, int):
            return [self.steps] * len(clients)
        return self.steps[np.asarray(clients, dtype=np.int64)].tolist()


def clipped(gradients: Sequence[Float[Tensor, "n ..."]], most: float) -> list[Float[Tensor, "n ..."]]:
    """The gradients of n clients in pieces, each scaled to a norm of at most `most` as clip_grad_norm_ does."""
    norm = torch.stack([piece.reshape(len(piece), -1).square().sum(dim=1) for piece in gradients]).sum(dim=0).sqrt()
    factor = (most / (norm + 1e-6)).clamp(max=1)
    return [piece * factor.view(-1, *(1,) * (piece.ndim - 1)) for piece in gradients]


class LocalState(NamedTuple):
    """Clients that take local steps, one row each.

    Attributes:
        y: their models, changed in place.
        scale: of their learning rates.
        correct: added to their gradients.
        velocity: of SGD with momentum, changed in place.
    """

    y: Float[Tensor, "n d"]
    scale: Float[Tensor, "n"] | None
    correct: Float[Tensor, "n d"] | None
    velocity: Float[Tensor, "n d"] | None

    def each(self, function: Callable[[Tensor], Tensor]) -> "LocalState":
        """A function of each of the tensors."""
        return LocalState(*(None if rows is None else function(rows) for rows in self))  # type: ignore[arg-type]

    def write(self, other: "LocalState", rows: slice | Int[Tensor, "n"]) -> None:
        """Copy another's models and velocities into these rows."""
        self.y[rows] = other.y
        if self.velocity is not None and other.velocity is not None:
            self.velocity[rows] = other.velocity


class Engine:
    """Computes the clients' local work of a trial, for which it is made once. All tensors are on one device.

    Each thread runs its kernels on one thread (`kernels_of_one_thread`), so that results do not depend on the number of
    threads.

    Args:
        model: the task; an engine works on copies of it.
        feed: the clients' minibatches.
        local: the clients' local training.
        workers: threads that may compute side by side on a CPU.
    """

    def __init__(self, model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> None:
        self.model, self.feed, self.local, self.workers = model, feed, local, workers

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> "Work":
        """The local work of round t at learning rate eta, with the clients' momentum if it is kept over rounds."""
        return Work(self, t, lr, momentum)

    def of(self, clients: int) -> "Engine":
        """The engine that computes a call with this number of clients; it has the next two methods."""
        return self

    def differentiate(
        self, work: "Work", clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        """Minibatch gradients and losses at x, without weight decay; new tensors."""
        raise NotImplementedError

    def train(self, work: "Work", clients: Int[Tensor, "a"], state: LocalState) -> None:
        """The K_i local steps of each client."""
        raise NotImplementedError


class Work:
    """The local work of one round, which algorithms see as `rollcall.algorithms.LocalWork`.

    It holds what the clients keep during the round, and counts what they compute. The engine computes it.

    Attributes:
        momentum: after the clients' work so far; None if it is not kept over rounds. Each call of `sgd` in a round
            starts from the momentum before the round; the last call of a client counts.
        client_buffers: by client, the model's buffers (BatchNorm statistics) after its work so far. Each client's start
            the round equal to the server's; all that the client computes updates them.
        gradient_count: how many minibatch gradients the clients have computed.
        loss_calls: the losses [a] that each call of `gradients` or `losses` returned, in order.
    """

    def __init__(self, engine: Engine, t: int, lr: float, momentum: Rows | None) -> None:
        self.engine, self.model, self.feed, self.local = engine, engine.model, engine.feed, engine.local
        self.t = t
        self.lr = lr
        self.momentum = self._momentum_before = momentum
        self.client_buffers: dict[int, Buffers] = {}
        self.gradient_count = 0
        self.loss_calls: list[Tensor] = []
        self._last_ids: tuple[Tensor, list[int]] | None = None
        device = self.feed.samples[0].device.type
        self._autocast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))

    @property
    def steps(self) -> int:
        """See `rollcall.algorithms.LocalWork`, also for the next four methods."""
        return int(np.max(self.local.steps))

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        if isinstance(self.local.steps, int):
            return torch.full_like(clients, self.local.steps)
        return to_device(np.array(self.local.of(self.ids(clients)), dtype=np.int64), clients.device)

    def _precision(self) -> torch.autocast:
        """Of the layers. The method that asks for the work computes in full precision."""
        device, dtype, enabled = self._autocast
        return torch.autocast(device, dtype, enabled)

    @torch.no_grad()
    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        """Clients are computed one after another, in evaluation mode."""
        splits, task = self.feed.held_out, self.model.task
        if split not in splits:
            if not splits:
                raise ValueError(f"losses: {split!r} is not allowed; the clients of this task hold out no samples")
            raise ValueError(f"losses: {split!r} is not allowed with this task; must be {', '.join(splits)}")
        samples, holdings = splits[split]
        losses = x.new_full((len(clients),), nan)
        loaded = False
        with evaluating(task), self._precision():
            for row, client in enumerate(clients.tolist()):
                if not holdings.sizes[client]:  # the loss of no samples may be anything, or raise an error
                    continue
                if not loaded or x.stride(0):  # stride 0: all clients have the same model, which is loaded once
                    self.model.move(x[row])
                    loaded = True
                rows = torch.from_numpy(holdings[client]).to(x.device)
                losses[row] = task.loss(tuple(column.index_select(0, rows) for column in samples))
        self.loss_calls.append(losses)
        return losses

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        self.gradient_count += len(clients)
        with self._precision():
            gradients, losses = self.engine.of(len(clients)).differentiate(self, clients, x, step)
        if self.local.clip:
            (gradients,) = clipped([gradients], self.local.clip)
        if self.local.weight_decay:
            gradients.add_(x, alpha=self.local.weight_decay)
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
        self.gradient_count += sum(self.local.of(self.ids(clients)))
        y = start.clone(memory_format=torch.contiguous_format)
        velocity = None
        if self.local.momentum:
            velocity = torch.zeros_like(y) if self._momentum_before is None else self._momentum_before[clients]
        with self._precision():
            self.engine.of(len(clients)).train(self, clients, LocalState(y, scale, correct, velocity))
        if self.momentum is not None and velocity is not None:
            self.momentum = self.momentum.put(clients, velocity)
        return y

    def ids(self, clients: Int[Tensor, "a"]) -> list[int]:
        """The ids on the host, read once for the same tensor. The host waits for the device here."""
        if self._last_ids is None or self._last_ids[0] is not clients:
            self._last_ids = clients, clients.tolist()
        return self._last_ids[1]

    def buffers(self, clients: Int[Tensor, "a"]) -> Buffers | None:
        """The mean of each buffer of the model over those of these clients that computed; None if none did."""
        if not self.model.buffer_names:
            return []  # without a transfer of the clients' ids
        stored = [self.client_buffers[client] for client in self.ids(clients) if client in self.client_buffers]
        if not stored:
            return None
        return [torch.stack(values).to(torch.float64).mean(dim=0) for values in zip(*stored, strict=True)]
