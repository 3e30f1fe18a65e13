"""The vectorised engine: computes all clients of a call in one batch of kernels."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.benchmark.engines.base import Engine, LocalState, LocalTraining, Work, clipped
from rollcall.benchmark.engines.captured import Captured, Steps
from rollcall.benchmark.engines.feed import Feed, Stacked, to_device
from rollcall.benchmark.engines.flat_task import Buffers, FlatTask
from rollcall.benchmark.engines.kernels import FastKernels
from rollcall.benchmark.engines.loss import Loss, PerClientGradients, activation_bytes, is_mean_of_samples, kernels_key
from rollcall.benchmark.engines.recording import Recorded
from rollcall.tasks import Samples

MOST_STEPS = 64
"""Steps of a client whose minibatches are gathered together."""

IN_CACHES = 2**26
"""Bytes. Where 80 clients take 1 GiB of a CPU's memory instead, their steps take up to twice the time."""

CAPTURED = 32
"""Captures have this part of the memory for clients. Steps of many clients, which do not fit, gain nothing."""


class Vectorised(Engine):
    """See `rollcall.benchmark.engines.Engine`; `workers` is not used, since a batch of kernels is one piece of work.

    If the loss is the mean of its samples' losses (tried once, in float64), shorter minibatches are padded and the
    padding has weight 0. Otherwise (BatchNorm) clients are grouped by the length of their minibatch and nothing is
    padded, so that every module gives the same result as in the sequential engine. Full batches of clients whose
    numbers of samples all differ are then computed one by one.

    The host draws the samples of a round. It waits for the device only to learn the ids of the clients. Kernels are
    recorded once for each combination of shapes, and on a GPU a step is captured then (`captured`). So there should be
    few shapes: where minibatches may be padded, the number of clients is too, to 1, 2, ... 8, 10, 12, 14, 16, 20, 24
    ... or all.

    Args:
        model: the task. Its loss must work with `torch.func.vmap` and must not draw random numbers (dropout), because
            these would depend on the device rather than on the client. `probe` tries it.
    """

    def __init__(self, model: FlatTask, feed: Feed, local: LocalTraining, workers: int = 1) -> None:
        super().__init__(model, feed, local, workers)
        # Eight samples from all over the data. Neighbours may share a label, which could hide how samples interact.
        rows = torch.linspace(0, len(feed.samples[0]) - 1, 8).long()
        few = tuple(column[rows.to(column.device)] for column in feed.samples)
        loss = Loss(copy.deepcopy(model.task), FastKernels)
        self.shapes = [parameter.shape for parameter in model.parameters_]
        self.padding = not model.buffer_names and is_mean_of_samples(loss, model.parameter_names, few)
        # The bytes of a client's model and gradient, with copies of both in a kernel's layout; of what the forward pass
        # of a sample saves, with what the backward pass makes of it; of a sample, with what its augmentation needs.
        self.bytes_of_client = 4 * sum(p.numel() * p.element_size() for p in model.parameters_)
        self.bytes_of_pass = 2 * activation_bytes(loss, few)
        self.bytes_of_sample = 16 * sum(column[0].numel() * column.element_size() for column in few)
        device = few[0].device
        self.memory = IN_CACHES  # bytes for the clients computed at once; on a GPU half of what is free
        if device.type == "cuda":
            reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            self.memory = int(torch.cuda.mem_get_info(device)[0] + reserve) // 2
        per_client = PerClientGradients(loss, model.parameter_names, model.buffer_names)
        key = kernels_key(model)
        self.recorded = {
            (weighted, losses): Recorded(partial(per_client, weighted=weighted, losses=losses), (weighted, losses, key))
            for weighted in (False, True)
            for losses in (False, True)
        }
        self.captured = Captured(self._take, self.memory // CAPTURED) if device.type == "cuda" else None
        self._probe(few)

    def _probe(self, few: Samples) -> None:
        """Take a local step of two clients, and compute weighted samples. Raises what the model or `vmap` raises."""
        sizes = self.feed.minibatches.parts.sizes
        clients = np.flatnonzero(sizes)[[sizes[sizes > 0].argmin(), sizes[sizes > 0].argmax()]]
        one_step = copy.copy(self)
        one_step.local = replace(self.local, steps=1, keep_momentum=False)
        x = self.model.vector().expand(2, -1)
        one_step.round(0, 1.0).sgd(to_device(clients, x.device), x)
        if self.padding:
            weights = x.new_full((2, len(few[0])), 1 / len(few[0]))
            batches = [column.expand(2, *column.shape) for column in few]
            self.recorded[True, True].function(*self.split(x), *batches, weights)

    def differentiate(
        self, work: Work, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = x.new_empty(x.shape), x.new_empty(len(clients))
        ids = work.ids(clients)
        for chunk in self._chunks(ids, 1):
            n = len(ids[chunk])
            padded, buffers = pad_clients(x[chunk], self.padded_number(n)), stacked_buffers(work, ids[chunk])
            minibatches = self._minibatches(work, ids[chunk], step, step + 1)
            *pieces, chunk_losses = self._gradients(padded, buffers, minibatches, losses=True)(0)
            torch.cat([piece[:n].flatten(1) for piece in pieces], dim=1, out=gradients[chunk])
            losses[chunk] = chunk_losses[:n]
            store_buffers(work, ids[chunk], buffers)
        return gradients, losses

    def train(self, work: Work, clients: Int[Tensor, "a"], state: LocalState) -> None:
        ids = work.ids(clients)
        K = np.array(self.local.of(ids))
        whole, rows = state, None
        if K.size and K.min() != K.max():
            # Clients with the most steps come first, so that those with steps left are always the first n.
            order = np.argsort(-K, kind="stable")
            K, ids, rows = K[order], [ids[i] for i in order.tolist()], to_device(order, clients.device)
            state = whole.each(lambda tensor: tensor[rows])
        for chunk in self._chunks(ids, int(K.max(initial=1))):
            part = state.each(lambda tensor, chunk=chunk: tensor[chunk])  # type: ignore[misc]
            self._all_steps(work, ids[chunk], part, K[chunk])
        if rows is not None:
            whole.write(state, rows)

    def _all_steps(self, work: Work, ids: list[int], state: LocalState, K: Int[np.ndarray, "n"]) -> None:
        """The K_i local steps of the clients of a chunk, those with the most steps first."""
        buffers = stacked_buffers(work, ids)
        done = 0
        while done < K[0]:
            n = int((K > done).sum())  # clients with steps left
            until = min(int(K[n - 1]), done + MOST_STEPS)
            left = state.each(lambda tensor, n=n: tensor[:n])  # type: ignore[misc]
            self._steps(work, ids[:n], left, [buffer[:n] for buffer in buffers], done, until)
            done = until
        store_buffers(work, ids, buffers)

    def _steps(self, work: Work, ids: list[int], state: LocalState, buffers: Buffers, begin: int, end: int) -> None:
        """Steps `begin` to `end` of the round; models, velocities and buffers are changed in place."""
        n, padded = len(ids), self.padded_number(len(ids))
        moving = state.each(lambda tensor: pad_clients(tensor, padded))
        lr = work.lr if moving.scale is None else work.lr * moving.scale
        lrs = (lr * moving.y.new_ones(padded))[:, None]
        steps = Steps(moving, buffers, lrs, self._minibatches(work, ids, begin, end))
        if self.captured and (self.padding or steps.minibatches.weights is None):  # all steps have the same shapes
            self.captured(steps)
        else:
            self._take(steps)
        if padded != n:
            state.write(moving.each(lambda tensor: tensor[:n]), slice(n))

    def _take(self, steps: Steps) -> None:
        """Take the steps, each with kernels of its own."""
        moving, buffers, lrs, minibatches = steps
        pieces = self.split(moving.y)
        gradients_at = self._gradients(moving.y, buffers, minibatches)
        rates = [lrs.view(-1, *(1,) * (piece.ndim - 1)) for piece in pieces]
        for k in range(len(minibatches.lengths)):
            gradients = gradients_at(k)
            if self.local.clip:
                gradients = clipped(gradients, self.local.clip)
            self._step(gradients, moving, pieces, lrs, rates)

    def _step(
        self, gradients: list[Tensor], moving: LocalState, pieces: list[Tensor], lrs: Tensor, rates: list[Tensor]
    ) -> None:
        """One step; models (`pieces` are views of y) and velocities are changed in place."""
        (y, _, correct, velocity), decay = moving, self.local.weight_decay
        if velocity is None:
            if decay:
                y.addcmul_(y.clone(), lrs, value=-decay)
            if correct is not None:
                y.addcmul_(correct, lrs, value=-1)
            torch._foreach_addcmul_(pieces, gradients, rates, value=-1)
            return
        velocity.mul_(self.local.momentum)
        torch._foreach_add_(self.split(velocity), gradients)
        if correct is not None:
            velocity.add_(correct)
        if decay:
            velocity.add_(y, alpha=decay)
        y.addcmul_(velocity, lrs, value=-1)

    def _gradients(
        self, y: Float[Tensor, "n d"], buffers: Buffers, minibatches: Stacked, losses: bool = False
    ) -> Callable[[int], list[Tensor]]:
        """From a step to the gradients at y, in the shapes of the parameters, and the losses [n] if asked for.

        y may change between steps; `buffers` are changed in place.
        """
        if not self.padding:
            return lambda k: self._by_length(y, buffers, minibatches, losses, k)
        pieces, steps = self.split(y), list(zip(*(column.unbind() for column in minibatches.columns), strict=True))
        kernels = self.recorded[minibatches.weights is not None, losses].kernels([*pieces, *steps[0]], len(steps))
        return lambda k: kernels(*pieces, *steps[k])

    def _by_length(
        self, y: Float[Tensor, "n d"], buffers: Buffers, minibatches: Stacked, losses: bool, k: int
    ) -> list[Tensor]:
        """See `_gradients`; minibatches are not padded, but computed by length."""
        results: list[Tensor] = []
        for rows, batch in minibatches.by_length(k):
            tensors = [*self.split(y), *buffers]
            if rows is not None:
                tensors = [*self.split(y[rows]), *(buffer[rows] for buffer in buffers)]
            tensors += batch
            values = self.recorded[False, losses].kernels(tensors)(*tensors)
            if rows is None:
                results = values
                break
            results = results or [value.new_empty(len(y), *value.shape[1:]) for value in values]
            for whole, part in zip(results, values, strict=True):
                whole[rows] = part
        n = len(results) - len(buffers)
        for buffer, after in zip(buffers, results[n:], strict=True):
            buffer.copy_(after)
        return results[:n]

    def padded_number(self, clients: int) -> int:
        """How many clients are computed in the place of this number: see `Vectorised`."""
        return next_round_number(clients, len(self.feed.minibatches.parts)) if self.padding else clients

    def split(self, x: Float[Tensor, "a d"]) -> list[Tensor]:
        """The rows as views in the shapes of the parameters, clients first."""
        pieces = torch.split(x, self.model.sizes, dim=1)
        return [piece.view(-1, *shape) for piece, shape in zip(pieces, self.shapes, strict=True)]

    def _chunks(self, ids: list[int], steps: int) -> Iterator[slice]:
        """As many clients at a time as fit in memory, with their minibatches of that many steps."""
        steps = 1 if self.feed.always_same else min(steps, MOST_STEPS)
        longest = int(self.feed.minibatches.longest[ids].max(initial=0))
        each = self.bytes_of_client + longest * (self.bytes_of_pass + steps * self.bytes_of_sample)
        size = max(1, self.memory // each)
        size -= size % _spacing(size)  # a round number
        for begin in range(0, len(ids), size):
            yield slice(begin, min(begin + size, len(ids)))

    def _minibatches(self, work: Work, ids: list[int], begin: int, end: int) -> Stacked:
        """The minibatches of clients in steps `begin` to `end` of the round, repeated for `padded_number` clients."""
        ids = ids + ids[:1] * (self.padded_number(len(ids)) - len(ids))
        return self.feed.stacked(ids, [work.t * K + begin for K in self.local.of(ids)], end - begin)


def stacked_buffers(work: Work, ids: list[int]) -> Buffers:
    """Copies of the clients' buffers, clients first; the server's for a client that has not computed in this round."""
    server = work.model.buffers_()
    stored = [work.client_buffers.get(client, server) for client in ids]
    return [torch.stack(values) for values in zip(*stored, strict=True)]


def store_buffers(work: Work, ids: list[int], buffers: Buffers) -> None:
    """Keep the clients' buffers for the rest of the round."""
    if buffers:
        columns = zip(*(buffer.unbind() for buffer in buffers), strict=True)
        work.client_buffers.update({client: list(own) for client, own in zip(ids, columns, strict=True)})


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
