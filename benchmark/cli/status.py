"""`rollcall status`."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table as Grid

from rollcall.benchmark.cli.shared import STORE, Json, Store, out, strict_json
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.sweep.progress import STATES, Entry, read, table

PAUSE = 2.0
"""Seconds between two looks with `--follow`."""


def status(
    experiment: Annotated[str, typer.Argument(help="Default: all in the store.", metavar="[EXPERIMENT]")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="Show it again every 2 s until no trial runs.")] = False,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Show how many trials in the store are finished, running, interrupted, failed or diverged.

    It reads the run folders only, so it can be called from another terminal while trials run.
    """
    if follow and as_json:
        raise SettingError("--follow is not allowed with --json; leave one of them out")
    name = Experiment.read(experiment).home if experiment.endswith((".yaml", ".yml")) else experiment
    entries = read(store, name)
    if name and not entries:
        Experiment.read(experiment)  # a misspelt name is refused
    if as_json:
        print(strict_json([asdict(entry) | {"seconds_left": entry.left} for entry in entries]))
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


def view(entries: Sequence[Entry]) -> Group:
    """A row for each experiment, and below it a row for each trial that runs."""
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        counts.setdefault(entry.experiment, Counter())[entry.state] += 1
    shown = [*STATES, *(["damaged"] if any(entry.state == "damaged" for entry in entries) else [])]
    grid = Grid("experiment", *shown, box=None, padding=(0, 2, 0, 0))
    for experiment, count in counts.items():
        grid.add_row(experiment, *(str(count[state] or "-") for state in shown))
    running = [entry for entry in entries if entry.state == "running"]
    return Group(grid, "", table(running)) if running else Group(grid)
