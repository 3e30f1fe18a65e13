"""How far trials are, read from their run folders: the rows of `rollcall status`, and the bar of `rollcall run`."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, run_folders

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.jobs import Job

STATES = ("finished", "running", "interrupted", "failed", "diverged")

LINES = 30.0
"""Seconds between two lines about the whole sweep outside a terminal."""


@dataclass(frozen=True)
class Entry:
    """How far a trial is, as its run folder says.

    Attributes:
        state: one of `STATES`; `interrupted` if its process has died, `damaged` if a file cannot be read.
        round, rounds: done, and asked for; `rate` of them per second, evaluations included; 0 if not known.
        metrics: the last evaluation of a running trial.
    """

    experiment: str
    name: str
    state: str
    round: int = 0
    rounds: int = 0
    rate: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def left(self) -> float | None:
        """Seconds until the last round; None if not known."""
        return (self.rounds - self.round) / self.rate if self.rate else None


def read(store: Path, experiment: str = "") -> list[Entry]:
    """The trials of an experiment, by default of all, by experiment and name."""
    entries = []
    for folder in run_folders(store / experiment):
        home, run = str(folder.parent.relative_to(store)), RunFolder(folder)
        try:
            status, state = run.status, run.state_now
            done, rounds, seconds = (status[key] for key in ("round", "rounds", "seconds"))
        except (OSError, ValueError, KeyError, TypeError):
            entries.append(Entry(home, folder.name, "damaged"))
            continue
        rate = done / seconds if seconds else 0.0
        metrics = _last_evaluation(run.metrics) if state == "running" else {}
        entries.append(Entry(home, folder.name, state, int(done), int(rounds), rate, metrics))
    return entries


def _last_evaluation(file: Path) -> dict[str, float]:
    """The metrics of the last complete line of metrics.jsonl; empty if there is none."""
    try:
        row = json.loads(file.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2])
    except (OSError, ValueError):
        return {}
    return {name: value for name, value in row.items() if name != "round"} if isinstance(row, dict) else {}


def table(entries: Iterable[Entry]) -> Table:
    """A row for each running trial; its metric is an accuracy, or the first one."""
    grid = Table("trial", "state", "round", "last metric", "rounds/s", "time left", box=None, padding=(0, 2, 0, 0))
    for entry in entries:
        name = min(entry.metrics, key=lambda name: "accuracy" not in name, default="")
        metric = f"{name} {entry.metrics[name]:.4g}" if name else ""
        left = "?" if entry.left is None else str(timedelta(seconds=round(entry.left)))
        rounds = f"{entry.round:,} of {entry.rounds:,}"
        grid.add_row(entry.name, entry.state, rounds, metric, f"{entry.rate:,.1f}", left)
    return grid


class View:
    """The progress of a sweep, read from its run folders: a bar over all trials, those of earlier sweeps included.

    Outside a terminal it is a line for each trial that ends, and one about the whole sweep every 30 seconds.
    """

    def __init__(self, jobs: Sequence["Job"], console: Console) -> None:
        self.jobs, self.console, self.running = jobs, console, 0
        self.ends = Counter("diverged" if job.diverged else "finished" for job in jobs if job.ended)
        self.left = {job: (job.folder.changed, job.folder.status.get("round", 0)) for job in jobs if not job.ended}
        self.told: float | None = None
        columns = (*Progress.get_default_columns()[:3], TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self.progress = Progress(*columns, console=console, refresh_per_second=4, disable=not console.is_terminal)
        self.bar = self.progress.add_task("", total=sum(job.trial.rounds for job in jobs))
        self._draw()

    def look(self) -> None:
        """Read the run folders that have changed since the sweep began, and draw."""
        self.running = 0
        for job, (before, _) in list(self.left.items()):
            if job.folder.changed == before:
                continue
            self.told = self.told or monotonic()  # the first trial has started
            with suppress(Damaged):
                status = job.folder.status
                state = status.get("state", "running")
                self.left[job] = before, min(status.get("round", 0), job.trial.rounds)
                if state == "running":
                    self.running += 1
                else:
                    self._end(job, state, status.get({"failed": "error", "diverged": "reason"}.get(state, ""), state))
        self._draw()
        if not self.console.is_terminal and self.running and monotonic() - (self.told or 0) > LINES:
            self.told, task = monotonic(), self.progress.tasks[0]
            left = "?" if task.time_remaining is None else str(timedelta(seconds=round(task.time_remaining)))
            self._say(f"{task.description}, {task.percentage:.0f} %, {task.speed or 0:,.0f} rounds/s, {left} left")

    def end(self, failed: Mapping[str, str]) -> None:
        """Draw the end of the sweep: also the trials that left no trace in their run folders. `failed` has errors."""
        self.look()
        for job in list(self.left):
            if job.trial.name in failed:
                self._end(job, "failed", failed[job.trial.name])
            elif job.folder.in_use:
                self._end(job, "elsewhere", "running elsewhere")
        self._draw()

    def _end(self, job: "Job", state: str, text: str) -> None:
        del self.left[job]
        self.ends[state] += 1
        if not self.console.is_terminal:
            self._say(f"{self._done():>4}/{len(self.jobs)}  {job.trial.name}  {text}")

    def _say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)

    def _done(self) -> int:
        return sum(self.ends[state] for state in ("finished", "failed", "diverged"))

    def _draw(self) -> None:
        ends = [f", {self.ends[state]} {state}" for state in ("interrupted", "diverged", "failed") if self.ends[state]]
        rounds = sum(job.trial.rounds for job in self.jobs if job not in self.left)
        done = rounds + sum(rounds for _, rounds in self.left.values())
        text = f"{self._done()}/{len(self.jobs)} trials, {self.running} running{''.join(ends)}"
        self.progress.update(self.bar, completed=done, description=text)
