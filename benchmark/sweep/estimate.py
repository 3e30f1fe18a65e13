"""How long trials would take on this machine: an estimate, from a second's probe of each kind of work.

A trial's seconds are rounds x (loop + clients that compute x a client's round) + evaluations x one evaluation. Not in
it: what starting a trial takes, what a method does beside one pass of local steps (second passes, large memories), and
what else the machine does meanwhile.
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

from benchmark.config.analysis import Analysis
from benchmark.config.registry import read
from benchmark.config.trial import Evaluation, Trial
from benchmark.engines.threads import kernels_of_one_thread
from benchmark.federation.build import build
from benchmark.federation.module import Federation
from benchmark.federation.trainer import quiet, trainer_of
from benchmark.timing import synchronise
from participation import Participation, Population
from tasks.datasets import root, source_of

SECONDS = 1.0
"""That the rounds of a probe take, about."""

ROUND = 0.25
"""Seconds that one of them may take; so many clients are called."""

LOOKED_AT = 200
"""Rounds of a roll call in which the active are counted."""

BATCHES = 2
"""Of each split that a probe evaluates."""

UNTIMED = 6
"""Rounds before the first that counts: what is done but once, and a first look at what a client costs."""


@dataclass(frozen=True)
class Machine:
    """How trials are run here.

    Attributes:
        at_once: trials at the same time.
        threads: of torch in each; None for all.
        device: what `numerics.device: auto` means to them.
    """

    at_once: int
    threads: int | None
    device: Literal["auto", "cpu"]


INLINE = Machine(1, None, "auto")


def by_ray(gpus_per_trial: float = 0.0) -> Machine:
    """One trial a core, or as many as have their share of a GPU: see `benchmark.sweep.ray_executor`."""
    cores = os.cpu_count() or 1
    if not gpus_per_trial:
        return Machine(cores, 1, "cpu")
    return Machine(max(1, min(cores, int(torch.cuda.device_count() / gpus_per_trial))), 1, "auto")


@dataclass(frozen=True)
class Estimate:
    """Seconds of a trial's round, its clients' work included, and of one evaluation: before its last rounds, and among
    them."""

    round: float
    evaluation: float
    last_evaluation: float

    def seconds(self, rounds: int, evaluation: Evaluation) -> float:
        """Of a whole trial with its evaluations."""
        before, among = evaluation.counts(rounds)
        return rounds * self.round + before * self.evaluation + among * self.last_evaluation


@dataclass(frozen=True)
class Pace:
    """What a kind of work costs, in seconds: a round in which nobody answers, a client's round, and to evaluate a
    batch."""

    loop: float
    client: float
    batch: float


def estimates(
    trials: Sequence[Trial | Analysis], machine: Machine, watch: Callable[[list], Iterable] = iter
) -> dict[str, Estimate]:
    """By the trials' digests; analyses, which are made in one go, are left out.

    Args:
        trials: of any kind and number; each kind of work is probed once.
        machine: how they will be run.
        watch: goes through the kinds of work and shows how far it is.

    Raises:
        SettingError: a setting that a trial's task or participation model does not allow.
    """
    kinds: dict[str, list[Trial]] = {}
    for trial in trials:
        if isinstance(trial, Trial):
            kinds.setdefault(work(trial, machine.device).digest, []).append(trial)
    found = {}
    with threads(machine.threads), kernels_of_one_thread() as workers:
        for alike in watch(list(kinds.values())):
            stand_in = work(alike[0], machine.device)
            federation = build(stand_in, workers)
            data = federation.data
            population = Population(data.clients, 0, data.classes, data.histogram)
            clients = computing(alike, population)
            pace = probe(stand_in, federation, ceil(max(clients)))
            for trial, some in zip(alike, clients, strict=True):
                rounds = trial.rounds
                before, among = (
                    pace.batch * sum(len(data.evaluation(split)) for split in splits or data.splits)
                    for splits in (trial.evaluation.splits_at(0, rounds), trial.evaluation.splits_at(rounds, rounds))
                )
                found[trial.digest] = Estimate(pace.loop + some * pace.client, before, among)
    return found


def wall(seconds: Sequence[float], at_once: int) -> float:
    """How long trials of so many seconds take, a few at the same time."""
    return max(sum(seconds) / at_once, max(seconds, default=0.0))


def duration(seconds: float) -> str:
    """For people: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def missing(trials: Iterable[Trial | Analysis]) -> list[str]:
    """The data sets of trials that are not here."""
    tasks = sorted({trial.task.name for trial in trials if isinstance(trial, Trial)})
    sources = [source for source in map(source_of, tasks) if source is not None and source.missing(root())]
    return list(dict.fromkeys(source.name for source in sources))


