"""The loop of a search: propose samples for every cell, run them rung by rung, keep their scores.

All trials of a rung, of all cells, run in one sweep. Nothing is read but the run folders, so a search that was killed
repeats its decisions, skips the finished trials, and ends with the same answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmark.config.errors import SettingError
from benchmark.config.metric import Metric
from benchmark.config.trial import Trial
from benchmark.search.budget import Budget
from benchmark.search.cells import Cell
from benchmark.search.execution import Execute
from benchmark.search.halving import PROMOTED, Scheduler
from benchmark.search.record import Sample, measure
from benchmark.sweep.jobs import Job, check
from benchmark.sweep.metric_names import check_metrics

Propose = Callable[[Cell, list[Sample]], list[dict[str, Any]]]
"""The next samples of a cell, from those before; none at the end."""


@dataclass(frozen=True)
class Search:
    """How samples are run and judged.

    Attributes:
        folder: the name of the experiment in the store that holds the trials of the search.
        store: folder of the run folders.
        metric: what samples are judged by, and which end is better.
        scheduler: which samples are stopped early.
        budget: what the search may cost; None for no limit.
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
        return [Job(trial, self.folder, self.store) for trial in self._trials(cell, sample, rounds)]

    def _trials(self, cell: Cell, sample: Sample, rounds: int) -> list[Trial]:
        try:
            return cell.trials(sample.settings, rounds)
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
                    tasks |= {trial.task.label: trial for trial in self._trials(cell, sample, cell.rungs[-1])}
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
        promoted = set(PROMOTED[self.scheduler](scores))
        return [sample for sample in left if sample.index in promoted]


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
