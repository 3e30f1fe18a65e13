"""The time of local work: with each engine, beside a plain loop (`bench`); and so of trials (`show --estimate`)."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import ceil
from statistics import fmean, median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.digest import digest
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.benchmark.engines import ENGINES, Feed, FlatTask, LocalTraining, float32_products, kernels_of_one_thread
from rollcall.benchmark.federation.build import build, measured_splits
from rollcall.benchmark.federation.module import Federation
from rollcall.participation import Population
from rollcall.tasks import MODELS, Minibatches, evaluating
from rollcall.tasks.datasets import SOURCES, root
from rollcall.tasks.images import Classification
from rollcall.tasks.streams import stream, torch_stream

WORKS = {"digits": ((1, 8, 8), "mlp"), "mnist": ((1, 28, 28), "linear"), "cifar10": ((3, 32, 32), "fedpbc_cifar10")}
"""By task: the shape of an input and the name of the model; each has ten classes."""

LR = 0.01
POOL = 2048
"""Images. All clients share them; a client holds a list of rows."""

REPETITIONS = 3

SECONDS, ROUND = 1.0, 0.25
"""The duration of a probe, about, and the most seconds of one of its rounds, which limit the clients that it calls."""

LOOP = 1e-3
"""Seconds of a round without clients."""

BATCHES = 2
"""Batches of each split that a probe evaluates."""

LOOKED_AT = 200
"""Rounds of a participation model in which the active clients are counted."""


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
    row: dict[str, Any] = vars(case) | {"threads": torch.get_num_threads()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    with float32_products("highest"):
        for run, _ in ways.values():
            run(0)  # not timed: one-time work such as allocations and the choice of kernels
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


def estimates(
    trials: Sequence[Trial | Analysis], watch: Callable[[list[list[Trial]]], Iterable[list[Trial]]] = iter
) -> dict[str, float]:
    """The seconds of each trial on one core, by digest. Analyses are left out, since they take next to no time.

    seconds = rounds x (`LOOP` + computing clients x client) + batches of the evaluations x batch, where the seconds of
    a client and of a batch are measured, once for each kind of work. The estimate leaves out the start of a trial, what
    a method does besides one pass of local steps, and the other load of the machine. `watch` iterates over the kinds,
    and may show the progress.
    """
    kinds: dict[str, list[Trial]] = {}
    for trial in trials:
        if isinstance(trial, Trial):
            kinds.setdefault(work(trial).digest, []).append(trial)
    result: dict[str, float] = {}
    with kernels_of_one_thread():  # a trial of a sweep has one core
        for alike in watch(list(kinds.values())):
            stand_in = work(alike[0])
            federation = build(stand_in).to(stand_in.numerics.device)
            data = federation.data
            clients = computing(alike, Population(data.clients, 0, data.classes, data.histogram, data.names))
            client, batch = probe(federation, ceil(max(clients)))
            batches = {split: len(data.evaluation(split)) for split in data.splits}
            evaluated: dict[tuple[str, int], int] = {}  # trials of a grid are evaluated alike
            for trial, count in zip(alike, clients, strict=True):
                evaluation, rounds = trial.evaluation, trial.rounds
                key = evaluation.model_dump_json(include={"every", "at", "last", "splits"}), rounds
                if key not in evaluated:
                    measured_splits(trial, data)
                    due = (t for t in range(rounds + 1) if evaluation.due(t, rounds))
                    splits = (split for t in due for split in evaluation.splits_at(t, rounds) or data.splits)
                    evaluated[key] = sum(batches[split] for split in splits)
                result[trial.digest] = rounds * (LOOP + count * client) + evaluated[key] * batch
    return result


def wall(seconds: Sequence[float], at_once: int) -> float:
    """Seconds that the trials take together if `at_once` of them run at the same time."""
    return max(sum(seconds) / at_once, max(seconds, default=0.0))


def missing(trials: Iterable[Trial | Analysis]) -> list[str]:
    """The data sets that the trials need and that are not on this machine."""
    tasks = {trial.task.name for trial in trials if isinstance(trial, Trial)}
    return sorted(name for name in tasks & SOURCES.keys() if SOURCES[name].missing(root()))


def work(trial: Trial) -> Trial:
    """The trial that stands for all trials whose clients do the same work.

    The participation model, the method, the seed and the number of rounds are replaced, since the work does not depend
    on them. So is the learning rate: it is small, so that nothing overflows.
    """
    numerics = trial.numerics
    if numerics.device == "auto":
        numerics = numerics.model_copy(update={"device": "cpu"})
    return Trial(
        task=trial.task,
        algorithm=read("algorithm", "fedavg"),
        local=trial.local.model_copy(update={"lr": 1e-3, "schedule": read("schedule", "constant")}),
        rounds=1,
        numerics=numerics,
    )


def computing(trials: Sequence[Trial], population: Population) -> list[float]:
    """For each trial, the mean number of clients whose work an engine computes in a round: the active ones, or all.

    With a clock these are those in time, or all available ones: the work of clients that are late is not simulated.
    """
    means: dict[str, float] = {}
    counts = []
    for trial in trials:
        asks_all = trial.algorithm.build().properties.asks_all
        if asks_all and trial.clock is None:
            counts.append(float(population.clients))
            continue
        alike = trial.model_copy(update={"seed": 0})  # with a clock who is in time depends on all other settings
        kind = alike.digest if trial.clock else digest({"participation": trial.participation})
        if kind not in means:
            model = build(alike).participation if trial.clock else trial.participation.build(population)
            late = [model.late(t) if asks_all else None for t in range(LOOKED_AT)]
            means[kind] = fmean(len(model.active(t)) + (0 if one is None else len(one)) for t, one in enumerate(late))
        counts.append(means[kind])
    return counts


def probe(federation: Federation, clients: int) -> tuple[float, float]:
    """Seconds of a client's round where so many are called, and of the evaluation of a batch.

    Fewer clients are called where a round would take too long.
    """
    data, device = federation.data, federation.device
    holders = torch.from_numpy(np.flatnonzero(data.parts.sizes))
    federation.begin()

    def local_work(called: int) -> Callable[[int], object]:
        def run(t: int) -> object:
            ids = holders[(t * called + torch.arange(called)) % len(holders)].sort().values
            server = federation.server.detach().expand(called, -1)
            return federation.engine.round(t, 1e-3).sgd(ids.to(device), server)

        run(0)  # not timed: one-time work such as allocations and the choice of kernels
        return run

    def evaluate(t: int) -> None:
        with torch.no_grad(), evaluating(federation.model.task):
            for split in data.splits:
                for batch in islice(data.evaluation(split), BATCHES):
                    federation.evaluator.metrics(tuple(column.to(device) for column in batch))

    two = min(2, len(holders))
    alone = seconds_per_round(local_work(two), device.type, 0.0) / two
    called = min(max(1, clients), max(1, int(ROUND / max(alone, 1e-9))), len(holders))
    client = seconds_per_round(local_work(called), device.type, SECONDS) / called
    evaluate(0)
    evaluated = sum(min(BATCHES, len(data.evaluation(split))) for split in data.splits)
    return client, seconds_per_round(evaluate, device.type, 0.0) / evaluated
