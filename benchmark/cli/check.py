"""`rollcall check`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.markup import escape
from rich.progress import track
from rich.table import Table as Grid

from benchmark.cli.shared import Json, err, out
from benchmark.config.errors import SettingError, SourceError
from benchmark.config.nested import parse_part

if TYPE_CHECKING:
    from benchmark.config.kind_of import Seen
    from benchmark.config.registry import Choice
    from benchmark.conformance import Outcome


def check(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, FILE.py:NAME, or '{name: mifa, memory: updates}'. Default: all methods of the suite.",
            metavar="PART",
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help="What the parts are, for example partition. Default: seen from each.")] = "",
    as_json: Json = False,
) -> None:
    """Run the conformance checks on parts, your own included, and explain each failure."""
    from benchmark.config.registry import KINDS
    from benchmark.conformance import conform

    choices = {text: _choice(parse_part("part", text), kind) for text in parts or KINDS["algorithm"].known}
    outcomes = {
        name: conform(choice)
        for name, (choice, _) in track(
            choices.items(), "checking", console=err, transient=True, disable=not err.is_terminal
        )
    }
    if as_json:
        print(json.dumps({name: [asdict(outcome) for outcome in ends] for name, ends in outcomes.items()}, indent=1))
    else:
        for name, ends in sorted(outcomes.items(), key=lambda item: all(end.passed for end in item[1])):
            out.print(_conformance(name, choices[name][1], ends, whole=len(choices) == 1), soft_wrap=True)
    raise typer.Exit(0 if all(end.passed for ends in outcomes.values() for end in ends) else 1)


def _choice(value: Any, kind: str) -> "tuple[Choice, Seen]":
    """The choice that a name stands for, and the kind that it was taken for.

    Raises:
        SettingError: there are no checks for this kind, or the name leads nowhere.
    """
    from benchmark.config.kind_of import Seen, kind_of
    from benchmark.config.registry import read
    from benchmark.conformance.checks import OF_KIND

    checked = ("algorithm", *OF_KIND)
    if kind and kind not in checked:
        raise SettingError(f"kind: {kind!r} is not allowed; must be one of {', '.join(checked)}")
    name = value.get("name") if isinstance(value, dict) else value
    seen = kind_of(name) if isinstance(name, str) and not kind else Seen(kind or "algorithm")
    if seen.kind not in checked:
        raise SettingError(f"{name}: there are no checks for the kind {seen.kind}; there are for {', '.join(checked)}")
    try:
        return read(seen.kind, value), seen
    except SourceError:
        raise
    except SettingError as error:
        if not seen.because:
            raise
        raise SettingError(f"{error}. {_taken(seen)}") from None


def _taken(seen: "Seen") -> str:
    """Why a part was taken for its kind, and how to say another one."""
    others = f", as those of the kinds {', '.join(seen.others)} are" if seen.others else ""
    return f"Taken for the kind {seen.kind}: its parameters are ({seen.because}){others}. For another kind: --kind KIND"


def _conformance(name: str, seen: "Seen", outcomes: "list[Outcome]", whole: bool) -> Group:
    """The kind of a part, and the checks that it failed; with `whole`, those that it passed if it failed none."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    verdict = f"[red]fails {len(failed)} of {len(outcomes)} checks[/]" if failed else "[green]passes[/]"
    if len(failed) == len(outcomes):
        verdict = "[red]fails a check that all others rely on[/]"
    remarks = "; ".join(outcome.seen for outcome in outcomes if outcome.passed and outcome.seen)
    grid = Grid(show_header=False, box=None)
    for outcome in failed:
        text = f"{outcome.check}\n  expected  {outcome.expected}\n  seen      {outcome.seen}"
        text += f"\n  in        {outcome.where}" if outcome.where else ""
        grid.add_row("[red]✗[/]", escape(text))
    for outcome in outcomes if whole and not failed else ():
        if outcome.passed:
            grid.add_row("[green]✓[/]", escape(outcome.check))
    head = f"[bold]{escape(name)}[/] ({seen.kind}) {verdict}  {escape(remarks)}"
    return Group(head, *([grid] if grid.row_count else []), *([_taken(seen)] if failed and seen.because else []))