def work(trial: Trial, device: Literal["auto", "cpu"] = "auto") -> Trial:
    """The trial that stands for all whose clients do the same work.

    Who answers when, the method, the seed and the number of rounds have no part in it; nor has the rate, which is small
    so that nothing overflows.
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
    """How many clients compute in a round of each trial: those who answer, or all where the method asks all."""
    heard: dict[str, float] = {}
    found = []
    for trial in trials:
        if trial.algorithm.build().properties.asks_all:
            found.append(float(population.clients))
            continue
        roll_call = Trial(
            task=trial.task, participation=trial.participation, algorithm=read("algorithm", "fedavg"), rounds=1
        ).digest
        if roll_call not in heard:
            model = trial.participation.build(population)
            heard[roll_call] = fmean(len(model.active(t)) for t in range(LOOKED_AT))
        found.append(heard[roll_call])
    return found


def probe(trial: Trial, federation: Federation, clients: int) -> Pace:
    """Some rounds of a federation and an evaluation, timed.

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
        trainer.fit(federation)  # which ends with an evaluation, the one that does not count
        trainer.validate(federation, verbose=False)
    batches = [len(federation.data.evaluation(split)) for split in federation.data.splits]
    return watch.pace(batches=sum(min(count, BATCHES) for count in batches))


class Rehearsal(Participation):
    """Some clients in even rounds, in turn, and nobody in odd ones.

    Args:
        clients: m.

    Attributes:
        some: how many the next even round calls.
    """

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.some = min(2, clients)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        some = 0 if t % 2 else self.some
        return np.sort((t // 2 * self.some + np.arange(some)) % self.clients)


class Stopwatch(Callback):
    """Times a rehearsal's rounds and an evaluation, and ends the rounds in time.

    Args:
        rehearsal: the roll call, which is told how many to call once it is known what a client costs.
        most: clients that it calls.
    """

    def __init__(self, rehearsal: Rehearsal, most: int) -> None:
        self.rehearsal = rehearsal
        self.most = min(max(1, most), rehearsal.clients)
        self.rounds: list[float] = []
        self.evaluation = 0.0

    def pace(self, batches: int) -> Pace:
        """What was found, with so many batches in the evaluation."""
        busy, empty = fmean(self.rounds[UNTIMED::2]), fmean(self.rounds[UNTIMED + 1 :: 2])
        return Pace(empty, max(0.0, busy - empty) / self.rehearsal.some, self.evaluation / batches)

    def on_train_start(self, *_: object) -> None:
        self.began = self.last = perf_counter()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        synchronise(federation.device.type)
        now = perf_counter()
        self.rounds.append(now - self.last)
        self.last = now
        done = len(self.rounds)
        if done == 3:  # a round like the first, but warm
            bearable = int(ROUND / max(self.rounds[2] / self.rehearsal.some, 1e-9))
            self.rehearsal.some = min(self.most, max(bearable, 1))
        trainer.should_stop = done > UNTIMED and done % 2 == 0 and now - self.began > SECONDS

    def on_validation_start(self, *_: object) -> None:
        self.last = perf_counter()

    def on_validation_end(self, trainer: Trainer, federation: LightningModule) -> None:
        synchronise(federation.device.type)
        self.evaluation = perf_counter() - self.last


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """While torch uses so many; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
