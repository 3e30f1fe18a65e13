"""The vectorised engine: all clients of a round in one batch of kernels, for GPUs."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call, grad, vmap

from algorithms import Rows
from benchmark.config.errors import SettingError
from benchmark.engines.dealing import Deal, deal, to_device
from benchmark.engines.feed import Feed, held_out_losses
from benchmark.engines.flat import FlatTask
from benchmark.engines.local import LocalTraining
from benchmark.engines.probing import Loss, activations, is_mean_of_samples
from benchmark.engines.recorded import Recorded
from tasks import Samples

Named = dict[str, Tensor]
"""Parameters or buffers by name; with clients first where they are stacked."""

MOST_STEPS = 64
"""Of a client, whose minibatches are gathered together."""

Gradients = Callable[..., list[Tensor]]
"""Tensors, clients first: parameters, buffers and columns of the batches or columns and weights, to gradients, losses
and next buffers."""


class Vectorised:
    """See `benchmark.engines.Engine`.

    Minibatches of unequal length are padded, and the padding weighs nothing, where the loss is the mean of its samples'
    losses (tried once, in float64). Where it is not (BatchNorm), clients are grouped by the length of their minibatch
    and each group is computed as it is, so that any module gives what the sequential engine gives; full batches of
    clients that all differ in size are then computed one by one.

    The host draws which samples a round sees and waits for the device only to learn the ids of the clients asked. A
    batch of kernels is recorded for each of its shapes, so that these are to be few: where minibatches may be padded,
    so are the clients, to 1, 2, ... 8, 10, 12, 14, 16, 20, 24 ... or all.

    Args:
        model: the task. Its loss must go through `torch.func.vmap`, and may not draw random numbers (dropout): those
            would be the device's, not the client's.
        feed: the clients' minibatches.
        local: what a client does in a round.
        workers: not used; a batch of kernels is one piece of work.
        memory: bytes that the clients computed at once may take; by default half of what the GPU has free, and 1 GiB on
            a CPU.
        compiler: such as `torch.compile`; minibatches are then all padded to one length, so that less is compiled.

    Raises:
        SettingError: a loss that cannot be vectorised, or not be padded where it is to be compiled.
    """

    def __init__(
        self,
        model: FlatTask,
        feed: Feed,
        local: LocalTraining,
        workers: int = 1,
        memory: int | None = None,
        compiler: Callable[[Gradients], Gradients] | None = None,
    ) -> None:
        self.model = model
        self.feed = feed
        self.local = local
        self.loss = Loss(model.task)
        self.names = [name for name, _ in self.loss.named_parameters()]
        self.buffer_names = [f"task.{name}" for name in model.buffer_names]
        # From all over the data: neighbours may share a label, which could hide how samples depend on each other.
        spread = torch.linspace(0, len(feed.samples[0]) - 1, 8).long()
        few = tuple(column[spread.to(column.device)] for column in feed.samples)
        self.padding = not self.buffer_names and is_mean_of_samples(self.loss, few)
        # A client's model, its gradient, and copies of both in the layout that a kernel wants.
        self.bytes_per_client = 4 * sum(p.numel() * p.element_size() for p in model.parameters_)
        # What the backward pass finds and what it makes of it, and the samples of all steps with what augments them.
        self.bytes_per_sample = 2 * activations(self.loss, few)
        self.bytes_per_step_sample = 16 * sum(column[0].numel() * column.element_size() for column in few)
        self.memory = _free(feed.samples[0].device) if memory is None else memory
        self._gradients: Gradients = Recorded(self._of_whole_batches)
        self._padded_gradients: Gradients = Recorded(self._of_padded_batches)
        self.compiled = False
        self.shortest = 0
        self._try(few)
        if compiler is not None:
            if not self.padding:
                raise SettingError(
                    "numerics.engine: 'compiled' is not allowed with this model, in which the samples of a batch "
                    "depend on each other; must be vectorised or sequential"
                )
            self.compiled = True
            size = feed.minibatches.size
            longest = int(feed.minibatches.parts.sizes.max())
            self.shortest = longest if size == "full" else min(longest, size)
            self._padded_gradients = compiler(self._of_padded_batches)

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> "VectorisedWork":
        return VectorisedWork(self, t, lr, momentum)

    def at_once(self, length: int, steps: int) -> int:
        """How many clients with minibatches of that length fit into the memory; a number that needs no padding."""
        each = self.bytes_per_client + length * (self.bytes_per_sample + steps * self.bytes_per_step_sample)
        fitting = max(1, self.memory // each)
        return fitting - fitting % _step(fitting)

    def differentiate(
        self, x: Float[Tensor, "a d"], buffers: Named, batch: Samples, weights: Float[Tensor, "a b"] | None
    ) -> tuple[list[Tensor], Float[Tensor, "a"], Named]:
        """Gradients (in the shapes of the parameters), losses and next buffers of clients, on batches [a, b, ...]."""
        a = len(x)
        if self.compiled and weights is None:
            b = len(batch[0][0])
            weights = x.new_full((a, b), 1 / b)
        if self.padding:
            n = round_number(a, len(self.feed.minibatches.parts))
            x, *columns = (_lengthened(part, n) for part in (x, *batch))
            batch, weights = tuple(columns), None if weights is None else _lengthened(weights, n)
        if weights is None:
            found = self._gradients(*self.split(x), *buffers.values(), *batch)
        else:
            found = self._padded_gradients(*self.split(x), *batch, weights)
        n = len(self.names)
        gradients, losses, changed = found[:n], found[n], found[n + 1 :]
        if len(losses) != a:
            gradients, losses = [gradient[:a] for gradient in gradients], losses[:a]
        return gradients, losses, dict(zip(buffers, changed, strict=True))

    def split(self, x: Float[Tensor, "a d"]) -> list[Tensor]:
        """The rows as views in the shapes of the parameters, clients first."""
        shapes = [parameter.shape for parameter in self.model.parameters_]
        pieces = x.split([shape.numel() for shape in shapes], dim=1)
        return [piece.view(-1, *shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def _of_whole_batches(self, *tensors: Tensor) -> list[Tensor]:
        n, b = len(self.names), len(self.buffer_names)
        parameters = dict(zip(self.names, tensors[:n], strict=True))
        buffers = dict(zip(self.buffer_names, tensors[n : n + b], strict=True))
        gradients, (losses, buffers) = vmap(grad(self._whole, has_aux=True))(parameters, buffers, tensors[n + b :])
        return [*gradients.values(), losses, *buffers.values()]

    def _of_padded_batches(self, *tensors: Tensor) -> list[Tensor]:
        n = len(self.names)
        parameters = dict(zip(self.names, tensors[:n], strict=True))
        gradients, losses = vmap(grad(self._weighted, has_aux=True))(parameters, tensors[n:-1], tensors[-1])
        return [*gradients.values(), losses]

    def _whole(self, parameters: Named, buffers: Named, batch: Samples) -> tuple[Tensor, tuple[Tensor, Named]]:
        buffers = {name: buffer.clone() for name, buffer in buffers.items()}  # those given are not to change
        loss = functional_call(self.loss, (parameters, buffers), (batch,))
        return loss, (loss, buffers)

    def _weighted(self, parameters: Named, batch: Samples, weights: Float[Tensor, "b"]) -> tuple[Tensor, Tensor]:
        def one(sample: Samples) -> Tensor:
            return functional_call(self.loss, parameters, (tuple(column[None] for column in sample),))

        loss = weights @ vmap(one)(batch)
        return loss, loss

    def shared(self, clients: int) -> Named:
        """The server's buffers, once for each of so many clients."""
        found = {name: self.loss.get_buffer(name) for name in self.buffer_names}
        return {name: buffer.expand(clients, *buffer.shape) for name, buffer in found.items()}

    def _try(self, samples: Samples) -> None:
        """Refuse, before the first round, a loss that cannot be vectorised."""
        batch = tuple(column.expand(2, *column.shape) for column in samples)
        try:
            self.differentiate(self.model.vector().expand(2, -1), self.shared(2), batch, None)
        except RuntimeError as error:
            raise SettingError(
                "numerics.engine: 'vectorised' is not allowed with this model, which torch.func.vmap refuses "
                f"({str(error).splitlines()[0]}); must be sequential"
            ) from error


