"""The study of a search: propose samples for every cell, run them rung by rung, keep their scores.

All trials of a rung, of all cells, run in one sweep. Nothing is read but the run folders, so a search that was killed
repeats its decisions, skips the finished trials, and ends with the same answer.

Schedulers decide which samples of a cell get more rounds. They compare samples of one cell after equal numbers of
rounds. `asha` is successive halving: of the samples that reached a rung, the best third goes on to the next one. A rung
is finished before samples are promoted from it (synchronous), so the answer does not depend on which trial ends first.
`median` lets a sample go on unless it is worse than the median of its rung. `none` runs every sample to the end.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, zip_longest
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.search.cells import ETA, Cell, Scheduler
from rollcall.benchmark.search.space import grid, random_samples, shuffled
from rollcall.benchmark.sweep.estimate import wall
from rollcall.benchmark.sweep.jobs import Job, check, check_metrics
from rollcall.benchmark.sweep.times import read_time

BATCH = 4
"""The number of samples of a cell that are proposed, and run, at the same time with a budget or TPE."""

INSTALL_OPTUNA = "pip install '.[tune]'"


@dataclass
class Sample:
    """A sample of a cell.

    Attributes:
        cell: the name of the cell.
        index: its number in the cell, from 0.
        settings: by dotted name.
        batch: the number of its batch, from 0; samples of a batch are proposed, and run, at the same time.
        scores: after each rung that it reached, by rounds: for each seed, the mean over the places of the cell.
        gradients: that its clients computed.
        trial_seconds: that each of its trials took.
        error: of a failed sample.
    """

    cell: str
    index: int
    settings: dict[str, Any]
    batch: int = 0
    scores: dict[int, dict[int, float]] = field(default_factory=dict)
    gradients: float = 0.0
    trial_seconds: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def rounds(self) -> int:
        """The highest rung that it reached; 0 for none."""
        return max(self.scores, default=0)

    @property
    def score(self) -> float:
        """The mean over seeds after its highest rung."""
        return fmean(self.scores[self.rounds].values()) if self.scores else math.nan

    def state(self, last: int) -> str:
        """`finished`, `failed`, or `stopped` before the last rung."""
        if self.error:
            return "failed"
        return "finished" if self.rounds >= last else "stopped"


def measure(sample: Sample, jobs: Sequence[Job], rounds: int, metric: Metric, share: float) -> None:
    """Add the score of a sample at a rung, or its error, from the run folders of its trials.

    Args:
        sample: to add it to.
        jobs: its trials.
        rounds: of the rung.
        metric: of the search.
        share: of the rounds; the score is the mean over the evaluations in this last share of them.

    Raises:
        SettingError: a run does not record the metric, or has no evaluation in these rounds.
    """
    by_seed: dict[int, list[float]] = {}
    sample.gradients, sample.trial_seconds = 0.0, []
    for job in jobs:
        status, history = job.folder.status, job.folder.history()
        sample.trial_seconds.append(status.get("seconds", 0.0))
        rows = history[history["round"] <= rounds]
        if len(rows):
            sample.gradients += float(rows["cost/gradients"].iloc[-1])
        if not job.finished:
            sample.error = str(status.get("error") or status.get("state", "absent"))
            continue
        if metric.column not in rows:
            columns = ", ".join(str(name) for name in rows.columns if not str(name).startswith(("round", "cost/")))
            raise SettingError(f"metric: {metric.column!r} is not allowed; must be measured: {columns}")
        first = min(rounds - share * rounds, rounds - 1)
        window = rows[rows["round"] > first]
        if window.empty:
            raise SettingError(
                f"{job.folder.path}: metrics.jsonl has no evaluation after round {first:g} up to round {rounds}. "
                "Remove this folder, then rerun the command"
            )
        value = float(window[metric.column].mean(skipna=False))
        if not math.isfinite(value):
            sample.error = f"diverged: {metric.column} is {value}"
        by_seed.setdefault(job.trial.seed, []).append(value)
    if not sample.error:
        sample.scores[rounds] = {seed: fmean(values) for seed, values in by_seed.items()}


def promoted(scores: Mapping[int, float], scheduler: Scheduler) -> list[int]:
    """The samples of a rung that go on, from the best to the worst; of equal ones, the first drawn comes first.

    Args:
        scores: of the samples that reached the rung without failing, by index; higher ones are better.
        scheduler: decides how many go on: with `asha` the best third, at least one; with `median` those that are not
            worse than the median.
    """
    ranked = sorted(scores, key=lambda index: (-scores[index], index))
    if scheduler == "asha":
        return ranked[: max(1, len(scores) // ETA)]
    if scheduler == "median" and scores:
        middle = median(scores.values())
        return [index for index in ranked if scores[index] >= middle]
    return ranked


@dataclass(frozen=True)
class Budget:
    """The most that a search may cost: seconds for all cells together, or client gradients for each cell.

    Samples are proposed in batches of equal size for all cells. A batch starts only if the one before would fit again.
    The costs are read from the run folders, so a rerun ends with the same samples.

    Attributes:
        amount: in `unit`.
        unit: `seconds` of all cells together, or `gradients` of each cell.
        at_once: trials that run at the same time; a batch counts with the seconds that it takes as a whole.
    """

    amount: float
    unit: Literal["seconds", "gradients"]
    at_once: int = 1

    @classmethod
    def read(cls, text: str, at_once: int) -> "Budget":
        """The budget that a user wrote: a time such as `2h`, or client gradients such as `5e6gradients`.

        Raises:
            SettingError: the text has neither form.
        """
        match = re.fullmatch(r"([0-9.e+]+) *gradients", text)
        try:
            amount = float(match[1]) if match else 0.0
        except ValueError:
            amount = 0.0
        if amount > 0:
            return cls(amount, "gradients")
        try:
            return cls(read_time(text), "seconds", at_once)
        except SettingError as error:
            raise SettingError(f"{error}, or client gradients, such as 5e6gradients") from None

    def cut(
        self, proposals: Mapping[str, list[dict[str, Any]]], samples: Mapping[str, Sequence[Sample]]
    ) -> dict[str, list[dict[str, Any]]]:
        """The next batch of each cell; none for a cell whose budget is spent. The first batch always runs."""
        if self.unit == "gradients":
            return {name: batch[:BATCH] if self._fits([samples[name]]) else [] for name, batch in proposals.items()}
        size = BATCH if self._fits(list(samples.values())) else 0
        return {name: batch[:size] for name, batch in proposals.items()}

    def _fits(self, cells: Sequence[Sequence[Sample]]) -> bool:
        """Whether as much as the last batch of these cells cost is left."""
        every = [sample for samples in cells for sample in samples]
        batches = ([one for one in every if one.batch == batch] for batch in {one.batch for one in every})
        last = self._cost([sample for samples in cells for sample in samples[-BATCH:]])
        return not every or sum(map(self._cost, batches)) + last <= self.amount

    def _cost(self, batch: Sequence[Sample]) -> float:
        """The cost of a batch; seconds are at least those of its longest trial, however many trials run at once."""
        if self.unit == "gradients":
            return sum(sample.gradients for sample in batch)
        return wall([seconds for sample in batch for seconds in sample.trial_seconds], self.at_once)


Propose = Callable[[Cell, list[Sample]], list[dict[str, Any]]]
"""The next samples of a cell, from those before; none at the end."""

Execute = Callable[[Sequence[Job]], None]
"""Runs jobs to their end; failed ones are in their folders. Raises `Interrupted` if some have not ended."""


def proposals(search: str, seed: int, count: int, metric: Metric, may_end_early: bool = False) -> Propose:
    """The strategy with this name: `random`, `grid` or `optuna`.

    Args:
        search: the name.
        seed: of the search.
        count: samples of each cell; a grid has its own.
        metric: that the samples are judged by.
        may_end_early: whether a budget may end the search; a grid is then tried in random order, so that a search that
            ends early has tried values of the whole space.

    Raises:
        SettingError: there is no such strategy, or its package is not installed.
    """
    if search == "optuna":
        if not find_spec("optuna"):
            raise SettingError(f"--search optuna needs Optuna: {INSTALL_OPTUNA}")
        from rollcall.benchmark.search.tpe import Tpe

        return Tpe(seed, count, metric)
    if search not in ("random", "grid"):
        raise SettingError(f"search: {search!r} is not allowed; must be random or optuna")

    def propose(cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
        if search == "random":
            return random_samples(cell.space, seed, cell.name, count)[len(samples) :]
        points = grid(cell.space)
        return (shuffled(points, seed, cell.name) if may_end_early else points)[len(samples) :]

    return propose


@dataclass(frozen=True)
class Search:
    """How samples are run and judged.

    Attributes:
        folder: the name of the experiment in the store that holds the trials of the search.
        store: folder of the run folders.
        metric: that the samples are judged by, and its better end.
        scheduler: that stops samples early.
        budget: the most that the search may cost; None for no limit.
    """

    folder: str
    store: Path
    metric: Metric
    scheduler: Scheduler
    budget: Budget | None = None

    def run(self, cells: Sequence[Cell], propose: Propose, execute: Execute) -> dict[str, list[Sample]]:
        """The samples of each cell.

        Raises:
            SettingError: a setting is not allowed.
            Interrupted: the search was asked to stop, or another process runs one of its trials.
        """
        samples: dict[str, list[Sample]] = {cell.name: [] for cell in cells}
        for batch in count():
            proposals = {cell.name: propose(cell, samples[cell.name]) for cell in cells}
            if self.budget:
                proposals = self.budget.cut(proposals, samples)
            if not any(proposals.values()):
                break
            for name, settings in proposals.items():
                start = len(samples[name])
                samples[name] += [Sample(name, start + i, one, batch) for i, one in enumerate(settings)]
            if batch == 0:
                self._check(cells, samples)
            self._climb(cells, samples, execute)
        return samples

    def jobs(self, cell: Cell, sample: Sample, rounds: int) -> list[Job]:
        """The trials of a sample."""
        try:
            return [Job(trial, self.folder, self.store) for trial in cell.trials(sample.settings, rounds)]
        except SettingError as error:
            raise SettingError(f"{cell.name}: sample {sample.settings}: {error}") from None

    def _check(self, cells: Sequence[Cell], samples: dict[str, list[Sample]]) -> None:
        """Refuse settings that are not allowed, and a metric that is not recorded, before anything runs."""
        tasks: dict[str, Trial] = {}
        for cell in cells:
            for sample in samples[cell.name]:
                jobs = self.jobs(cell, sample, cell.rungs[-1])
                if sample.index == 0 and not all(job.finished for job in jobs):
                    check(jobs)
                    tasks |= {job.trial.task.label: job.trial for job in jobs if isinstance(job.trial, Trial)}
        for trial in tasks.values():
            check_metrics({"metric": [self.metric]}, [trial])

    def _climb(self, cells: Sequence[Cell], samples: dict[str, list[Sample]], execute: Execute) -> None:
        """Run every sample as far as the scheduler lets it. The cells climb side by side, each its own rungs."""
        for rung in range(max(len(cell.rungs) for cell in cells)):
            due = [
                (cell, sample, self.jobs(cell, sample, cell.rungs[rung]))
                for cell in cells
                if rung < len(cell.rungs)
                for sample in self._due(cell, samples[cell.name], rung)
            ]
            for wave in waves([job for *_, own in due for job in own if not job.ended]):
                execute(wave)
            for cell, sample, own in due:
                measure(sample, own, cell.rungs[rung], self.metric, cell.share)

    def _due(self, cell: Cell, samples: list[Sample], rung: int) -> list[Sample]:
        """The samples of a cell that go on to this rung and have not been there."""
        left = [sample for sample in samples if cell.rungs[rung] not in sample.scores and not sample.error]
        if rung == 0:
            return left
        below = cell.rungs[rung - 1]
        scores = {
            one.index: -self.metric.penalty(fmean(one.scores[below].values())) for one in samples if below in one.scores
        }
        going_on = promoted(scores, self.scheduler)
        return [sample for sample in left if sample.index in going_on]


def waves(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs in an order in which a run grows: of one trial with several numbers of rounds, the fewest come first.

    A trial is in each wave at most once, so a job that diverges later still counts as finished at fewer rounds.
    """
    lengths: dict[str, dict[int, Job]] = {}
    for job in jobs:
        lengths.setdefault(job.trial.digest, {})[job.trial.rounds] = job
    ordered = ([own[rounds] for rounds in sorted(own)] for own in lengths.values())
    return [[job for job in wave if job is not None] for wave in zip_longest(*ordered)]


def best(samples: Sequence[Sample], metric: Metric) -> Sample | None:
    """The best of the samples that reached the highest rung; None if all failed."""
    working = [sample for sample in samples if sample.scores and not sample.error]
    top = max((sample.rounds for sample in working), default=0)
    whole = (sample for sample in working if sample.rounds == top)
    return min(whole, key=lambda sample: metric.penalty(sample.score), default=None)
