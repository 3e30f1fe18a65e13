"""How long trials would take on this machine, estimated by running each kind of work for about a second.

seconds of a trial = rounds x (loop + computing clients x client) + evaluations x evaluation. The estimate leaves out
the start of a trial, what a method does besides one pass of local steps (a second pass, large memories), and the other
load of the machine.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from statistics import fmean
from time import perf_counter
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from lightning.pytorch import Callback, LightningModule, Trainer

from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.trial import Evaluation, Trial
from rollcall.benchmark.engines import kernels_of_one_thread
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.trainer import quiet, trainer_of
from rollcall.benchmark.timing import synchronise
from rollcall.participation import Participation, Population
from rollcall.tasks.datasets import root, source_of

SECONDS = 1.0
"""Duration of a probe, about."""

ROUND = 0.25
"""Most seconds of one round of a probe; it limits how many clients are called."""

LOOKED_AT = 200
"""Rounds of a participation model in which the active clients are counted."""

BATCHES = 2
"""Batches of each split that a probe evaluates."""

UNTIMED = 6
"""Rounds before the first timed one: they warm up, and show roughly what a client costs."""


@dataclass(frozen=True)
class Machine:
    """How trials are run on this machine.

    Attributes:
        at_once: trials at the same time.
        threads: torch threads of each trial; None for all.
        device: the meaning of `numerics.device: auto`.
    """

    at_once: int
    threads: int | None
    device: Literal["auto", "cpu"]


INLINE = Machine(1, None, "auto")


def by_ray(gpus_per_trial: float = 0.0) -> Machine:
    """As `rollcall.benchmark.sweep.ray_executor` runs trials: one for each core, or as many as fit on the GPUs."""
    cores = os.cpu_count() or 1
    if not gpus_per_trial:
        return Machine(cores, 1, "cpu")
    return Machine(max(1, min(cores, int(torch.cuda.device_count() / gpus_per_trial))), 1, "auto")


@dataclass(frozen=True)
class Estimate:
    """Seconds of a round with its clients' work, of an evaluation, and of an evaluation in the last rounds."""

    round: float
    evaluation: float
    last_evaluation: float

    def seconds(self, rounds: int, evaluation: Evaluation) -> float:
        """Seconds of a whole trial with its evaluations."""
        before, among = evaluation.counts(rounds)
        return rounds * self.round + before * self.evaluation + among * self.last_evaluation


@dataclass(frozen=True)
class Pace:
    """Seconds of a kind of work: of a round without active clients, of a client's round, of evaluating a batch."""

    loop: float
    client: float
    batch: float


def estimates(
    trials: Sequence[Trial | Analysis],
    machine: Machine,
    watch: Callable[[list[list[Trial]]], Iterable[list[Trial]]] = iter,
) -> dict[str, Estimate]:
    """The estimate of each trial, by digest. Analyses are left out, since they take next to no time.

    Args:
        trials: each kind of work among them is probed once.
        machine: how they will be run.
        watch: iterates over the kinds of work, and may show the progress.

    Raises:
        SettingError: a task or a participation model does not allow one of its settings.
    """
    kinds: dict[str, list[Trial]] = {}
    for trial in trials:
        if isinstance(trial, Trial):
            kinds.setdefault(work(trial, machine.device).digest, []).append(trial)
    result = {}
    with threads(machine.threads), kernels_of_one_thread() as workers:
        for alike in watch(list(kinds.values())):
            stand_in = work(alike[0], machine.device)
            federation = build(stand_in, workers)
            data = federation.data
            population = Population(data.clients, 0, data.classes, data.histogram)
            clients = computing(alike, population)
            pace = probe(stand_in, federation, ceil(max(clients)))
            for trial, count in zip(alike, clients, strict=True):
                rounds = trial.rounds
                before, among = (
                    pace.batch * sum(len(data.evaluation(split)) for split in splits or data.splits)
                    for splits in (trial.evaluation.splits_at(0, rounds), trial.evaluation.splits_at(rounds, rounds))
                )
                result[trial.digest] = Estimate(pace.loop + count * pace.client, before, among)
    return result


def wall(seconds: Sequence[float], at_once: int) -> float:
    """Seconds that the trials take together if `at_once` of them run at the same time."""
    return max(sum(seconds) / at_once, max(seconds, default=0.0))


