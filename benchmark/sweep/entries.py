"""How far trials are, read from their run folders. `rollcall run --watch` and `rollcall status` show a row for each."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rich.table import Table

from benchmark.federation.run_folder import RunFolder, run_folders

STATES = ("finished", "running", "interrupted", "failed", "diverged")
COLUMNS = ("trial", "state", "round", "last metric", "rounds/s", "time left")


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
