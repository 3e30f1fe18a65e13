"""The study of a search: propose samples for every cell, run them rung by rung, keep their scores.

All trials of a rung, of all cells, run in one sweep. Nothing is read but the run folders, so a search that was killed
repeats its decisions, skips the finished trials, and ends with the same answer.

Schedulers decide which samples of a cell get more rounds. They compare samples of one cell after equal numbers of
rounds. `asha` is successive halving: of the samples that reached a rung, the best third goes on to the next one. A rung
is finished before samples are promoted from it (synchronous), so the answer does not depend on which trial ends first.
`median` lets a sample go on unless it is worse than the median of its rung. `none` runs every sample to the end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.search.cells import ETA, Cell, Scheduler
from rollcall.benchmark.sweep.jobs import Job, check, check_metrics


@dataclass
class Sample:
    """A sample of a cell.

    Attributes:
        index: its number in the cell, from 0.
        settings: by dotted name.
        scores: after each rung that it reached, by rounds: for each seed, the mean over the places of the cell.
        start: the score of the untrained model, the mean over trials.
        gradients: that its clients computed.
        seconds: that its trials took, one after another.
        error: of a failed sample.
    """

    index: int
    settings: dict[str, Any]
    scores: dict[int, dict[int, float]] = field(default_factory=dict)
    start: float = math.nan
    gradients: float = 0.0
    seconds: float = 0.0
    error: str = ""

    @property
    def rounds(self) -> int:
        """The highest rung that it reached; 0 for none."""
        return max(self.scores, default=0)

    def score_at(self, rounds: int) -> float:
        """The mean over seeds after a rung."""
        return fmean(self.scores[rounds].values())

    @property
    def score(self) -> float:
        """The mean over seeds after its highest rung; NaN for none."""
        return self.score_at(self.rounds) if self.scores else math.nan

    def state(self, last: int) -> str:
        """`finished`, `failed`, or `stopped` before the last rung."""
        return "failed" if self.error else "finished" if self.rounds >= last else "stopped"


Propose = Callable[[Cell, list[Sample]], list[dict[str, Any]]]
"""The next samples of a cell, from those before; none at the end."""

Execute = Callable[[Sequence[Job]], None]
"""Runs jobs to their end; failed ones are in their folders. Raises `Interrupted` if some have not ended."""


@dataclass(frozen=True)
class Search:
    """How samples are run and judged.

    Attributes:
        folder: the name of the experiment in the store that holds the trials of the search.
        store: folder of the run folders.
        metric: that the samples are judged by, and its better end.
        scheduler: that stops samples early.
    """

    folder: str
    store: Path
    metric: Metric
    scheduler: Scheduler

    def run(self, cells: Sequence[Cell], propose: Propose, execute: Execute) -> dict[str, list[Sample]]:
        """The samples of each cell."""
        samples: dict[str, list[Sample]] = {cell.name: [] for cell in cells}
        while any(batches := [propose(cell, samples[cell.name]) for cell in cells]):
            first = not any(samples.values())
            for own, batch in zip(samples.values(), batches, strict=True):
                own += [Sample(index, settings) for index, settings in enumerate(batch, len(own))]
            if first:
                self._check(cells, samples)
            self._climb(cells, samples, execute)
        return samples

    def _jobs(self, cell: Cell, sample: Sample, rounds: int) -> list[Job]:
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
                jobs = self._jobs(cell, sample, cell.rungs[-1])
                if sample.index == 0 and not all(job.finished for job in jobs):
                    check(jobs)
                    tasks |= {job.trial.task.label: job.trial for job in jobs if isinstance(job.trial, Trial)}
        for trial in tasks.values():
            check_metrics({"metric": [self.metric]}, [trial])

    def _climb(self, cells: Sequence[Cell], samples: dict[str, list[Sample]], execute: Execute) -> None:
        """Run every sample as far as the scheduler lets it. The cells climb side by side, each its own rungs."""
        for rung in range(max(len(cell.rungs) for cell in cells)):
            due = [
                (cell, sample, self._jobs(cell, sample, cell.rungs[rung]))
                for cell in cells
                if rung < len(cell.rungs)
                for sample in self._due(cell, samples[cell.name], rung)
            ]
            for wave in waves([job for *_, own in due for job in own if not job.ended]):
                execute(wave)
            for cell, sample, own in due:
                self._measure(sample, own, cell.rungs[rung], cell.share)

    def _due(self, cell: Cell, samples: list[Sample], rung: int) -> list[Sample]:
        """The samples of a cell that go on to this rung and have not been there."""
        left = [sample for sample in samples if cell.rungs[rung] not in sample.scores and not sample.error]
        if rung == 0:
            return left
        below = cell.rungs[rung - 1]
        scores = {one.index: -self.metric.penalty(one.score_at(below)) for one in samples if below in one.scores}
        going_on = promoted(scores, self.scheduler)
        return [sample for sample in left if sample.index in going_on]

    def _measure(self, sample: Sample, jobs: Sequence[Job], rounds: int, share: float) -> None:
        """Add the score of a sample at a rung, or its error, from the run folders of its trials.

        The score is the mean over the evaluations in this last share of the rounds.
        """
        by_seed: dict[int, list[float]] = {}
        starts: list[float] = []
        sample.gradients = sample.seconds = 0.0
        for job in jobs:
            status, history = job.folder.status, job.folder.history()
            sample.seconds += status.get("seconds", 0.0)
            rows = history[history["round"] <= rounds]
            if len(rows):
                sample.gradients += float(rows["cost/gradients"].iloc[-1])
            if not job.finished:
                sample.error = str(status.get("error") or status.get("state", "absent"))
                continue
            if self.metric.column not in rows:
                columns = ", ".join(
                    str(name) for name in rows.columns if not str(name).startswith(("round", "cost/", "time/"))
                )
                raise SettingError(f"metric: {self.metric.column!r} is not allowed; must be measured: {columns}")
            first = min(rounds - share * rounds, rounds - 1)
            window = rows[rows["round"] > first]
            if window.empty:
                raise SettingError(
                    f"{job.folder.path}: metrics.jsonl has no evaluation after round {first:g} up to round {rounds}. "
                    "Remove this folder, then rerun the command"
                )
            starts.append(float(rows[self.metric.column].iloc[0]))
            value = float(window[self.metric.column].mean(skipna=False))
            if not math.isfinite(value):
                sample.error = f"diverged: {self.metric.column} is {value}"
            by_seed.setdefault(job.trial.seed, []).append(value)
        if not sample.error:
            sample.start = fmean(starts)
            sample.scores[rounds] = {seed: fmean(values) for seed, values in by_seed.items()}


def promoted(scores: Mapping[int, float], scheduler: Scheduler) -> list[int]:
    """The samples of a rung that go on, from the best to the worst; of equal ones, the first drawn comes first.

    `scores` are of the samples that reached the rung without failing, by index; higher ones are better.
    """
    ranked = sorted(scores, key=lambda index: (-scores[index], index))
    if scheduler == "asha":
        return ranked[: max(1, len(scores) // ETA)]
    if scheduler == "median" and scores:
        middle = median(scores.values())
        return [index for index in ranked if scores[index] >= middle]
    return ranked


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