def missing(trials: Iterable[Trial | Analysis]) -> list[str]:
    """The data sets that the trials need and that are not on this machine."""
    tasks = sorted({trial.task.name for trial in trials if isinstance(trial, Trial)})
    sources = [source for source in map(source_of, tasks) if source is not None and source.missing(root())]
    return list(dict.fromkeys(source.name for source in sources))


def work(trial: Trial, device: Literal["auto", "cpu"] = "auto") -> Trial:
    """The trial that stands for all trials whose clients do the same work.

    The participation model, the method, the seed and the number of rounds are replaced, since the work does not depend
    on them. So is the learning rate: it is small, so that nothing overflows.
    """
    numerics = trial.numerics
    if numerics.device == "auto":
        numerics = numerics.model_copy(update={"device": device})
    return Trial(
        task=trial.task,
        algorithm=read("algorithm", "fedavg"),
        local=trial.local.model_copy(update={"lr": 1e-3, "schedule": read("schedule", "constant")}),
        rounds=10_000,  # more than a probe comes to
        evaluation=Evaluation(every=10_000),
        numerics=numerics,
    )


def computing(trials: Sequence[Trial], population: Population) -> list[float]:
    """For each trial, the mean number of clients that compute in a round: the active ones, or all."""
    active: dict[str, float] = {}
    counts = []
    for trial in trials:
        if trial.algorithm.build().properties.asks_all:
            counts.append(float(population.clients))
            continue
        roll_call = Trial(
            task=trial.task, participation=trial.participation, algorithm=read("algorithm", "fedavg"), rounds=1
        ).digest
        if roll_call not in active:
            model = trial.participation.build(population)
            active[roll_call] = fmean(len(model.active(t)) for t in range(LOOKED_AT))
        counts.append(active[roll_call])
    return counts


def probe(trial: Trial, federation: Federation, clients: int) -> Pace:
    """Time some rounds of a federation and an evaluation.

    Args:
        trial: from `work`.
        federation: built from it.
        clients: how many compute in a round; fewer are called where that would take too long.
    """
    rehearsal = Rehearsal(federation.data.clients)
    federation.participation = rehearsal
    watch = Stopwatch(rehearsal, clients)
    with quiet():
        trainer = trainer_of(trial, [watch], evaluation_batches=BATCHES)
        trainer.fit(federation)  # ends with an evaluation, which warms up and is not counted
        trainer.validate(federation, verbose=False)
    batches = [len(federation.data.evaluation(split)) for split in federation.data.splits]
    return watch.pace(batches=sum(min(count, BATCHES) for count in batches))


class Rehearsal(Participation):
    """Participation for a probe: some clients, in turn, in even rounds, and none in odd rounds.

    Args:
        clients: m.

    Attributes:
        called: how many clients the next even round calls.
    """

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.called = min(2, clients)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        called = 0 if t % 2 else self.called
        return np.sort((t // 2 * self.called + np.arange(called)) % self.clients)


class Stopwatch(Callback):
    """Times the rounds of a probe and an evaluation, and ends the probe after about a second.

    Args:
        rehearsal: its participation; how many clients it calls is set once their cost is known.
        most: the most clients that it calls.
    """

    def __init__(self, rehearsal: Rehearsal, most: int) -> None:
        self.rehearsal = rehearsal
        self.most = min(max(1, most), rehearsal.clients)
        self.rounds: list[float] = []
        self.evaluation = 0.0

    def pace(self, batches: int) -> Pace:
        """The measured pace, given the number of batches in the evaluation."""
        busy, empty = fmean(self.rounds[UNTIMED::2]), fmean(self.rounds[UNTIMED + 1 :: 2])
        return Pace(empty, max(0.0, busy - empty) / self.rehearsal.called, self.evaluation / batches)

    def on_train_start(self, *_: object) -> None:
        self.began = self.last = perf_counter()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        synchronise(federation.device.type)
        now = perf_counter()
        self.rounds.append(now - self.last)
        self.last = now
        done = len(self.rounds)
        if done == 3:  # a round like the first, but warm
            bearable = int(ROUND / max(self.rounds[2] / self.rehearsal.called, 1e-9))
            self.rehearsal.called = min(self.most, max(bearable, 1))
        trainer.should_stop = done > UNTIMED and done % 2 == 0 and now - self.began > SECONDS

    def on_validation_start(self, *_: object) -> None:
        self.last = perf_counter()

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        synchronise(federation.device.type)
        self.evaluation = perf_counter() - self.last


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Set the number of torch threads inside a `with` block; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
