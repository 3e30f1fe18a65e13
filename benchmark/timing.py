"""The cost of local work: the engines against a plain loop, on random images, measured in the same run."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rollcall.benchmark.engines import ENGINES, Feed, FlatTask, LocalTraining, kernels_of_one_thread
from rollcall.tasks import MODELS, Minibatches
from rollcall.tasks.images import Classification
from rollcall.tasks.streams import stream, torch_stream

WORKS = {"digits": ((1, 8, 8), "mlp"), "mnist": ((1, 28, 28), "linear"), "cifar10": ((3, 32, 32), "fedpbc_cifar10")}
"""By task: the shape of an input and the name of the model; each has ten classes."""

LR = 0.01
POOL = 2048
"""Images. All clients share them; a client holds a list of rows."""

REPETITIONS = 3


@dataclass(frozen=True)
class Case:
    """A round to measure: `active` of `clients` take `steps` local steps on `batch` samples each."""

    task: str
    engine: str
    device: str
    clients: int
    active: int
    steps: int
    batch: int


class Federated:
    """The clients of a case on its device, whose local work an engine or a plain loop computes."""

    def __init__(self, case: Case) -> None:
        shape, model = WORKS[case.task]
        with torch_stream(0, "init"):
            network = MODELS[model](shape, 10)
        task = Classification(network, (0.5,) * shape[0], (0.25,) * shape[0]).to(case.device)
        draw = stream(0, "bench")
        pixels = draw.integers(0, 256, (POOL, *shape), dtype=np.uint8)
        samples = tuple(torch.from_numpy(column).to(case.device) for column in (pixels, draw.integers(0, 10, POOL)))
        # Two and a half minibatches for each client: epochs end within a round, with a short minibatch.
        client_rows = draw.integers(0, POOL, (case.clients, case.batch * 5 // 2))
        self.case = case
        self.feed = Feed(task, samples, Minibatches(list(client_rows), case.batch, seed=0))
        flat = FlatTask(task)
        self.x = flat.vector()
        self.server = copy.deepcopy(task.state_dict())  # an engine changes the parameters of the task itself
        self.worker = copy.deepcopy(task)
        with kernels_of_one_thread() as threads:
            self.engine = ENGINES[case.engine](flat, self.feed, LocalTraining(case.steps), threads)

    def active(self, t: int) -> Int[Tensor, "a"]:
        """The active clients of round t, ascending."""
        ids = np.sort(stream(0, "bench active", t).choice(self.case.clients, self.case.active, replace=False))
        return torch.from_numpy(ids).to(self.case.device)

    def by_engine(self, t: int) -> Float[Tensor, "a d"]:
        """The local work of round t of FedAvg: the clients' models after K steps from the server's."""
        with kernels_of_one_thread():
            return self.engine.round(t, LR).sgd(self.active(t), self.x.expand(self.case.active, -1))

    def plainly(self, t: int, most: int | None = None) -> Float[Tensor, "a d"]:
        """The same, for at most `most` clients, by the loop of most research code: one client after another."""
        ends = []
        for client in self.active(t).tolist()[:most]:
            self.worker.load_state_dict(copy.deepcopy(self.server))
            optimizer = torch.optim.SGD(self.worker.parameters(), lr=LR)
            for step in range(t * self.case.steps, (t + 1) * self.case.steps):
                optimizer.zero_grad()
                self.worker.loss(self.feed.batch(client, step)).backward()  # type: ignore[no-untyped-call, unused-ignore]
                optimizer.step()
            ends.append(nn.utils.parameters_to_vector(self.worker.parameters()).detach())
        return torch.stack(ends)


def measure(case: Case, seconds: float) -> dict[str, Any]:
    """A row of `rollcall bench --json`: the median, minimum and maximum of `REPETITIONS` of at least that many seconds.

    Engine and plain loop alternate, so that other load slows both alike.
    """
    federated = Federated(case)
    few = min(case.active, 10)  # the plain loop costs the same per client for any number of clients
    ways: dict[str, tuple[Callable[[int], object], int]] = {
        "ms_per_client_round": (federated.by_engine, case.active),
        "reference_ms_per_client_round": (partial(federated.plainly, most=few), few),
    }
    for run, _ in ways.values():
        run(0)  # not timed: one-time work such as allocations and the choice of kernels
    row: dict[str, Any] = vars(case) | {"threads": torch.get_num_threads()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPETITIONS):
        for name, (run, clients) in ways.items():
            times[name].append(1000 * seconds_per_round(run, case.device, seconds) / clients)
    for name, values in times.items():
        row |= {name: median(values), f"{name}_min": min(values), f"{name}_max": max(values)}
    return row


def seconds_per_round(run: Callable[[int], object], device: str, seconds: float) -> float:
    """Seconds of `run(t)`, over t = 1, 2, ... for at least that many seconds, at least one round."""
    synchronise(device)
    begin, rounds, spent = perf_counter(), 0, 0.0
    while not rounds or spent < seconds:
        rounds += 1
        run(rounds)
        synchronise(device)
        spent = perf_counter() - begin
    return spent / rounds


def synchronise(device: str) -> None:
    """Wait until a GPU has finished its work."""
    if device == "cuda":
        torch.cuda.synchronize()
