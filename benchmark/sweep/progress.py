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
    from rollcall.benchmark.sweep.jobs import Job, Outcome

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
    """The progress of a sweep, read from its run folders: a bar over all trials, finished ones included.

    Outside a terminal it is a line for each trial that ends, and one about the whole sweep every 30 seconds.
    """

    def __init__(self, jobs: Sequence["Job"], console: Console) -> None:
        self.jobs = {job.trial.name: job for job in jobs}
        self.console = console
        self.states = {name: "diverged" if job.diverged else "finished" for name, job in self.jobs.items() if job.ended}
        self.changed = {name: job.folder.changed for name, job in self.jobs.items()}
        self.rounds = {name: self._rounds(name) for name in self.jobs}
        self.told: float | None = None
        columns = (*Progress.get_default_columns()[:3], TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self.progress = Progress(*columns, console=console, refresh_per_second=4, disable=not console.is_terminal)
        total = sum(job.trial.rounds for job in jobs)
        self.bar = self.progress.add_task(self._counts(), total=total, completed=sum(self.rounds.values()))

    def __enter__(self) -> "View":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def look(self) -> None:
        """Read the run folders that have changed, and draw."""
        for name, job in self.jobs.items():
            if self.states.get(name) == "finished" or (now := job.folder.changed) == self.changed[name]:
                continue
            self.changed[name] = now
            with suppress(Damaged):
                state, before = job.folder.state, self.states.get(name)
                self.states[name] = state
                self.rounds[name] = self._rounds(name)
                if state not in ("running", before):
                    self._tell(
                        name, job.folder.status.get({"failed": "error", "diverged": "reason"}.get(state, ""), "")
                    )
            self.told = self.told or monotonic()  # the first trial has started
        self.progress.update(self.bar, completed=sum(self.rounds.values()), description=self._counts())
        running = "running" in self.states.values()
        if not self.console.is_terminal and running and monotonic() - (self.told or 0) > LINES:
            self.told, task = monotonic(), self.progress.tasks[0]
            left = "?" if task.time_remaining is None else str(timedelta(seconds=round(task.time_remaining)))
            self.say(f"{self._counts()}, {task.percentage:.0f} %, {task.speed or 0:,.0f} rounds/s, {left} left")

    def end(self, outcomes: Mapping[str, "Outcome"]) -> None:
        """Draw the end of the sweep: also the trials that left no trace in their run folders."""
        self.look()
        for name, outcome in outcomes.items():
            if self.states.get(name, "running") == "running":
                self.states[name] = outcome.state
                self._tell(name, outcome.error)
        self.progress.update(self.bar, description=self._counts())

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.console.print(line, highlight=False, soft_wrap=True)

    def _rounds(self, name: str) -> int:
        job, state = self.jobs[name], self.states.get(name)  # a diverged trial has no rounds left to run
        whole = state in ("finished", "diverged")
        return job.trial.rounds if whole else min(int(job.folder.status.get("round", 0)), job.trial.rounds)

    def _tell(self, name: str, error: str) -> None:
        if not self.console.is_terminal:
            text = error or self.states[name].replace("elsewhere", "running elsewhere")
            self.say(f"{self._done():>4}/{len(self.jobs)}  {name}  {text}")

    def _done(self) -> int:
        return sum(state in ("finished", "failed", "diverged") for state in self.states.values())

    def _counts(self) -> str:
        counts = Counter(self.states.values())
        ends = [f", {counts[state]} {state}" for state in ("interrupted", "diverged", "failed") if counts[state]]
        return f"{self._done()}/{len(self.jobs)} trials, {counts['running']} running{''.join(ends)}"