class VectorisedWork:
    """One round's local work: see `benchmark.engines.Work`."""

    def __init__(self, engine: Vectorised, t: int, lr: float, momentum: Rows | None) -> None:
        self.engine = engine
        self.local = engine.local
        self.t = t
        self.lr = lr
        self.momentum = self._momentum_before = momentum
        self._asked: tuple[Tensor, list[int]] | None = None
        # The buffers of clients that have computed, stacked, and where each of these clients stands in the stack.
        self._buffers = engine.shared(0)
        self._place: dict[int, int] = {}

    @property
    def steps(self) -> int:
        return self.local.most

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        if isinstance(self.local.steps, int):
            return torch.full_like(clients, self.local.steps)
        return to_device(np.array(self.local.of(self._ids(clients)), dtype=np.int64), clients.device)

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        return held_out_losses(self.engine.model, self.engine.feed, clients, x, split)

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        if not self._buffers:
            return []  # without asking who the clients are
        places = [self._place[client] for client in self._ids(clients) if client in self._place]
        if not places:
            return None
        rows = to_device(np.array(places), clients.device)
        return [buffer[rows].to(torch.float64).mean(dim=0) for buffer in self._buffers.values()]

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = x.new_empty(x.shape), x.new_empty(len(clients))
        for part in self._parts(clients, 1):
            places, buffers = self._lend(clients, part)
            dealt = self._deal(clients, part, step, step + 1)
            found, losses[part], buffers = self._differentiate(x[part], buffers, dealt, 0)
            torch.cat([gradient.flatten(1) for gradient in found], dim=1, out=gradients[part])
            self._give_back(places, buffers)
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
        rates = ((self.lr if scale is None else self.lr * scale) * start.new_ones(len(clients)))[:, None]
        velocity = None
        if self.local.momentum:
            velocity = torch.zeros_like(ends) if self._momentum_before is None else self._momentum_before[clients]
        K = np.array(self.local.of(self._ids(clients)))
        if K.size and K.min() == K.max():
            self._descend(clients, K, ends, rates, correct, velocity)
        elif K.size:
            # Who takes the most steps comes first, so that those who have steps left are always the first so many.
            order = to_device(np.argsort(-K, kind="stable"), clients.device)
            sorted_ends = ends[order]
            sorted_correct = None if correct is None else correct[order]
            sorted_velocity = None if velocity is None else velocity[order]
            self._descend(clients[order], -np.sort(-K), sorted_ends, rates[order], sorted_correct, sorted_velocity)
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
        rates: Float[Tensor, "a 1"],
        correct: Float[Tensor, "a d"] | None,
        velocity: Float[Tensor, "a d"] | None,
    ) -> None:
        """All steps of clients with K_i in descending order; y and velocity are changed in place."""
        for part in self._parts(clients, int(K[0])):
            places, buffers = self._lend(clients, part)
            steps = K[part]
            done = 0
            while done < steps[0]:
                n = int((steps > done).sum())  # clients with steps left: the first n of this part
                until = min(int(steps[n - 1]), done + MOST_STEPS)
                going = slice(part.start, part.start + n)
                lent = {name: buffer[:n] for name, buffer in buffers.items()}
                dealt = self._deal(clients, going, done, until)
                for k in range(until - done):
                    gradients, _, lent = self._differentiate(y[going], lent, dealt, k)
                    self._step(
                        y[going],
                        gradients,
                        rates[going],
                        None if correct is None else correct[going],
                        None if velocity is None else velocity[going],
                    )
                buffers = {name: torch.cat([after, buffers[name][n:]]) for name, after in lent.items()}
                done = until
            self._give_back(places, buffers)

    def _step(
        self,
        y: Float[Tensor, "n d"],
        gradients: list[Tensor],
        lr: Float[Tensor, "n 1"],
        correct: Float[Tensor, "n d"] | None,
        velocity: Float[Tensor, "n d"] | None,
    ) -> None:
        """A step of SGD, in place; `velocity` changes with it."""
        decay = self.local.weight_decay
        if velocity is not None:
            velocity.mul_(self.local.momentum)
            for piece, gradient in zip(self.engine.split(velocity), gradients, strict=True):
                piece.add_(gradient)
            if correct is not None:
                velocity.add_(correct)
            if decay:
                velocity.add_(y, alpha=decay)
            y.addcmul_(velocity, lr, value=-1)
            return
        if decay:
            y.addcmul_(y.clone(), lr, value=-decay)
        if correct is not None:
            y.addcmul_(correct, lr, value=-1)
        for piece, gradient in zip(self.engine.split(y), gradients, strict=True):
            piece.addcmul_(gradient, lr.view(-1, *(1,) * (gradient.ndim - 1)), value=-1)

    def _parts(self, clients: Int[Tensor, "a"], steps: int) -> Iterator[slice]:
        """As many clients at a time as fit into the memory with what they see in so many steps."""
        held = 1 if self.engine.feed.always_same else min(steps, MOST_STEPS)
        size = self.engine.at_once(max(self._longest(clients), self.engine.shortest), held)
        for begin in range(0, len(clients), size):
            yield slice(begin, min(begin + size, len(clients)))

    def _longest(self, clients: Int[Tensor, "a"]) -> int:
        """Samples in the longest minibatch of these clients."""
        minibatches = self.engine.feed.minibatches
        largest = int(minibatches.parts.sizes[self._ids(clients)].max(initial=0))
        return largest if minibatches.size == "full" else min(largest, minibatches.size)

    def _deal(self, clients: Int[Tensor, "a"], part: slice, begin: int, end: int) -> Deal:
        """What some of the clients see in these steps of the round."""
        ids = self._ids(clients)[part]
        minibatches = self.engine.feed.minibatches
        firsts = [self.t * K + begin for K in self.local.of(ids)]
        rows = [
            [minibatches.rows(client, first + k) for k in range(end - begin)]
            for client, first in zip(ids, firsts, strict=True)
        ]
        dtype = self.engine.model.parameters_[0].dtype
        return deal(self.engine.feed, clients[part], firsts, rows, dtype, self.engine.shortest)

    def _differentiate(
        self, x: Float[Tensor, "a d"], buffers: Named, dealt: Deal, k: int
    ) -> tuple[list[Tensor], Float[Tensor, "a"], Named]:
        """See `Vectorised.differentiate`."""
        if self.engine.padding:
            return self.engine.differentiate(x, buffers, *dealt.padded(k))
        groups = dealt.alike(k)
        if len(groups) == 1:
            return self.engine.differentiate(x, buffers, groups[0][1], None)
        gradients = [torch.empty_like(piece) for piece in self.engine.split(x)]
        losses = x.new_empty(len(x))
        after = {name: buffer.clone() for name, buffer in buffers.items()}
        for rows, batch in groups:
            assert rows is not None
            theirs = {name: buffer[rows] for name, buffer in buffers.items()}
            found, loss, changed = self.engine.differentiate(x[rows], theirs, batch, None)
            losses[rows] = loss
            for whole, piece in zip([*gradients, *after.values()], [*found, *changed.values()], strict=True):
                whole[rows] = piece
        return gradients, losses, after

    def _ids(self, clients: Int[Tensor, "a"]) -> list[int]:
        """The ids on the host: the one thing it waits for, once as long as the same clients are asked."""
        if self._asked is None or self._asked[0] is not clients:
            self._asked = clients, clients.tolist()
        return self._asked[1]

    def _lend(self, clients: Int[Tensor, "a"], part: slice) -> tuple[Int[Tensor, "n"] | None, Named]:
        """The buffers of some of the clients, the server's for one that has not computed yet; and where they stand."""
        if not self._buffers:
            return None, {}
        ids = self._ids(clients)[part]
        new = [client for client in ids if client not in self._place]
        self._place |= {client: len(self._place) + i for i, client in enumerate(new)}
        shared = self.engine.shared(len(new))
        self._buffers = {name: torch.cat([theirs, shared[name]]) for name, theirs in self._buffers.items()}
        places = to_device(np.array([self._place[client] for client in ids]), clients.device)
        return places, {name: buffer[places] for name, buffer in self._buffers.items()}

    def _give_back(self, places: Int[Tensor, "n"] | None, buffers: Named) -> None:
        for name, after in buffers.items():
            self._buffers[name][places] = after


def round_number(n: int, most: int) -> int:
    """The next of 1, 2, ..., 8, 10, 12, 14, 16, 20, 24, ..., less than a quarter more; or `most`, if that is less."""
    return max(n, min(most, n + -n % _step(n)))


def _step(n: int) -> int:
    """From one round number to the next, around n."""
    return max(1, (1 << n.bit_length()) // 8)


def _lengthened(rows: Tensor, n: int) -> Tensor:
    """With the first row repeated at the end, n in all, one after another in memory."""
    missing = n - len(rows)
    return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])]) if missing else rows.contiguous()


def _free(device: torch.device) -> int:
    """Half of what a GPU has left, torch's own reserve counted as free; 1 GiB on a CPU."""
    if device.type != "cuda":
        return 2**30
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return (torch.cuda.mem_get_info(device)[0] + reserve) // 2
