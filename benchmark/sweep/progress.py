"""How far trials are, read from their run folders, and the live view of a sweep.

`rollcall run` shows a bar over all trials; `rollcall run --watch` and `rollcall status` show a row for each.
"""

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from time import monotonic
from types import TracebackType
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

LOOK = 1.0
"""Seconds between two looks into the run folders."""

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


def entry_of(store: Path, folder: Path) -> Entry:
    """The entry of a run folder."""
    experiment = str(folder.parent.relative_to(store))
    run = RunFolder(folder)
    try:
        status, state = run.status, run.state_now
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
    """A progress bar over all trials. A `SweepCallback`.

    Outside a terminal it is a line for each trial that ends, and one about the whole sweep every 30 seconds.

    Args:
        jobs: all trials of the sweep, finished ones included.
        console: where it is drawn.
        watch: whether there is a row for each running trial, too.
        metric: whose last value is shown in these rows.

    Attributes:
        failed: the error of each failed trial, by name.
        diverged: the reason of each trial that diverged, by name, those of earlier sweeps included.
        finished, interrupted, waiting: how many trials finished now, were interrupted, and have not started.
        elsewhere: how many trials another process runs.
    """

    def __init__(self, jobs: Sequence["Job"], console: Console, watch: bool = False, metric: str = "") -> None:
        self.console = console
        self.watch = watch
        self.metric = metric
        self.current: dict[str, Job] = {}
        self.last: deque[Job] = deque(maxlen=ENDED)
        self.entries: list[Entry] = []
        self.looked = float("-inf")
        self.told = monotonic()
        self.trials = len(jobs)
        self.done = sum(job.ended for job in jobs)
        self.running = 0
        self.failed: dict[str, str] = {}
        self.diverged = {job.trial.name: job.folder.status["reason"] for job in jobs if job.diverged}
        self.finished = self.interrupted = self.elsewhere = 0
        self.waiting = self.trials - self.done
        self.rounds = {
            job.trial.name: job.trial.rounds if job.ended else min(job.folder.status.get("round", 0), job.trial.rounds)
            for job in jobs
        }
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()

    @property
    def stopped(self) -> bool:
        """Whether the sweep was interrupted before all trials ended."""
        return self.interrupted + self.waiting > 0

    @property
    def state(self) -> str:
        """How the sweep ended, in the words of run folders."""
        return "failed" if self.failed else "interrupted" if self.stopped or self.elsewhere else "finished"

    def started(self, job: "Job") -> None:
        self.running += 1
        self.waiting -= 1
        self.current[job.trial.name] = job
        self._draw()

    def progressed(self, job: "Job", rounds: int) -> None:
        self.rounds[job.trial.name] = rounds
        self._draw()
        if not self.console.is_terminal and monotonic() - self.told > LINES:
            self.told = monotonic()
            self._tell()

    def retried(self, job: "Job", reason: str) -> None:
        self.console.print(f"{job.trial.name}  {reason}", highlight=False, soft_wrap=True)

    def ended(self, job: "Job", outcome: "Outcome") -> None:
        self.running -= 1
        self.last.append(self.current.pop(job.trial.name))
        if outcome.state == "interrupted":
            self.interrupted += 1
        elif outcome.state == "elsewhere":
            self.elsewhere += 1
        else:
            self.done += 1
        if outcome.state == "finished":
            self.finished += 1
            self.rounds[job.trial.name] = job.trial.rounds
        elif outcome.state == "failed":
            self.failed[job.trial.name] = outcome.error
        elif outcome.state == "diverged":
            self.diverged[job.trial.name] = outcome.error
            self.rounds[job.trial.name] = job.trial.rounds  # none is left to run
        if not self.console.is_terminal:
            end = outcome.error or ("running elsewhere" if outcome.state == "elsewhere" else outcome.state)
            self.console.print(
                f"{self.done:>4}/{self.trials}  {job.trial.name}  {end}",
                highlight=False,
                soft_wrap=True,
            )
        self._draw()

    def _draw(self) -> None:
        self.progress.update(self.bar, completed=sum(self.rounds.values()), description=self._description())

    def _rendered(self) -> RenderableType:
        return Group(table(self._look(), self.metric), self.progress) if self.watch else self.progress

    def _look(self) -> list[Entry]:
        """The trials that ended last and those that run, at most a second old. Rounds are as the sweep reports them."""
        if monotonic() - self.looked > LOOK:
            jobs = [*self.last, *self.current.values()]
            entries = [entry_of(job.store, job.folder.path) for job in jobs if job.folder.path.exists()]
            self.entries = [
                replace(entry, round=max(entry.round, self.rounds[entry.name])) if entry.state == "running" else entry
                for entry in entries
            ]
            self.looked = monotonic()
        return self.entries

    def _tell(self) -> None:
        """Print a line about the whole sweep, and with `watch` one about each running trial."""
        task = self.progress.tasks[0]
        left = "?" if task.time_remaining is None else str(timedelta(seconds=round(task.time_remaining)))
        lines = [f"{self._description()}, {task.percentage:.0f} %, {task.speed or 0:,.0f} rounds/s, {left} left"]
        running = [entry for entry in self._look() if entry.state == "running"] if self.watch else []
        lines += ["      " + "  ".join(filter(None, cells(entry, self.metric))) for entry in running]
        for line in lines:
            self.console.print(line, highlight=False, soft_wrap=True)

    def _description(self) -> str:
        failed = f", [red]{len(self.failed)} failed[/red]" if self.failed else ""
        interrupted = f", {self.interrupted} interrupted" if self.interrupted else ""
        diverged = f", [yellow]{len(self.diverged)} diverged[/yellow]" if self.diverged else ""
        return f"[bold]{self.done}[/bold]/{self.trials} trials, {self.running} running{interrupted}{diverged}{failed}"
