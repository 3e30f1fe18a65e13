"""The live view of a sweep: finished and running trials, rounds per second, time left."""

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from benchmark.sweep.jobs import Job, Outcome

STATES = {"elsewhere": "running elsewhere"}
"""How a trial ended, where one word does not say it."""


class RoundsPerSecond(ProgressColumn):
    """The speed over the last half minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} rounds/s", style="cyan")


class View:
    """A progress bar over all trials; outside a terminal, a line for each trial that ends. A `SweepCallback`.

    Args:
        jobs: all trials of the sweep, finished ones included.
        console: where it is drawn.

    Attributes:
        failed: the error of each failed trial, by name.
        diverged: the reason of each trial that diverged, by name, those of earlier sweeps included.
        finished, interrupted, waiting: how many trials finished now, were interrupted, and have not started.
        elsewhere: how many trials another process runs.
    """

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        self.console = console
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
            disable=not console.is_terminal,
        )
        self.bar = self.progress.add_task(
            self._description(), total=sum(job.trial.rounds for job in jobs), completed=sum(self.rounds.values())
        )

    def __enter__(self) -> "View":
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    @property
    def stopped(self) -> bool:
        """Whether the sweep was interrupted before all trials ended."""
        return self.interrupted + self.waiting > 0

    @property
    def state(self) -> str:
        """How the sweep ended, in the words of run folders."""
        return "failed" if self.failed else "interrupted" if self.stopped else "finished"

    def started(self, job: Job) -> None:
        self.running += 1
        self.waiting -= 1
        self._draw()

    def progressed(self, job: Job, rounds: int) -> None:
        self.rounds[job.trial.name] = rounds
        self._draw()

    def retried(self, job: Job, reason: str) -> None:
        self.console.print(f"{job.trial.name}  {reason}", highlight=False, soft_wrap=True)

    def ended(self, job: Job, outcome: Outcome) -> None:
        self.running -= 1
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
            end = outcome.error or STATES.get(outcome.state, outcome.state)
            self.console.print(
                f"{self.done:>4}/{self.trials}  {job.trial.name}  {end}",
                highlight=False,
                soft_wrap=True,
            )
        self._draw()

    def _draw(self) -> None:
        self.progress.update(self.bar, completed=sum(self.rounds.values()), description=self._description())

    def _description(self) -> str:
        failed = f", [red]{len(self.failed)} failed[/red]" if self.failed else ""
        interrupted = f", {self.interrupted} interrupted" if self.interrupted else ""
        diverged = f", [yellow]{len(self.diverged)} diverged[/yellow]" if self.diverged else ""
        return f"[bold]{self.done}[/bold]/{self.trials} trials, {self.running} running{interrupted}{diverged}{failed}"
