"""`rollcall enter`: a method onto a board; `rollcall verify`: kept runs once more."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import label_of
from rollcall.benchmark.config.text import command, counted, parse_part, strict_json
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, err, out, say
from rollcall.cli.plan import plans_of

if TYPE_CHECKING:
    from rollcall.benchmark.search.board import Board
    from rollcall.benchmark.search.entry import Method
    from rollcall.leaderboard.standing import Standing

DEFAULT = "standard/digits"


def enter(
    methods: Annotated[
        list[str], typer.Argument(metavar="FILE.py:CLASS...", help="Your method, or methods of the board.")
    ],
    board: Annotated[str, typer.Option(help="The board.")] = DEFAULT,
    space: Annotated[
        str, typer.Option(metavar="OPTION=DOMAIN", help="The option to search. Default: the class's search_space.")
    ] = "",
    seed: Annotated[
        int | None, typer.Option(min=0, help="First seed of other searches; not allowed in entries.")
    ] = None,
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
    from rollcall.leaderboard.standing import standing

    chosen = Board.read(board).with_seeds(seed)
    entrants = []
    for text in methods:
        algorithm = chosen.methods[text] if text in chosen.methods else parse_part("method", text)
        label = text if text in chosen.methods else label_of(algorithm)
        if text not in chosen.methods and label in chosen.methods:
            raise SettingError(f"method: {label} is not allowed; the board has a method of this name. Rename the class")
        entrants.append(Method(label, algorithm, chosen.space(label, algorithm, space)))
        if text not in chosen.methods:
            _conform(label, algorithm)
    _need_data(chosen, entrants)
    execution = opt.execution(store, executor, gpus, 1, "2m", "", "", mlflow=False)
    entries = run(chosen, entrants, execution, tell=lambda line: say(line, err))
    files = {entry.method: entry.write(store / chosen.name) for entry in entries}
    if seed is None:
        _tell(standing(chosen, store), [entry.method for entry in entries], store / chosen.name)
    for file in files.values():
        also = f" Verify it: {command('check', file)}" if seed is None else " Other seeds are not allowed on the board."
        say(f"In {file}.{also}")


def _conform(label: str, algorithm: object) -> None:
    """Raise `SettingError` unless a method passes the conformance checks."""
    from rollcall.benchmark.conformance import conform

    failed = [outcome for outcome in conform(read("algorithm", algorithm)) if not outcome.passed]
    if failed:
        raise SettingError(
            f"method: {label} fails {counted(len(failed), 'conformance check')}, the first: {failed[0].check}. "
            "rollcall check explains them. Nothing is entered"
        )
    say(f"{label} passes the conformance checks", err)


def _need_data(board: "Board", methods: "list[Method]") -> None:
    """Raise `SettingError` if data are missing."""
    from rollcall.benchmark.timing import missing

    spec = next(iter(board.conditions(next(iter(board.methods))).values()))
    if lacking := missing([board.final(spec, {}, 0)]):
        raise SettingError(
            f"{board.name}: needs the data of {', '.join(lacking)}; first: rollcall data get {lacking[0]}"
        )


def _tell(shown: "Standing", entrants: list[str], folder: Path) -> None:
    """Print the board as the entrants see it, and write the table for LaTeX and the picture."""
    from rollcall.leaderboard import render, standing
    from rollcall.leaderboard.figures import board_chart, save

    table = standing.result_table(shown, entrants[0])
    out.print(render.terminal(table, shown.board.experiment.title, out.width))
    for baseline in ["fedavg"] * ("fedavg" in shown.entries and entrants != ["fedavg"]) + [""]:
        title = f"Minus {baseline or 'the best'}"
        out.print(render.terminal(standing.difference_table(shown, baseline), title, out.width))
    for method in entrants:
        groups = [name for name in shown.conditions(method) if method in shown.group(name)]
        place = shown.order.index(method) + 1
        say(
            f"{method}: rank {place} of {len(shown.order)}; in the best group under {', '.join(groups) or 'no pattern'}"
        )
    (folder / "leaderboard.tex").write_text(render.latex(table), encoding="utf-8")
    save(board_chart(shown), folder / "leaderboard.svg")


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

    plans = plans_of([experiment], variant, seeds, only)
    if len(plans) != 1:
        raise SettingError(f"experiment: {experiment!r} is not allowed; must be one experiment")
    runs = plans[0].runs
    kept = {run.digest: run for run in unarchive(plans[0].experiment.home)}
    chosen = [place for place in runs if place.digest in kept]
    if not chosen:
        raise SettingError(f"{experiment}: none of the {counted(len(runs), 'run')} asked for is kept")
    rows = {}
    for place in chosen:
        rows[place.name] = verdict_on(kept[place.digest], place.trial)
        if not as_json:
            say(f"{place.name}: {rows[place.name]}")
    if as_json:
        print(strict_json({"runs": rows, "not kept": len(runs) - len(chosen)}))
    elif len(chosen) < len(runs):
        say(f"{counted(len(runs) - len(chosen), 'other run')} asked for: not kept")
    raise typer.Exit(1 if any(text.startswith("differs") for text in rows.values()) else 0)
