"""How far trials are, read from their run folders: the rows of `rollcall status`, and the bar of `rollcall run`."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

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


class RoundsPerSecond(ProgressColumn):
    """The speed over the last half minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} rounds/s", style="cyan")


class View:
    """The progress of a sweep, read from its run folders: a bar over all trials, finished ones included.

    Outside a terminal it is a line for each trial that ends, and one about the whole sweep every 30 seconds.
    """

    def __init__(self, jobs: Sequence["Job"], console: Console) -> None:
        self.jobs = {job.trial.name: job for job in jobs}
        self.console = console
        self.running: set[str] = set()
        self.ended = {name: "diverged" if job.diverged else "finished" for name, job in self.jobs.items() if job.ended}
        self.changed = {name: job.folder.changed for name, job in self.jobs.items()}
        self.rounds = {
            name: job.trial.rounds if name in self.ended else min(job.folder.status.get("round", 0), job.trial.rounds)
            for name, job in self.jobs.items()
        }
        self.told: float | None = None
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            RoundsPerSecond(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
        )
        self.bar = self.progress.add_task(
            self._description(), total=sum(job.trial.rounds for job in jobs), completed=sum(self.rounds.values())
        )

    def __enter__(self) -> "View":
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.progress.stop()

    def look(self) -> None:
        """Read the run folders that have changed, and draw."""
        for name, job in self.jobs.items():
            if self.ended.get(name) == "finished" or job.folder.changed == self.changed[name]:
                continue
            self.changed[name] = job.folder.changed
            self.running.discard(name)
            try:
                status = job.folder.status
            except Damaged:
                continue
            state = str(status.get("state"))
            whole = state in ("finished", "diverged")  # a diverged trial has no rounds left to run
            self.rounds[name] = job.trial.rounds if whole else min(status.get("round", 0), job.trial.rounds)
            if state == "running":
                self.running.add(name)
            elif state != self.ended.get(name):
                self._end(name, state, status.get({"failed": "error", "diverged": "reason"}.get(state, ""), ""))
            self.told = self.told or monotonic()  # the first trial has started
        self.progress.update(self.bar, completed=sum(self.rounds.values()), description=self._description())
        if not self.console.is_terminal and self.running and monotonic() - (self.told or 0) > LINES:
            self.told, task = monotonic(), self.progress.tasks[0]
            left = "?" if task.time_remaining is None else str(timedelta(seconds=round(task.time_remaining)))
            counts = Text.from_markup(task.description).plain
            self.say(f"{counts}, {task.percentage:.0f} %, {task.speed or 0:,.0f} rounds/s, {left} left")

    def end(self, outcomes: Mapping[str, "Outcome"]) -> None:
        """Draw the end of the sweep: also the trials that left no trace in their run folders."""
        self.look()
        for name, outcome in outcomes.items():
            if name not in self.ended:
                self._end(name, outcome.state, outcome.error)
        self.progress.update(self.bar, description=self._description())

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.console.print(line, highlight=False, soft_wrap=True)

    def _end(self, name: str, state: str, error: str) -> None:
        self.ended[name] = state
        if not self.console.is_terminal:
            text = error or ("running elsewhere" if state == "elsewhere" else state)
            self.say(f"{self._done():>4}/{len(self.jobs)}  {name}  {text}")

    def _done(self) -> int:
        return sum(state not in ("interrupted", "elsewhere") for state in self.ended.values())

    def _description(self) -> str:
        counts, colours = Counter(self.ended.values()), {"diverged": "yellow", "failed": "red"}
        text = f"[bold]{self._done()}[/bold]/{len(self.jobs)} trials, {len(self.running)} running"
        for state in ("interrupted", "diverged", "failed"):
            if counts[state]:
                ended = f"{counts[state]} {state}"
                text += f", [{colours[state]}]{ended}[/]" if state in colours else f", {ended}"
        return text
