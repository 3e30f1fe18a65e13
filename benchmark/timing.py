"""Benchmark of local work: the engines against a plain loop, on random images, measured in the same run."""

import copy
import platform
import resource
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from lightning.pytorch import Callback
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmark.config.errors import SettingError
from benchmark.engines import ENGINES, Feed, FlatTask, LocalTraining
from benchmark.engines.threads import kernels_of_one_thread
from benchmark.federation.simulation import simulate
from tasks import AUGMENTATIONS, MODELS, Minibatches, Task
from tasks.images import Classification
from tasks.streams import stream, torch_stream

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


@dataclass(frozen=True)
class Cost:
    """The repetitions of one measurement."""

    values: tuple[float, ...]

    def named(self, name: str) -> dict[str, float]:
        """Median, minimum and maximum, as columns."""
        return {name: statistics.median(self.values), f"{name}_min": min(self.values), f"{name}_max": max(self.values)}


class Federated:
    """The clients of a case on its device, whose local work an engine or a plain loop computes.

    Args:
        case: what to measure.
        augment: whether images are cropped and flipped.
    """

    def __init__(self, case: Case, augment: bool) -> None:
        shape, model = WORKS[case.task]
        with torch_stream(0, "init"):
            network = MODELS[model](shape, 10)
        crop = AUGMENTATIONS["crop_flip"](0) if augment else None
        self.case = case
        self.task: Task = Classification(network, (0.5,) * shape[0], (0.25,) * shape[0], augmentation=crop)
        self.task.to(case.device)
        draw = stream(0, "bench")
        pixels = draw.integers(0, 256, (POOL, *shape), dtype=np.uint8)
        samples = tuple(torch.from_numpy(column).to(case.device) for column in (pixels, draw.integers(0, 10, POOL)))
        # Two and a half minibatches for each client: epochs end within a round, with a short minibatch.
        client_rows = draw.integers(0, POOL, (case.clients, case.batch * 5 // 2))
        self.feed = Feed(self.task, samples, Minibatches(list(client_rows), case.batch, seed=0))
        model_flat = FlatTask(self.task)
        self.x = model_flat.vector()
        self.plain = Plain(self.task, self.feed, case.steps)
        with kernels_of_one_thread() as threads:
            self.engine = ENGINES[case.engine](model_flat, self.feed, LocalTraining(case.steps), threads)

    def flop(self) -> int:
        """Floating point operations of one client's products and convolutions in a round, forward and backward."""
        with FlopCounterMode(display=False) as counter:
            self.plainly(0, 1)
        return int(counter.get_total_flops())

    def active(self, t: int) -> Int[Tensor, "a"]:
        """The active clients of round t, ascending."""
        ids = np.sort(stream(0, "bench active", t).choice(self.case.clients, self.case.active, replace=False))
        return torch.from_numpy(ids).to(self.case.device)

    def by_engine(self, t: int) -> Float[Tensor, "a d"]:
        """The local work of a round of FedAvg."""
        with kernels_of_one_thread():
            return self.engine.round(t, LR).sgd(self.active(t), self.x.expand(self.case.active, -1))

    def plainly(self, t: int, most: int | None = None) -> Float[Tensor, "a d"]:
        """The same by the plain loop, for at most `most` clients."""
        return self.plain.round(t, LR, self.active(t).tolist()[:most])


class Products:
    """Large matrix products: the fastest arithmetic that the machine can do.

    Args:
        device: of the matrices.
    """

    def __init__(self, device: str) -> None:
        n = 4096 if device == "cuda" else 1024
        self.a, self.b = (torch.rand(n, n, device=device) for _ in range(2))
        self.flop = 2 * n**3

    def multiply(self, t: int) -> None:
        """One product."""
        torch.mm(self.a, self.b)


class Plain:
    """The loop of most research code: load the state, make an optimizer, train; one client after another.

    Args:
        task: the server's model.
        feed: the clients' minibatches.
        steps: K.
    """

    def __init__(self, task: Task, feed: Feed, steps: int) -> None:
        self.server = copy.deepcopy(task.state_dict())  # an engine changes the parameters of the task itself
        self.worker = copy.deepcopy(task)
        self.feed = feed
        self.steps = steps

    def round(self, t: int, lr: float, clients: Sequence[int]) -> Float[Tensor, "a d"]:
        """The clients' models after K steps from the server's."""
        ends = []
        for client in clients:
            self.worker.load_state_dict(copy.deepcopy(self.server))
            optimizer = torch.optim.SGD(self.worker.parameters(), lr=lr)
            for step in range(t * self.steps, (t + 1) * self.steps):
                batch = self.feed.batch(client, step)
                optimizer.zero_grad()
                self.worker.loss(batch).backward()  # type: ignore[no-untyped-call, unused-ignore]
                optimizer.step()
            ends.append(nn.utils.parameters_to_vector(self.worker.parameters()).detach())
        return torch.stack(ends)


def measure(cases: Sequence[Case], *, repeat: int, seconds: float, augment: bool) -> Iterator[dict[str, Any]]:
    """A row for each case, as `rollcall bench --json` prints it.

    Engine, plain loop and large matrix products alternate, so that other load slows all three alike. The floor is the
    time that a client's arithmetic would take at the rate of the matrix products.

    Args:
        cases: what to measure.
        repeat: repetitions of each measurement.
        seconds: the least duration of a repetition.
        augment: whether images are cropped and flipped.
    """
    loops: dict[tuple[str, str], Cost] = {}
    for case in cases:
        kind = case.engine, case.device
        if kind not in loops:
            loops[kind] = Cost(tuple(loop_rate(*kind, rounds=max(100, int(2000 * seconds))) for _ in range(repeat)))
        if case.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        federated = Federated(case, augment)
        federated.by_engine(0)  # not timed: one-time work such as allocations and the choice of kernels
        memory = peak_memory_mb(case.device)
        engine, reference, floor = _alternating(federated, repeat, seconds)
        yield {
            **vars(case),
            "augment": augment,
            **engine.named("ms_per_client_round"),
            **reference.named("reference_ms_per_client_round"),
            **floor.named("floor_ms_per_client_round"),
            "peak_memory_mb": memory,
            **loops[kind].named("loop_rounds_per_second"),
            "threads": torch.get_num_threads(),
            "device_name": torch.cuda.get_device_name() if case.device == "cuda" else platform.machine(),
        }


def _alternating(federated: Federated, repeat: int, seconds: float) -> tuple[Cost, Cost, Cost]:
    """Milliseconds per client and round: of the engine, of the plain loop, and the floor. See `measure`."""
    case = federated.case
    few = min(case.active, 10)  # the plain loop costs the same per client for any number of clients
    federated.plainly(0, few)
    products, flop = Products(case.device), federated.flop()
    products.multiply(0)
    engine, reference, floor = [], [], []
    for _ in range(repeat):
        rate = products.flop / _seconds_per_round(products.multiply, case.device, seconds / 4)
        floor.append(flop / rate * 1000)
        engine.append(_seconds_per_round(federated.by_engine, case.device, seconds) * 1000 / case.active)
        reference.append(_seconds_per_round(partial(federated.plainly, most=few), case.device, seconds) * 1000 / few)
    return Cost(tuple(engine)), Cost(tuple(reference)), Cost(tuple(floor))


class Clock(Callback):
    """Records when each round of a trial ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_end(self, *_: object) -> None:
        self.times.append(perf_counter())


def loop_rate(engine: str, device: str, rounds: int) -> float:
    """Rounds per second of a trial with almost no local work: 100 quadratics in R^100, K = 1.

    It evaluates every 50 rounds. Only the second half counts: the first contains one-time work such as tracing kernels.
    """
    clock = Clock()
    trial = {
        "task": {"name": "quadratic", "targets": stream(0, "bench").normal(size=(100, 100))},
        "participation": {"name": "bernoulli", "probability": 0.1},
        "algorithm": "fedavg",
        "rounds": rounds,
        "evaluation": {"every": 50},
        "numerics": {"engine": engine, "device": device},
    }
    simulate(trial, callbacks=[clock])
    half = rounds // 2
    return half / (clock.times[-1] - clock.times[-1 - half])


def peak_memory_mb(device: str) -> float:
    """The peak memory of the GPU since its last reset; on a CPU, of this process since its start."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2 ** (20 if sys.platform == "darwin" else 10)


def grid(
    task: str,
    engines: Sequence[str],
    device: str,
    clients: Sequence[int],
    active: Sequence[int],
    steps: Sequence[int],
    batch: Sequence[int],
) -> list[Case]:
    """All combinations with no more active clients than clients.

    Raises:
        SettingError: a value that is not allowed, or no combination.
    """
    if task not in WORKS:
        raise SettingError(f"task: {task!r} is not allowed; must be one of {', '.join(WORKS)}")
    for engine in engines:
        if engine not in ENGINES:
            raise SettingError(f"engine: {engine!r} is not allowed; must be one of {', '.join(ENGINES)}")
    for name, values in {"clients": clients, "active": active, "steps": steps, "batch": batch}.items():
        for value in values:
            if value < 1:
                raise SettingError(f"{name}: {value} is not allowed; must be at least 1")
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError("device: 'cuda' needs a GPU, but torch finds no GPU; use auto or cpu")
    cases = [
        Case(task, engine, device, m, a, K, b)
        for m in clients
        for a in active
        for K in steps
        for b in batch
        for engine in engines
        if a <= m
    ]
    if not cases:
        raise SettingError(f"active: {min(active)} is not allowed; must be at most {max(clients)}, the clients")
    return cases


def _seconds_per_round(run: Callable[[int], object], device: str, seconds: float) -> float:
    """Seconds per round, over rounds 1, 2, ... for at least that many seconds."""
    synchronise(device)
    begin, rounds, spent = perf_counter(), 0, 0.0
    while spent < seconds:
        rounds += 1
        run(rounds)
        synchronise(device)
        spent = perf_counter() - begin
    return spent / rounds


def synchronise(device: str) -> None:
    """Wait until a GPU has finished its work."""
    if device == "cuda":
        torch.cuda.synchronize()
