"""`rollcall status`."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table as Grid

from benchmark.cli.options import STORE, Json, Store, out

STATES = ("finished", "running", "interrupted", "failed", "diverged")

PAUSE = 2.0
"""Seconds between two looks with `--follow`."""


@dataclass(frozen=True)
class Entry:
    """What status.json says of a run folder.

    Attributes:
        experiment, name: of the trial.
        state: one of `STATES`; `interrupted` if its process has died, `damaged` if the file cannot be read.
        round, rounds: done, and asked for.
        rate: rounds per second, evaluations included; 0 if not known.
    """

    experiment: str
    name: str
    state: str
    round: int = 0
    rounds: int = 0
    rate: float = 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the last round; None if not known."""
        return (self.rounds - self.round) / self.rate if self.rate else None


def status(
    experiment: Annotated[str, typer.Argument(help="Default: all in the store.", metavar="[EXPERIMENT]")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="Show it again every 2 s until no trial runs.")] = False,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Show how many trials in the store are finished, running, interrupted, failed or diverged.

    It reads the run folders only, so it can be called from another terminal while trials run.
    """
    name = experiment.removesuffix(".yaml").removesuffix(".yml")
    entries = read(store, name)
    if as_json:
        print(json.dumps([asdict(entry) | {"seconds_left": entry.left} for entry in entries], indent=1))
        return
    if not entries:
        out.print(f"No run folders in {store / name}.", highlight=False, soft_wrap=True)
        return
    if not follow:
        out.print(view(entries))
        return
    try:
        with Live(view(entries), console=out, auto_refresh=False) as live:
            while any(entry.state == "running" for entry in entries):
                time.sleep(PAUSE)
                entries = read(store, name)
                live.update(view(entries), refresh=True)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def read(store: Path, experiment: str = "") -> list[Entry]:
    """The trials of an experiment, by default of all, by experiment and name."""
    files = (store / experiment).rglob("status.json")
    return [_entry(store, file.parent) for file in sorted(files) if ".damaged" not in file.parent.name]


def _entry(store: Path, folder: Path) -> Entry:
    from benchmark.federation.run_lock import is_running

    experiment = str(folder.parent.relative_to(store))
    try:
        content = json.loads((folder / "status.json").read_text())
        state, done, rounds, seconds = (content[key] for key in ("state", "round", "rounds", "seconds"))
    except (OSError, ValueError, KeyError, TypeError):
        return Entry(experiment, folder.name, "damaged")
    if state == "running" and not is_running(folder):
        state = "interrupted"  # its process died
    return Entry(experiment, folder.name, state, int(done), int(rounds), done / seconds if seconds else 0.0)


def view(entries: Sequence[Entry]) -> Group:
    """A row for each experiment, and below it a row for each trial that runs."""
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        counts.setdefault(entry.experiment, Counter())[entry.state] += 1
    shown = [*STATES, *(["damaged"] if any(entry.state == "damaged" for entry in entries) else [])]
    table = Grid("experiment", *shown, box=None, padding=(0, 2, 0, 0))
    for experiment, count in counts.items():
        table.add_row(experiment, *(str(count[state] or "-") for state in shown))
    running = [entry for entry in entries if entry.state == "running"]
    if not running:
        return Group(table)
    trials = Grid("running", "round", "rounds/s", "time left", box=None, padding=(0, 2, 0, 0))
    for entry in running:
        left = "?" if entry.left is None else str(timedelta(seconds=round(entry.left)))
        trials.add_row(entry.name, f"{entry.round:,} of {entry.rounds:,}", f"{entry.rate:,.1f}", left)
    return Group(table, "", trials)
