"""`rollcall check`, `rollcall enter` and `rollcall verify`: parts, entries of a board, and kept results."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from rollcall.benchmark.config.axes import label_of
from rollcall.benchmark.config.choice import KINDS, Choice, kind_of, read
from rollcall.benchmark.config.errors import SettingError, check_one_of
from rollcall.benchmark.config.text import command, counted, parse_part, strict_json
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, Json, err, out, requests_of, say, tracked

if TYPE_CHECKING:
    from rollcall.benchmark.conformance import Outcome


def check(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, FILE.py:NAME, mappings, FILE.json.xz or FILE.entry. Default: all methods.", metavar="PART"
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of the parts, such as partition. Default: by base or methods.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Of an entry: run all of it again, not two runs.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Of an entry: run its own code, which you have read.")] = False,
    board: Annotated[str, typer.Option(metavar="FILE", help="Of an entry: the board, if it is your own file.")] = "",
    as_json: Json = False,
) -> None:
    """Run the conformance checks on parts, and explain each failure.

    Of kept results, a file of `rollcall archive`, it checks provenance, settings and values before you share them.
    Of an entry of a board it checks the rule, and runs one sample and one final run again.
    """
    given = [option for option, value in {"--board": board, "--all": every, "--trust": trust}.items() if value]
    if files := [text for text in parts or () if text.endswith((".entry", ".json.xz"))]:
        if len(files) < len(parts or []):
            raise SettingError("PART: a file is not allowed beside other parts; check them one after the other")
        if kind:
            raise SettingError("--kind is not allowed with a file; it is for parts")
        if given and not any(file.endswith(".entry") for file in files):
            raise SettingError(f"{given[0]} is not allowed with kept results; it is for an entry, FILE.entry")
        found = {
            file: _of_entry(Path(file), every, trust, board) if file.endswith(".entry") else _of_kept(Path(file))
            for file in files
        }
        lines = [line for problems, notes in found.values() for line in (*notes, *problems)]
        problems = {file: problems for file, (problems, _) in found.items()}
        print(json.dumps(problems, indent=1) if as_json else "\n".join(lines))
        raise typer.Exit(1 if any(problems.values()) else 0)
    if given:
        raise SettingError(f"{given[0]} is not allowed with parts; it is for an entry, FILE.entry")
    values = {text: parse_part("part", text) for text in parts or KINDS["algorithm"].known}
    from rollcall.benchmark.conformance import conform  # imports torch, which takes seconds

    choices = {text: _choice(value, kind) for text, value in values.items()}
    outcomes = {name: conform(choice) for name, choice in tracked(choices.items(), "checking")}
    if as_json:
        print(json.dumps({name: [asdict(outcome) for outcome in ends] for name, ends in outcomes.items()}, indent=1))
    else:
        for name, ends in sorted(outcomes.items(), key=lambda item: all(end.passed for end in item[1])):
            out.print(_report(name, choices[name].kind, ends, whole=len(choices) == 1), soft_wrap=True)
    raise typer.Exit(0 if all(end.passed for ends in outcomes.values() for end in ends) else 1)


def _of_kept(file: Path) -> tuple[list[str], list[str]]:
    """The problems of kept results, and notes."""
    from rollcall.leaderboard.kept import problems  # imports pandas

    found = problems(file)
    return found, [] if found else [f"{file}: passes"]


def _of_entry(file: Path, every: bool, trust: bool, own_board: str) -> tuple[list[str], list[str]]:
    """The problems of an entry of a board; and notes, with what was run again."""
    from rollcall.benchmark.search.board import Board
    from rollcall.benchmark.search.entry import Entry, problems, rerun

    try:
        entry = Entry.read(file)
        board = Board.read(own_board or entry.board)
    except SettingError as error:
        return [f"refused: {error}"], []
    try:
        found = problems(entry, board, trust)
    except SettingError as error:
        raise SettingError(f"{file}: {error}") from None
    if found:
        return [f"{file}: refused: {line}" for line in found], []
    notes = [f"{file}: digests, draws, rounds, seeds and cells are those of {board.name}"]
    if entry.own_code and not trust:
        unseen = "nothing was run again, and space, marks and impossible patterns were not compared with the method"
        return [], [*notes, f"{file}: {unseen}: read {', '.join(entry.source or entry.own_code)}, then add --trust"]
    for one in rerun(entry, board, every):
        says = f"{one.where}: {one.stated} in the entry, {one.measured} now"
        if one.equal:
            notes.append(f"{file}: {says}")
        else:
            found.append(f"{file}: refused: {says}")
    runs = sum(len(one.samples) + len(one.finals) for cells in entry.cells.values() for one in cells)
    left = runs - len(notes) - len(found) + 1
    return found, [*notes, *([f"{file}: {left} of {runs} runs were not run again; --all runs all"] if left else [])]


def _choice(value: Any, kind: str) -> Choice:
    """The choice that a name stands for.

    Raises SettingError: there are no checks for its kind, its kind is not clear, or the name leads nowhere.
    """
    from rollcall.benchmark.conformance import CHECKS

    if kind:
        check_one_of("kind", kind, CHECKS)
    name = value.get("name") if isinstance(value, dict) else value
    kind = kind or (kind_of(name) if isinstance(name, str) else "algorithm")
    if kind not in CHECKS:
        raise SettingError(f"{name}: there are no checks for the kind {kind}; there are for {', '.join(CHECKS)}")
    return read(kind, value)


def _report(name: str, kind: str, outcomes: "list[Outcome]", whole: bool) -> Group:
    """The kind of a part, and the checks that it failed; with `whole`, those that it passed if it failed none.

    A check of what the part does not state has a dash.
    """
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
        grid.add_row(Text("-") if outcome.seen.endswith(" unknown") else Text("✓", "green"), outcome.check)
    colour = "red" if failed else "green"
    head = Text.assemble((name, "bold"), f" ({kind}) ", (verdict, colour), f"  {remarks}")
    return Group(head, *([grid] if grid.row_count else []))


def enter(
    methods: Annotated[
        list[str], typer.Argument(metavar="FILE.py:CLASS", help="Your method, or methods of the board.")
    ],
    board: Annotated[str, typer.Option(help="The board.")] = "standard/digits",
    space: Annotated[
        str, typer.Option(metavar="OPTION=DOMAIN", help="The option to search. Default: the class's search_space.")
    ] = "",
    executor: opt.ExecutorChoice = None,
    gpus: opt.Gpus = "0",
    store: opt.Store = STORE,
) -> None:
    """Tune and run a method on a board; rerun to resume.

    It runs the conformance checks, the searches and the final runs, and writes one file for a pull request.
    `rollcall check FILE.entry` verifies it.
    """
    from rollcall.benchmark.search.board import Board
    from rollcall.benchmark.search.entry import Method
    from rollcall.benchmark.search.entry import enter as run

    chosen = Board.read(board)
    entrants: list[Method] = []
    for text in methods:
        algorithm = chosen.methods[text] if text in chosen.methods else parse_part("method", text)
        label = text if text in chosen.methods else label_of(algorithm)
        if text not in chosen.methods and label in chosen.methods:
            raise SettingError(f"method: {label} is not allowed; the board has a method of this name. Rename the class")
        if label in [one.label for one in entrants]:
            raise SettingError(
                f"method: {label} is not allowed twice; its entry would be written over. Rename the class"
            )
        entrants.append(Method(label, algorithm, chosen.space(label, algorithm, space)))
        if text not in chosen.methods:
            _conform(label, algorithm)
    execution = opt.execution(store, executor, gpus, 1, "2m", "", "", mlflow=False)
    entries = run(chosen, entrants, execution, tell=lambda line: say(line, err))
    files = {entry.method: entry.write(store / chosen.name) for entry in entries}
    for entry in entries:
        also = [*(["--trust"] if entry.own_code else []), *([] if board == chosen.name else ["--board", board])]
        say(f"In {files[entry.method]}. Verify it: {command('check', files[entry.method], *also)}")
    words = ["leaderboard", board, *(["--against", entries[0].method] if entries[0].own_code else [])]
    say(f"The board with it: {command(*words, store=store)}")


def _conform(label: str, algorithm: object) -> None:
    from rollcall.benchmark.conformance import conform

    failed = [outcome for outcome in conform(read("algorithm", algorithm)) if not outcome.passed]
    if failed:
        raise SettingError(
            f"method: {label} fails {counted(len(failed), 'conformance check')}, the first: {failed[0].check}. "
            "rollcall check explains them. Nothing is entered"
        )
    say(f"{label} passes the conformance checks", err)


def verify(
    experiment: opt.Name,
    variant: opt.Variant = "",
    only: opt.Only = None,
    seeds: opt.Seeds = "",
    as_json: opt.Json = False,
) -> None:
    """Run kept runs again, and compare their numbers with the kept."""
    from rollcall.leaderboard.kept import verdict_on
    from rollcall.leaderboard.runs import unarchive

    requests = requests_of([experiment], variant, seeds, only)
    if len(requests) != 1:
        raise SettingError(f"experiment: {experiment!r} is not allowed; must be one experiment")
    runs = requests[0].runs
    kept = {run.digest: run for run in unarchive(requests[0].experiment.home)}
    chosen = [point for point in runs if point.digest in kept]
    if not chosen:
        raise SettingError(f"{experiment}: none of the {counted(len(runs), 'run')} asked for is kept")
    rows = {}
    for point in chosen:
        rows[point.name] = verdict_on(kept[point.digest], point.trial)
        if not as_json:
            say(f"{point.name}: {rows[point.name]}")
    if as_json:
        print(strict_json({"runs": rows, "not kept": len(runs) - len(chosen)}))
    elif len(chosen) < len(runs):
        say(f"{counted(len(runs) - len(chosen), 'other run')} asked for: not kept")
    raise typer.Exit(1 if any(text.startswith("differs") for text in rows.values()) else 0)
