"""`rollcall check`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Group
from rich.progress import track
from rich.table import Table as Grid
from rich.text import Text

from rollcall.benchmark.config.choice import KINDS, Choice, kind_of, read
from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.text import parse_part
from rollcall.cli.options import Json, err, out

if TYPE_CHECKING:
    from rollcall.benchmark.conformance import Outcome


def check(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, FILE.py:NAME, mappings, FILE.json.xz or FILE.entry. Default: all methods.", metavar="PART"
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of the parts, such as partition. Default: by base class.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Of an entry: run all of it again, not two runs.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Of an entry: run its own code, which you have read.")] = False,
    as_json: Json = False,
) -> None:
    """Run the conformance checks on parts, and explain each failure.

    Of kept results, a file of `rollcall archive`, it checks provenance, settings and values before you share them.
    Of an entry of a board it checks the rule, and runs one sample and one final run again.
    """
    if entries := [Path(text) for text in parts or () if text.endswith(".entry")]:
        if len(entries) < len(parts or []):
            raise SettingError("PART: FILE.entry is not allowed beside other parts; check them one after the other")
        lines = {str(file): _of_entry(file, every, trust) for file in entries}
        print(json.dumps(lines, indent=1) if as_json else "\n".join(line for own in lines.values() for line in own))
        raise typer.Exit(1 if any("refused" in line for own in lines.values() for line in own) else 0)
    if files := [Path(text) for text in parts or () if text.endswith(".json.xz")]:
        _check_kept(files, parts or [], as_json)
    values = {text: parse_part("part", text) for text in parts or KINDS["algorithm"].known}
    from rollcall.benchmark.conformance import conform  # imports torch, which takes seconds

    choices = {text: _choice(value, kind) for text, value in values.items()}
    outcomes = {
        name: conform(choice)
        for name, choice in track(choices.items(), "checking", console=err, transient=True, disable=not err.is_terminal)
    }
    if as_json:
        print(json.dumps({name: [asdict(outcome) for outcome in ends] for name, ends in outcomes.items()}, indent=1))
    else:
        for name, ends in sorted(outcomes.items(), key=lambda item: all(end.passed for end in item[1])):
            out.print(_report(name, choices[name].kind, ends, whole=len(choices) == 1), soft_wrap=True)
    raise typer.Exit(0 if all(end.passed for ends in outcomes.values() for end in ends) else 1)


def _check_kept(files: list[Path], parts: list[str], as_json: bool) -> NoReturn:
    """Check kept results, and leave."""
    if len(files) < len(parts):
        raise SettingError("PART: FILE.json.xz is not allowed beside other parts; check them one after the other")
    from rollcall.leaderboard.kept import problems  # imports pandas

    found = {str(file): problems(file) for file in files}
    lines = [line for file, ends in found.items() for line in ends or [f"{file}: passes"]]
    print(json.dumps(found, indent=1) if as_json else "\n".join(lines))
    raise typer.Exit(1 if any(found.values()) else 0)


def _of_entry(file: Path, every: bool, trust: bool) -> list[str]:
    """What is wrong with an entry of a board, and what was run again: a line each."""
    from rollcall.benchmark.search.board import Board
    from rollcall.benchmark.search.entry import Entry, problems, rerun

    try:
        entry = Entry.read(file)
        board = Board.read(entry.board)
    except SettingError as error:
        return [f"refused: {error}"]
    if found := problems(entry, board):
        return [f"{file}: refused: {line}" for line in found]
    lines = [f"{file}: digests, draws, rounds, seeds and cells are those of {board.name}"]
    if entry.source and not trust:
        return [*lines, f"{file}: nothing was run again: read {', '.join(entry.source)}, then add --trust"]
    for one in rerun(entry, board, every):
        says = f"{one.where}: {one.stated} in the entry, {one.measured} now"
        lines.append(f"{file}: {says}" if one.equal else f"{file}: refused: {says}")
    runs = sum(len(one.samples) + len(one.finals) for cells in entry.cells.values() for one in cells)
    left = runs - len(lines) + 1
    return [*lines, *([f"{file}: {left} of {runs} runs were not run again; --all runs all"] if left else [])]


def _choice(value: Any, kind: str) -> Choice:
    """The choice that a name stands for.

    Raises:
        SettingError: there are no checks for its kind, its kind is not clear, or the name leads nowhere.
    """
    from rollcall.benchmark.conformance import CHECKS

    if kind and kind not in CHECKS:
        raise SettingError(f"kind: {kind!r} is not allowed; must be one of {listed(CHECKS, kind)}")
    name = value.get("name") if isinstance(value, dict) else value
    kind = kind or (kind_of(name) if isinstance(name, str) else "algorithm")
    if kind not in CHECKS:
        raise SettingError(f"{name}: there are no checks for the kind {kind}; there are for {', '.join(CHECKS)}")
    return read(kind, value)


def _report(name: str, kind: str, outcomes: "list[Outcome]", whole: bool) -> Group:
    """The kind of a part, and the checks that it failed; with `whole`, those that it passed if it failed none."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    verdict = f"fails {len(failed)} of {len(outcomes)} checks" if failed else "passes"
    if len(failed) == len(outcomes):
        verdict = "fails a check that all others rely on"
    remarks = "; ".join(outcome.seen for outcome in outcomes if outcome.passed and outcome.seen)
    grid = Grid(show_header=False, box=None)
    for outcome in failed:
        text = f"{outcome.check}\n  expected  {outcome.expected}\n  seen      {outcome.seen}"
        grid.add_row(Text("✗", "red"), f"{text}\n  in        {outcome.where}" if outcome.where else text)
    for outcome in outcomes if whole and not failed else ():
        grid.add_row(Text("✓", "green"), outcome.check)
    colour = "red" if failed else "green"
    head = Text.assemble((name, "bold"), f" ({kind}) ", (verdict, colour), f"  {remarks}")
    return Group(head, *([grid] if grid.row_count else []))
