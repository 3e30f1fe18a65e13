"""The clients of a round, computed by several processes: on several GPUs, or on several machines.

The main process runs the algorithm and has the only copy of its state. It sends each peer the starting points of a
share of the clients, computes the share of its own, and puts the rows of all clients together. So algorithms,
callbacks and checkpoints are the same as in one process. A vector that all clients share is sent once to each peer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algorithms import Rows
from benchmark.engines.base import Engine
from benchmark.engines.evaluator import Evaluator, joined, piece_size
from benchmark.engines.flat_task import FlatTask
from benchmark.engines.peers import Peers
from benchmark.engines.share import Share
from tasks import Samples


@dataclass(frozen=True)
class Request:
    """What the main process asks of a peer.

    Attributes:
        method: of `Share`, or of `Evaluator`.
        clients: ids.
        options: plain arguments of the method.
        names: of the tensors that come with the request, without buffers and parameters.
        round: number, learning rate, and whether clients keep their momentum; None for an evaluation.
        begins: whether this is the peer's first request in the round, with the server's buffers.
    """

    method: str
    clients: Sequence[int] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[str] = ()
    round: tuple[int, float, bool] | None = None
    begins: bool = False


class Distributed:
    """See `benchmark.engines.Engine`.

    Args:
        engine: of the main process, for its own share of the clients.
        model: whose buffers the clients start a round with.
        peers: the other processes, which have engines of the same kind.
    """

    def __init__(self, engine: Engine, model: FlatTask, peers: Peers) -> None:
        self.engine = engine
        self.model = model
        self.peers = peers

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> "DistributedWork":
        return DistributedWork(self, t, lr, momentum)


class DistributedWork:
    """One round's local work: see `benchmark.engines.Work`."""

    def __init__(self, engine: Distributed, t: int, lr: float, momentum: Rows | None) -> None:
        self.engine = engine
        self.peers = engine.peers
        self.momentum = self._momentum_before = momentum
        self.round = t, lr, momentum is not None
        self.own = Share(engine.engine, *self.round)
        self._owner: dict[int, int] = {}
        self._computed: set[int] = set()
        self._begun: set[int] = set()

    @property
    def steps(self) -> int:
        return self.own.work.steps

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        return self.own.work.steps_of(clients)

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        gradients, losses = self._together("gradients", clients, {"x": x}, {"step": step})
        self._computed.update(clients.tolist())
        return gradients, losses

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        return self._together("losses", clients, {"x": x}, {"split": split})[0]

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        momentum = None if self._momentum_before is None else self._momentum_before[clients]
        rows = {"start": start, "scale": scale, "correct": correct, "momentum": momentum}
        ends, *after = self._together("sgd", clients, {name: row for name, row in rows.items() if row is not None})
        if self.momentum is not None:
            self.momentum = self.momentum.put(clients, after[0])
        self._computed.update(clients.tolist())
        return ends

    def buffers(self, clients: Int[Tensor, "a"]) -> list[Tensor] | None:
        if not self.engine.model.buffer_names:
            return []
        computed = [row for row, client in enumerate(clients.tolist()) if client in self._computed]
        if not computed:
            return None
        return [values.mean(dim=0) for values in self._together("buffers", clients[computed], {})]

    def _together(
        self,
        method: str,
        clients: Int[Tensor, "a"],
        rows: Mapping[str, Tensor],
        options: Mapping[str, Any] | None = None,
    ) -> list[Tensor]:
        """Call a method of `Share` in all processes that have some of these clients, and join the rows it returns."""
        ids, options = clients.tolist(), options or {}
        places = self._places(clients, ids)
        for rank in places.keys() - {0}:
            at = places[rank]
            self._ask(rank, Request(method, [ids[row] for row in at], options), part(rows, at))
        answers = {}
        if 0 in places:
            answers[0] = self.own.call(method, clients[places[0]], part(rows, places[0]), options)
        answers |= {rank: self.peers.answer(rank)[1] for rank in places.keys() - {0}}
        kinds = next(iter(answers.values()))
        whole = [values.new_empty(len(ids), *values.shape[1:]) for values in kinds]
        for rank, values in answers.items():
            positions = torch.tensor(places[rank], dtype=torch.int64, device=clients.device)
            for joint, mine in zip(whole, values, strict=True):
                joint.index_copy_(0, positions, mine)
        return whole

    def _places(self, clients: Int[Tensor, "a"], ids: list[int]) -> dict[int, list[int]]:
        """By process: the positions of its clients. A client stays with its process in a round, where its buffers are.

        New clients go to the process with the fewest local steps, the longest work first.
        """
        K = self.steps_of(clients).tolist()
        load = [0] * self.peers.size
        for client, steps in zip(ids, K, strict=True):
            load[self._owner.get(client, 0)] += steps if client in self._owner else 0
        for row in sorted(range(len(ids)), key=lambda row: -K[row]):
            if ids[row] not in self._owner:
                self._owner[ids[row]] = rank = load.index(min(load))
                load[rank] += K[row]
        places: dict[int, list[int]] = {} if ids else {0: []}
        for row, client in enumerate(ids):
            places.setdefault(self._owner[client], []).append(row)
        return places

    def _ask(self, rank: int, request: Request, rows: Mapping[str, Tensor]) -> None:
        begins = rank not in self._begun
        self._begun.add(rank)
        request = Request(request.method, request.clients, request.options, list(rows), self.round, begins)
        self.peers.ask(rank, request, [*rows.values(), *(self.engine.model.buffers_() if begins else ())])


