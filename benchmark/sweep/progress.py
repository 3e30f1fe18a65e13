"""How far trials are, read from their run folders: the rows of `rollcall status`, and the bar of `rollcall run`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, run_folders

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.jobs import Job

LINES = 30.0
"""Seconds between two lines about the whole sweep outside a terminal."""


def need_store(store: Path) -> None:
    """Raise SettingError if it is a run folder."""
    if (store / "status.json").exists():
        raise SettingError(f"store: {store} is not allowed; it is a run folder")


def read(store: Path, experiment: str = "") -> list[dict[str, Any]]:
    """The trials of an experiment, by default of all, by experiment and name: state, rounds done and asked for, rate.

    `state` is `interrupted` if the process of a trial has died, and `damaged` if its status cannot be read. The rate
    (rounds per second) includes evaluations; it and `seconds_left` are None if not known.
    """
    need_store(store)
    if Path(experiment).is_absolute():
        raise SettingError(f"experiment: {experiment!r} is not allowed; must be a name or a YAML file")
    rows = []
    for folder in run_folders(store / experiment):
        run = RunFolder(folder)
        row: dict[str, Any] = {"experiment": str(folder.parent.relative_to(store)), "name": folder.name}
        try:
            status = run.status
            done, rounds = int(status["round"]), int(status["rounds"])
            rate = done / status["seconds"] if done else None
            row |= {"state": run.state_now, "round": done, "rounds": rounds, "rate": rate}
            row["seconds_left"] = (rounds - done) / rate if rate else None
        except (OSError, ValueError, KeyError, TypeError, ArithmeticError):
            row["state"] = "damaged"
        rows.append(row)
    return rows


class View:
    """The progress of a sweep, read from its run folders: a bar over all trials, those of earlier sweeps included.

    Outside a terminal it is a line for each trial that ends, and one about the whole sweep every 30 seconds.
    """

    def __init__(self, jobs: Sequence["Job"], console: Console) -> None:
        self.jobs, self.console, self.running = jobs, console, 0
        self.ends = Counter("diverged" if job.diverged else "finished" for job in jobs if job.ended)
        self.left = {job: job.folder.status for job in jobs if not job.ended}  # with the status before the sweep
        self.rounds = {job: job.trial.rounds for job in jobs}
        self.rounds |= {job: status.get("round", 0) for job, status in self.left.items()}
        self.told: float | None = None
        columns = (*Progress.get_default_columns()[:3], TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self.progress = Progress(*columns, console=console, refresh_per_second=4, disable=not console.is_terminal)
        self.bar = self.progress.add_task("", total=sum(job.trial.rounds for job in jobs))
        self._draw()

    def look(self) -> None:
        """Read the run folders that have changed since the sweep began, and draw."""
        self.running = 0
        for job, before in list(self.left.items()):
            with suppress(Damaged, OSError):  # the next look reads it again
                status = job.folder.status
                if status.get("updated") == before.get("updated"):
                    continue
                self.told = self.told or monotonic()  # the first trial has started
                state = status.get("state", "running")
                self.rounds[job] = min(status.get("round", 0), job.trial.rounds)
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
        self.rounds[job] = job.trial.rounds
        self.ends[state] += 1
        if not self.console.is_terminal:
            self._say(f"{self._done():>4}/{len(self.jobs)}  {job.trial.name}  {text}")

    def _say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)

    def _done(self) -> int:
        return sum(self.ends[state] for state in ("finished", "failed", "diverged"))

    def _draw(self) -> None:
        ends = [f", {self.ends[state]} {state}" for state in ("interrupted", "diverged", "failed") if self.ends[state]]
        text = f"{self._done()}/{len(self.jobs)} trials, {self.running} running{''.join(ends)}"
        self.progress.update(self.bar, completed=sum(self.rounds.values()), description=text)
