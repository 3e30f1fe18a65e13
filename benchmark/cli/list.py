"""`rollcall list`."""

import json
import re
import sys
from functools import partial
from inspect import getdoc
from typing import Any

from rich.markup import escape
from rich.table import Table as Grid

from benchmark.cli.options import Json, out
from benchmark.config.experiment import Experiment, names


def list_(as_json: Json = False) -> None:
    """Experiments, and the names that experiment files are made of."""
    from benchmark.config.registry import KINDS

    experiments = {name: Experiment.read(name) for name in names()}
    found = {"experiment": {name: experiment.title for name, experiment in experiments.items()}}
    for kind, choices in KINDS.items():
        found[kind] = {name: _summary(kind, thing) for name, thing in choices.known.items()}
    if as_json:
        print(json.dumps(found, indent=1))
        return
    for paper in sorted({name.rpartition("/")[0] for name in experiments}):  # the suite's own, of no paper, first
        grid = Grid.grid(padding=(0, 3, 0, 0))
        for name, experiment in experiments.items():
            if name.rpartition("/")[0] == paper:
                grid.add_row(f"  [cyan]{name}[/cyan]", escape(experiment.title), escape(experiment.source))
        out.print(f"[bold]experiment{'s of ' * bool(paper)}{paper}[/bold]", grid, "")
    for kind in KINDS:
        grid = Grid.grid(padding=(0, 3, 0, 0))
        for name, summary in found[kind].items():
            grid.add_row(f"  [cyan]{name}[/cyan]", summary)
        out.print(f"[bold]{kind}[/bold]", grid, "")


def _summary(kind: str, choice: Any) -> str:
    """The first sentence said of a choice: of a method, its file's; of a data set's task, the data set's."""
    if isinstance(choice, partial):
        choice = choice.args[0]
    said = getdoc(sys.modules[choice.__module__] if kind == "algorithm" else choice) or ""
    return re.split(r"(?<!Fig)(?<!et al)\.(?:\s|$)", " ".join(said.split("\n\n")[0].split()))[0]