def part(rows: Mapping[str, Tensor], at: list[int]) -> dict[str, Tensor]:
    """The rows at these positions; one row if all are the same vector (stride 0)."""
    return {
        name: values[:1] if len(values) > 1 and values.stride(0) == 0 else values[at] for name, values in rows.items()
    }


class DistributedEvaluator:
    """Computes the metrics of batches of images in all processes; of other samples, which are cheap, in this process.

    Args:
        evaluator: of the main process.
        model: at the parameters to evaluate.
        peers: the other processes.
    """

    def __init__(self, evaluator: Evaluator, model: FlatTask, peers: Peers) -> None:
        self.evaluator = evaluator
        self.model = model
        self.peers = peers

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """See `tasks.Task.metrics`."""
        parts = self._parts(batch)
        metrics = self._together("metrics", parts)
        sizes = [len(share[0]) for share in parts]
        return {name: joined([one[name] for one in metrics], sizes) for name in metrics[0]}

    def outputs(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """See `tasks.Task.outputs`."""
        outputs = self._together("outputs", self._parts(batch))
        return torch.cat([one["predictions"] for one in outputs]), torch.cat([one["targets"] for one in outputs])

    def _parts(self, batch: Samples) -> list[Samples]:
        """The samples of each process, in whole pieces of the evaluator."""
        if not any(column.dim() == 4 for column in batch):
            return [batch]
        piece = piece_size(batch)
        pieces = -(-len(batch[0]) // piece)
        size = piece * -(-pieces // self.peers.size)
        return list(zip(*(torch.split(column, size) for column in batch), strict=True))

    def _together(self, method: str, parts: list[Samples]) -> list[dict[str, Tensor]]:
        ranks = range(1, len(parts))
        for rank in ranks:
            tensors = [*parts[rank], *self.model.buffers_(), self.model.vector()]
            self.peers.ask(rank, Request(method, names=[str(i) for i in range(len(parts[rank]))]), tensors)
        values = [named(method, getattr(self.evaluator, method)(parts[0]))]
        for rank in ranks:
            names, tensors = self.peers.answer(rank)
            values.append(dict(zip(names, tensors, strict=True)))
        return values


def named(method: str, values: Any) -> dict[str, Tensor]:
    """The metrics by name, or the outputs as `predictions` and `targets`."""
    return dict(zip(("predictions", "targets"), values, strict=True)) if method == "outputs" else values


class Peer:
    """Answers the requests of the main process.

    Args:
        engine: of this process.
        model: that the engine and the evaluator use.
        evaluator: of this process.
        device: of the engine.
    """

    def __init__(self, engine: Engine, model: FlatTask, evaluator: Evaluator, device: torch.device) -> None:
        self.engine = engine
        self.model = model
        self.evaluator = evaluator
        self.device = device
        self.share: Share | None = None

    @torch.no_grad()
    def answer(self, request: Request, tensors: list[Tensor]) -> tuple[list[str], list[Tensor]]:
        """The answer: the names of the tensors, where they have names, and tensors."""
        count = len(request.names)
        if request.round is None:
            *buffers, vector = tensors[count:]
            self._take_buffers(buffers)
            self.model.move(vector)
            training = self.model.task.training
            self.model.task.eval()
            values = named(request.method, getattr(self.evaluator, request.method)(tuple(tensors[:count])))
            self.model.task.train(training)
            return list(values), list(values.values())
        if request.begins:
            self._take_buffers(tensors[count:])
            self.share = Share(self.engine, *request.round)
        assert self.share is not None
        clients = torch.tensor(request.clients, dtype=torch.int64, device=self.device)
        rows = dict(zip(request.names, tensors[:count], strict=True))
        return [], self.share.call(request.method, clients, rows, request.options)

    def _take_buffers(self, values: list[Tensor]) -> None:
        for buffer, value in zip(self.model.buffers_(), values, strict=True):
            buffer.copy_(value)
