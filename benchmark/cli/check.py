"""`rollcall check`."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
import yaml
from rich.console import Group
from rich.markup import escape
from rich.progress import track
from rich.table import Table as Grid

from benchmark.cli.options import Json, err, out


def check(
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, FILE.py:CLASS, or '{name: mifa, memory: updates}'. Default: all methods of the suite."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the conformance checks on algorithms, your own included, and explain each failure."""
    from benchmark.config.registry import KINDS, read
    from benchmark.conformance import conform

    choices = [read("algorithm", yaml.safe_load(text)) for text in algorithms or KINDS["algorithm"].known]
    outcomes = {
        choice.name: conform(choice)
        for choice in track(choices, "checking", console=err, transient=True, disable=not err.is_terminal)
    }
    if as_json:
        print(json.dumps({name: [asdict(outcome) for outcome in ends] for name, ends in outcomes.items()}, indent=1))
    else:
        for name, ends in sorted(outcomes.items(), key=lambda item: all(end.passed for end in item[1])):
            out.print(_conformance(name, ends, whole=len(choices) == 1))
    raise typer.Exit(0 if all(end.passed for ends in outcomes.values() for end in ends) else 1)


def _conformance(name: str, outcomes: list[Any], whole: bool) -> Group:
    """The checks that an algorithm failed; with `whole`, then those that it passed."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    verdict = f"[red]fails {len(failed)} of {len(outcomes)} checks[/]" if failed else "[green]passes[/]"
    remarks = "; ".join(outcome.seen for outcome in outcomes if outcome.passed and outcome.seen)
    grid = Grid(show_header=False, box=None)
    for outcome in failed:
        text = f"{outcome.check}\n  expected  {outcome.expected}\n  seen      {outcome.seen}"
        text += f"\n  in        {outcome.where}" if outcome.where else ""
        grid.add_row("[red]✗[/]", escape(text))
    for outcome in outcomes if whole else ():
        if outcome.passed:
            grid.add_row("[green]✓[/]", escape(outcome.check))
    return Group(f"[bold]{escape(name)}[/] {verdict}  {escape(remarks)}", *([grid] if grid.row_count else []))
