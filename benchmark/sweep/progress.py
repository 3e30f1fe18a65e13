"""How far trials are, read from their run folders, and the live view of a sweep.

`rollcall run` shows a bar over all trials; `rollcall run --watch` and `rollcall status` show a row for each.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from rollcall.benchmark.federation.run_folder import RunFolder, run_folders

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.jobs import Job, Outcome

STATES = ("finished", "running", "interrupted", "failed", "diverged")
COLUMNS = ("trial", "state", "round", "last metric", "rounds/s", "time left")

LINES = 30.0
"""Seconds between two lines about the whole sweep outside a terminal."""

ENDED = 5
"""How many of the trials that ended last are shown."""


@dataclass(frozen=True)
class Entry:
    """How far a trial is, as its run folder says.

    Attributes:
        experiment, name: of the trial.
        state: one of `STATES`; `interrupted` if its process has died, `damaged` if a file cannot be read.
        round, rounds: done, and asked for.
        rate: rounds per second, evaluations included; 0 if not known.
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

    def last(self, metric: str = "") -> str:
        """The name and the last value of this metric; if it was not measured, of an accuracy, or of the first one."""
        names = [metric] if metric in self.metrics else sorted(self.metrics, key=lambda name: "accuracy" not in name)
        return f"{names[0]} {self.metrics[names[0]]:.4g}" if names else ""


def read(store: Path, experiment: str = "") -> list[Entry]:
    """The trials of an experiment, by default of all, by experiment and name."""
    return [entry_of(store, folder) for folder in run_folders(store / experiment)]


def entry_of(store: Path, folder: Path, live: bool = False) -> Entry:
    """The entry of a run folder.

    Args:
        store: of the run folder.
        folder: its path.
        live: whether the process of a running trial is known to live; otherwise the lock tells.
    """
    experiment = str(folder.parent.relative_to(store))
    run = RunFolder(folder)
    try:
        status, state = run.status, run.state if live else run.state_now
        done, rounds, seconds = (status[key] for key in ("round", "rounds", "seconds"))
    except (OSError, ValueError, KeyError, TypeError):
        return Entry(experiment, folder.name, "damaged")
    rate = done / seconds if seconds else 0.0
    metrics = last_evaluation(run.metrics) if state == "running" else {}
    return Entry(experiment, folder.name, state, int(done), int(rounds), rate, metrics)


def last_evaluation(file: Path) -> dict[str, float]:
    """The metrics of the last complete line of metrics.jsonl; empty if there is none."""
    try:
        row = json.loads(file.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2])
    except (OSError, ValueError):
        return {}
    return {name: value for name, value in row.items() if name != "round"} if isinstance(row, dict) else {}


def table(entries: Iterable[Entry], metric: str = "") -> Table:
    """A row for each trial.

    Args:
        entries: of the trials.
        metric: whose last value is shown, where it was measured.
    """
    grid = Table(*COLUMNS, box=None, padding=(0, 2, 0, 0))
    for entry in entries:
        grid.add_row(*cells(entry, metric))
    return grid


def cells(entry: Entry, metric: str = "") -> tuple[str, ...]:
    """The texts of a row."""
    running = entry.state == "running"
    left = "" if not running else "?" if entry.left is None else str(timedelta(seconds=round(entry.left)))
    rate = f"{entry.rate:,.1f}" if running else ""
    return entry.name, entry.state, f"{entry.round:,} of {entry.rounds:,}", entry.last(metric), rate, left


class RoundsPerSecond(ProgressColumn):
    """The speed over the last half minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} rounds/s", style="cyan")


class View:
    """The progress of a sweep, read from its run folders: a bar over all trials.

    Outside a terminal it is a line for each trial that ends, and one about the whole sweep every 30 seconds.

    Args:
        jobs: all trials of the sweep, finished ones included.
        console: where it is drawn.
        watch: whether there is a row for each running trial, and for the trials that ended last.
        metric: whose last value is shown in these rows.

    Attributes:
        entries: of the trials whose run folders have changed since the sweep began, by name, the last change last.
        ended: the states of the trials that have ended, by name.
    """

    def __init__(self, jobs: Sequence["Job"], console: Console, watch: bool = False, metric: str = "") -> None:
        self.jobs = {job.trial.name: job for job in jobs}
        self.console = console
        self.watch = watch
        self.metric = metric
        self.entries: dict[str, Entry] = {}
        self.ended = {name: "diverged" if job.diverged else "finished" for name, job in self.jobs.items() if job.ended}
        self.changed = {name: job.folder.changed for name, job in self.jobs.items()}
        self.rounds = {
            name: job.trial.rounds if name in self.ended else min(job.folder.status.get("round", 0), job.trial.rounds)
            for name, job in self.jobs.items()
        }
        self.told = monotonic()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            RoundsPerSecond(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.live = Live(get_renderable=self._rendered, console=console, refresh_per_second=4)
        self.bar = self.progress.add_task(
            self._description(), total=sum(job.trial.rounds for job in jobs), completed=sum(self.rounds.values())
        )

    def __enter__(self) -> "View":
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def look(self) -> None:
        """Read the run folders that have changed, and draw."""
        for name, job in self.jobs.items():
            if self.ended.get(name) != "finished" and job.folder.changed != self.changed[name]:
                self.changed[name] = job.folder.changed
                entry = entry_of(job.store, job.folder.path, live=True)
                self.entries.pop(name, None)
                self.entries[name] = entry
                whole = entry.state in ("finished", "diverged")  # a diverged trial has no rounds left to run
                self.rounds[name] = job.trial.rounds if whole else min(entry.round, job.trial.rounds)
                if entry.state not in ("running", "damaged", self.ended.get(name)):
                    key = {"failed": "error", "diverged": "reason"}.get(entry.state, "")
                    self._end(name, entry.state, job.folder.status.get(key, ""))
        self.progress.update(self.bar, completed=sum(self.rounds.values()), description=self._description())
        if not self.entries:  # no trial has started yet
            self.told = monotonic()
        elif not self.console.is_terminal and self._running() and monotonic() - self.told > LINES:
            self.told = monotonic()
            self._tell()

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

    def _running(self) -> list[Entry]:
        return [entry for entry in tuple(self.entries.values()) if entry.state == "running"]

    def _rendered(self) -> RenderableType:
        if not self.watch:
            return self.progress
        last = [entry for entry in tuple(self.entries.values()) if entry.state != "running"][-ENDED:]
        return Group(table([*last, *self._running()], self.metric), self.progress)

    def _tell(self) -> None:
        """Print a line about the whole sweep, and with `watch` one about each running trial."""
        task = self.progress.tasks[0]
        left = "?" if task.time_remaining is None else str(timedelta(seconds=round(task.time_remaining)))
        self.say(f"{self._description()}, {task.percentage:.0f} %, {task.speed or 0:,.0f} rounds/s, {left} left")
        for entry in self._running() if self.watch else ():
            self.say("      " + "  ".join(filter(None, cells(entry, self.metric))))

    def _description(self) -> str:
        counts = Counter(self.ended.values())
        failed = f", [red]{counts['failed']} failed[/red]" if counts["failed"] else ""
        interrupted = f", {counts['interrupted']} interrupted" if counts["interrupted"] else ""
        diverged = f", [yellow]{counts['diverged']} diverged[/yellow]" if counts["diverged"] else ""
        running = f"{len(self._running())} running"
        return f"[bold]{self._done()}[/bold]/{len(self.jobs)} trials, {running}{interrupted}{diverged}{failed}"
