"""How long trials would take on this machine, estimated by running each kind of work for about a second.

seconds of a trial = rounds x (loop + computing clients x client) + evaluations x evaluation. The estimate leaves out
the start of a trial, what a method does besides one pass of local steps (a second pass, large memories), and the other
load of the machine.
"""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from statistics import fmean
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from lightning.pytorch import Callback, LightningModule, Trainer

from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.trial import Analysis, Evaluation, Trial
from rollcall.benchmark.engines import kernels_of_one_thread
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.trainer import quiet, trainer_of
from rollcall.benchmark.timing import seconds_per_round, synchronise
from rollcall.participation import Participation, Population
from rollcall.tasks.datasets import SOURCES, root

SECONDS, ROUND = 1.0, 0.25
"""The duration of a probe, about, and the most seconds of one of its rounds, which limit the clients that it calls."""

LOOPS, UNTIMED = 100, 6
"""Rounds without clients, and how many of them warm up."""

BATCHES = 2
"""Batches of each split that a probe evaluates."""

LOOKED_AT = 200
"""Rounds of a participation model in which the active clients are counted."""


class Pace(NamedTuple):
    """Seconds of a round without active clients, of a client's round, and of evaluating a batch."""

    loop: float
    client: float
    batch: float


def estimates(
    trials: Sequence[Trial | Analysis], watch: Callable[[list[list[Trial]]], Iterable[list[Trial]]] = iter
) -> dict[str, float]:
    """The seconds of each trial on one core, by digest. Analyses are left out, since they take next to no time.

    Each kind of work is probed once. `watch` iterates over the kinds, and may show the progress.
    """
    kinds: dict[str, list[Trial]] = {}
    for trial in trials:
        if isinstance(trial, Trial):
            kinds.setdefault(work(trial).digest, []).append(trial)
    result: dict[str, float] = {}
    with kernels_of_one_thread():  # a trial of a sweep has one core
        for alike in watch(list(kinds.values())):
            stand_in = work(alike[0])
            federation = build(stand_in)
            data = federation.data
            batches = {split: len(data.evaluation(split)) for split in data.splits}
            clients = computing(alike, Population(data.clients, 0, data.classes, data.histogram))
            pace = probe(stand_in, federation, ceil(max(clients)))
            for trial, count in zip(alike, clients, strict=True):
                seconds = trial.rounds * (pace.loop + count * pace.client)
                evaluation = trial.evaluation
                result[trial.digest] = seconds + pace.batch * sum(
                    batches[split]
                    for t in range(trial.rounds + 1)
                    if evaluation.due(t, trial.rounds)
                    for split in evaluation.splits_at(t, trial.rounds) or data.splits
                )
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
        rounds=10_000,  # more than a probe comes to
        evaluation=Evaluation(every=10_000),
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
        roll_call = trial.model_copy(update={"seed": 0, "rounds": 1})
        if trial.clock is None:
            roll_call = Trial(
                task=trial.task, participation=trial.participation, algorithm=read("algorithm", "fedavg"), rounds=1
            )
        if (kind := roll_call.digest) not in means:
            model = trial.participation.build(population) if trial.clock is None else build(roll_call).participation
            late = [model.late(t) if asks_all else None for t in range(LOOKED_AT)]
            means[kind] = fmean(len(model.active(t)) + (0 if one is None else len(one)) for t, one in enumerate(late))
        counts.append(means[kind])
    return counts


def probe(trial: Trial, federation: Federation, clients: int) -> Pace:
    """Time empty rounds, an evaluation, and the local work of so many clients, of a trial from `work`.

    Fewer clients are called where a round would take too long.
    """
    data, device = federation.data, federation.device
    holders = torch.from_numpy(np.flatnonzero(data.parts.sizes))
    federation.participation = empty = Empty(data.clients)

    def local_work(called: int) -> Callable[[int], object]:
        def run(t: int) -> object:
            ids = holders[(t * called + torch.arange(called)) % len(holders)].sort().values
            server = federation.server.detach().expand(called, -1)
            return federation.engine.round(t, 1e-3).sgd(ids.to(server.device), server)

        return run

    with quiet():
        trainer = trainer_of(trial, [empty], evaluation_batches=BATCHES)
        trainer.fit(federation)  # ends with an evaluation, which warms up and is not counted
        trainer.validate(federation, verbose=False)
    with trainer.precision_plugin.train_step_context():
        two = min(2, len(holders))
        local_work(two)(0)
        alone = seconds_per_round(local_work(two), device.type, 0.0) / two
        called = min(max(1, clients), max(1, int(ROUND / max(alone, 1e-9))), len(holders))
        local_work(called)(0)
        client = seconds_per_round(local_work(called), device.type, SECONDS) / called
    evaluated = sum(min(BATCHES, len(data.evaluation(split))) for split in data.splits)
    return Pace(fmean(np.diff(empty.ends)[UNTIMED:]), client, empty.evaluation / evaluated)


class Empty(Participation, Callback):
    """A roll call without clients. It notes the ends of its rounds and the seconds of the last evaluation."""

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.ends: list[float] = []

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        return np.empty(0, dtype=np.int64)

    def on_train_batch_end(self, trainer: Trainer, *_: object) -> None:
        self.ends.append(perf_counter())
        trainer.should_stop = len(self.ends) == LOOPS

    def on_validation_start(self, *_: object) -> None:
        self.began = perf_counter()

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        synchronise(federation.device.type)
        self.evaluation = perf_counter() - self.began
