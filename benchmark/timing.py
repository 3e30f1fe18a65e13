"""What local work costs: the engines against a plain loop, in the same run.

The data are random images of a task's shape, so that nothing need be downloaded; what is computed is the same.
"""

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
"""Shape of an input, and the task's own model; ten classes each."""

LR = 0.01
POOL = 2048
"""Images that all clients share; what a client holds is but a list of rows."""


@dataclass(frozen=True)
class Case:
    """What is measured: a round in which `active` of `clients` take `steps` local steps on `batch` samples each."""

    task: str
    engine: str
    device: str
    clients: int
    active: int
    steps: int
    batch: int


@dataclass(frozen=True)
class Cost:
    """Repetitions of one measurement."""

    values: tuple[float, ...]

    def named(self, name: str) -> dict[str, float]:
        """Median and spread, as columns."""
        return {name: statistics.median(self.values), f"{name}_min": min(self.values), f"{name}_max": max(self.values)}


class Federated:
    """The clients of a case on its device, and both ways to do their work.

    Args:
        case: what is measured.
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
        # Two and a half minibatches a client: epochs end within a round, and end with a short minibatch.
        held = draw.integers(0, POOL, (case.clients, case.batch * 5 // 2))
        self.feed = Feed(self.task, samples, Minibatches(list(held), case.batch, seed=0))
        model_ = FlatTask(self.task)
        self.x = model_.vector()
        self.plain = Plain(self.task, self.feed, case.steps)
        with kernels_of_one_thread() as threads:
            self.engine = ENGINES[case.engine](model_, self.feed, LocalTraining(case.steps), threads)

    def flop(self) -> int:
        """Floating point operations of a client's products and convolutions in a round, forward and backward."""
        with FlopCounterMode(display=False) as counter:
            self.plainly(0, 1)
        return counter.get_total_flops()

    def active(self, t: int) -> Int[Tensor, "a"]:
        """Who answers in round t, ascending."""
        found = np.sort(stream(0, "bench active", t).choice(self.case.clients, self.case.active, replace=False))
        return torch.from_numpy(found).to(self.case.device)

    def by_engine(self, t: int) -> Float[Tensor, "a d"]:
        """A FedAvg round's local work."""
        with kernels_of_one_thread():
            return self.engine.round(t, LR).sgd(self.active(t), self.x.expand(self.case.active, -1))

    def plainly(self, t: int, most: int | None = None) -> Float[Tensor, "a d"]:
        """The same, client after client; of no more than `most` clients."""
        return self.plain.round(t, LR, self.active(t).tolist()[:most])


class Products:
    """What the machine is capable of: large matrix products, of which there is nothing faster to do arithmetic with.

    Args:
        device: where.
    """

    def __init__(self, device: str) -> None:
        n = 4096 if device == "cuda" else 1024
        self.a, self.b = (torch.rand(n, n, device=device) for _ in range(2))
        self.flop = 2 * n**3

    def multiply(self, t: int) -> None:
        torch.mm(self.a, self.b)


class Plain:
    """The loop of most research code: load the state, make an optimizer, train; one client after another.

    Args:
        task: the server's model.
        feed: the clients' minibatches.
        steps: K.
    """

    def __init__(self, task: Task, feed: Feed, steps: int) -> None:
        self.server = copy.deepcopy(task.state_dict())  # an engine moves the task itself about
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
                self.worker.loss(batch).backward()
                optimizer.step()
            ends.append(nn.utils.parameters_to_vector(self.worker.parameters()).detach())
        return torch.stack(ends)


def measure(cases: Sequence[Case], *, repeat: int, seconds: float, augment: bool) -> Iterator[dict[str, Any]]:
    """A row for each case, in the words of `rollcall bench --json`.

    Engine, plain loop and large matrix products take turns, so that a busy machine is equally busy for all. The floor
    is the time in which the machine would do a client's arithmetic at the rate of these products.

    Args:
        cases: what to measure.
        repeat: how often each.
        seconds: that a repetition lasts at least.
        augment: whether images are cropped and flipped.
    """
    loops: dict[tuple[str, str], Cost] = {}
    for case in cases:
        kind = case.engine, case.device
        if kind not in loops:
            loops[kind] = Cost(tuple(loop_rate(*kind, rounds=max(100, int(2000 * seconds))) for _ in range(repeat)))
        if case.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        rig = Federated(case, augment)
        some = min(case.active, 10)  # the plain loop's cost a client is the same for any number
        rig.by_engine(0)  # untimed: what is done but once, such as allocations and the choice of kernels
        memory = peak_memory_mb(case.device)
        rig.plainly(0, some)
        products, flop = Products(case.device), rig.flop()
        products.multiply(0)
        by_engine, plainly, floor = [], [], []
        for _ in range(repeat):
            rate = products.flop / _seconds_per_round(products.multiply, case.device, seconds / 4)
            floor.append(flop / rate * 1000)
            by_engine.append(_seconds_per_round(rig.by_engine, case.device, seconds) * 1000 / case.active)
            plainly.append(_seconds_per_round(partial(rig.plainly, most=some), case.device, seconds) * 1000 / some)
        yield {
            **vars(case),
            "augment": augment,
            **Cost(tuple(by_engine)).named("ms_per_client_round"),
            **Cost(tuple(plainly)).named("reference_ms_per_client_round"),
            **Cost(tuple(floor)).named("floor_ms_per_client_round"),
            "peak_memory_mb": memory,
            **loops[kind].named("loop_rounds_per_second"),
            "threads": torch.get_num_threads(),
            "device_name": torch.cuda.get_device_name() if case.device == "cuda" else platform.machine(),
        }


class Clock(Callback):
    """When each round of a trial ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_end(self, *_: object) -> None:
        self.times.append(perf_counter())


def loop_rate(engine: str, device: str, rounds: int) -> float:
    """Rounds a second of a whole trial whose local work is next to nothing: 100 quadratics in R^100, K = 1.

    With metrics every 50 rounds; over the second half, when what is done but once is done, such as recording kernels.
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
    """Of the GPU's memory since it was reset; on a CPU that of this process, ever."""
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
    """All combinations in which the active are among the clients.

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
        raise SettingError("device: 'cuda' is not allowed here, torch finds no GPU; must be auto or cpu")
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
    """Rounds 1, 2, ... for at least so long."""
    synchronise(device)
    begin, rounds, spent = perf_counter(), 0, 0.0
    while spent < seconds:
        rounds += 1
        run(rounds)
        synchronise(device)
        spent = perf_counter() - begin
    return spent / rounds


def synchronise(device: str) -> None:
    """Wait for what a GPU was told to do."""
    if device == "cuda":
        torch.cuda.synchronize()
