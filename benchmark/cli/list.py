"""`rollcall list`."""

import json
from importlib.metadata import entry_points

from rich.markup import escape
from rich.table import Table as Grid

from rollcall.benchmark.cli.shared import Json, out
from rollcall.benchmark.config.choice import GROUP, KINDS
from rollcall.benchmark.config.experiment import Experiment, names
from rollcall.benchmark.config.summaries import summaries


def list_(as_json: Json = False) -> None:
    """List the experiments, and the names that experiment files can use."""
    experiments = {name: Experiment.read(name) for name in names()}
    listed = {"experiment": {name: experiment.title for name, experiment in experiments.items()}}
    listed |= {kind: summaries(choices.address) | _installed(kind) for kind, choices in KINDS.items()}
    if as_json:
        print(json.dumps(listed, indent=1))
        return
    for paper in sorted({name.rpartition("/")[0] for name in experiments}):  # "", the suite's own, comes first
        grid = Grid.grid(padding=(0, 3, 0, 0))
        for name, experiment in experiments.items():
            if name.rpartition("/")[0] == paper:
                grid.add_row(f"  [cyan]{name}[/cyan]", escape(experiment.title), escape(experiment.source))
        out.print(f"[bold]experiment{'s of ' * bool(paper)}{paper}[/bold]", grid, "")
    for kind in filter(listed.get, KINDS):  # `function` lists none
        grid = Grid.grid(padding=(0, 3, 0, 0))
        for name, summary in listed[kind].items():
            grid.add_row(f"  [cyan]{name}[/cyan]", escape(summary))
        out.print(f"[bold]{kind}[/bold]", grid, "")


def _installed(kind: str) -> dict[str, str]:
    """The choices of a kind that installed packages offer, each with its address; nothing is imported."""
    return {
        point.name.removeprefix(f"{kind}."): f"{point.value}, of the installed package {point.dist.name}"
        for point in entry_points(group=GROUP)
        if point.name.startswith(f"{kind}.") and point.dist is not None
    }
