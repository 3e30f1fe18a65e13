"""The cost of local work: the engines against a plain loop, on random images, measured in the same run."""

import copy
import platform
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.engines import ENGINES, Feed, FlatTask, LocalTraining, kernels_of_one_thread
from rollcall.tasks import MODELS, Minibatches
from rollcall.tasks.images import Classification
from rollcall.tasks.streams import stream, torch_stream

WORKS = {"digits": ((1, 8, 8), "mlp"), "mnist": ((1, 28, 28), "linear"), "cifar10": ((3, 32, 32), "fedpbc_cifar10")}
"""By task: the shape of an input and the name of the model; each has ten classes."""

LR = 0.01
POOL = 2048
"""Images. All clients share them; a client holds a list of rows."""


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


def measure(cases: Sequence[Case], *, repeat: int, seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each case, as `rollcall bench --json` prints it: medians, minima and maxima of the repetitions.

    Engine and plain loop alternate, so that other load slows both alike.

    Args:
        cases: what to measure.
        repeat: repetitions of each measurement.
        seconds: the least duration of a repetition.
    """
    for case in cases:
        if case.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        federated = Federated(case)
        federated.by_engine(0)  # not timed: one-time work such as allocations and the choice of kernels
        memory = peak_memory_mb(case.device)
        few = min(case.active, 10)  # the plain loop costs the same per client for any number of clients
        federated.plainly(0, few)
        ways: dict[str, tuple[Callable[[int], object], int]] = {
            "ms_per_client_round": (federated.by_engine, case.active),
            "reference_ms_per_client_round": (partial(federated.plainly, most=few), few),
        }
        columns: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeat):
            for name, (run, clients) in ways.items():
                columns[name].append(1000 * seconds_per_round(run, case.device, seconds) / clients)
        yield {
            **vars(case),
            **{name: median(values) for name, values in columns.items()},
            **{f"{name}_min": min(values) for name, values in columns.items()},
            **{f"{name}_max": max(values) for name, values in columns.items()},
            "peak_memory_mb": memory,
            "threads": torch.get_num_threads(),
            "device_name": torch.cuda.get_device_name() if case.device == "cuda" else platform.machine(),
        }


def seconds_per_round(run: Callable[[int], object], device: str, seconds: float) -> float:
    """Seconds of `run(t)`, over t = 1, 2, ... for at least that many seconds."""
    synchronise(device)
    begin, rounds, spent = perf_counter(), 0, 0.0
    while spent < seconds:
        rounds += 1
        run(rounds)
        synchronise(device)
        spent = perf_counter() - begin
    return spent / rounds


def peak_memory_mb(device: str) -> float:
    """The peak memory of the GPU since its last reset; on a CPU, of this process since its start."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2 ** (20 if sys.platform == "darwin" else 10)


def synchronise(device: str) -> None:
    """Wait until a GPU has finished its work."""
    if device == "cuda":
        torch.cuda.synchronize()


def grid(
    task: str,
    engines: Sequence[str],
    device: str,
    clients: Sequence[int],
    active: Sequence[int],
    steps: int,
    batch: int,
) -> list[Case]:
    """All combinations with no more active clients than clients."""
    for engine in engines:
        if engine not in ENGINES:
            raise SettingError(f"engine: {engine!r} is not allowed; must be one of {', '.join(ENGINES)}")
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError("device: 'cuda' needs a GPU, but torch finds no GPU; use auto or cpu")
    combined = product(clients, active, engines)
    cases = [Case(task, engine, device, m, a, steps, batch) for m, a, engine in combined if 1 <= a <= m]
    if not cases:
        raise SettingError(f"active: {min(active)} is not allowed; must be in 1 to {max(clients)}, the clients")
    return cases
