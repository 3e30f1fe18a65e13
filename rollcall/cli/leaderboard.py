"""`rollcall leaderboard`."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import COSTS
from rollcall.benchmark.config.text import command, parse_all
from rollcall.cli.options import METRIC, STORE, Json, Mine, Name, Only, Store, Variant, out, say
from rollcall.leaderboard.paper.experiment import PaperExperiment

X = Literal["round", "gradients", "floats", "seconds"]
Form = Literal["terminal", "md", "csv", "latex"]


def leaderboard(
    experiment: Name,
    variant: Variant = "",
    metric: Annotated[
        list[str] | None, typer.Option(metavar=METRIC, help="A column; the first ranks. Default: the experiment's.")
    ] = None,
    only: Only = None,
    mine: Mine = False,
    against: Annotated[
        str, typer.Option(metavar="METHOD", help="Show differences to this method, paired by seed.")
    ] = "",
    overall: Annotated[
        bool, typer.Option("--overall", help="Rank methods over all conditions by their mean rank.")
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Print the evidence of verdicts; of a board all tables.")] = False,
    last_rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Average this many last rounds. Default: the experiment's.")
    ] = None,
    x: Annotated[X | None, typer.Option(help="The x axis of the figure. Default: the experiment's.")] = None,
    form: Annotated[Form | None, typer.Option("--format", help="Format of the table. Default: terminal.")] = None,
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of files. Default: STORE/EXPERIMENT.")] = None,
    store: Store = STORE,
    mlflow: Annotated[
        str, typer.Option(metavar="URI", help="Read your runs from this MLflow server or database.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Print an experiment's table, and write it with a figure.

    With --json nothing is written.

    For a paper's experiment it is the paper's table, printed numbers beside measured ones, and the paper's claims. Your
    own runs, from the run folders in the store or an MLflow server, replace kept results of the same cell if they have
    as many rounds and seeds. For other experiments it is a ranking of your own runs, or else of the kept ones; with
    --against or --overall a ranking of all runs.
    """
    if as_json and form is not None:
        raise SettingError("--format is not allowed with --json; leave one of them out")
    from rollcall.leaderboard import boards, render
    from rollcall.leaderboard.paper.sentences import claims_list
    from rollcall.leaderboard.runs import finished

    chosen = PaperExperiment.read(experiment)
    if boards.is_board(chosen):
        other: dict[str, Any] = {"--variant": variant, "--metric": metric, "--only": only, "--overall": overall}
        other |= {"--last-rounds": last_rounds, "--x": x, "--mlflow": mlflow, "--format csv": form == "csv"}
        if given := [option for option, value in other.items() if value]:
            raise SettingError(
                f"{given[0]} is not allowed for a board; {experiment} takes --against, --why, --format md or latex, "
                "--to, --mine, --store and --json"
            )
        _board(experiment, against, why, form, to, store, mine, as_json)
        return
    chosen = boards.with_report(chosen.as_(variant) if variant else chosen, metric or [], last_rounds)
    conditions = parse_all("only", only or [])
    is_paper = bool(chosen.source) and not (against or overall)
    columns = [*chosen.metrics, *COSTS] if is_paper else None  # a ranking may need any of them
    runs = finished(chosen.home, store, mine or not chosen.source, columns, mlflow)
    if not (runs or mine or mlflow):
        runs = finished(chosen.home, None)
    try:
        if is_paper:
            board = boards.paper_board(chosen.only(conditions), runs, store, x)
        else:
            board = boards.ranking_board(chosen, store, runs, conditions, x, against, overall)
    except boards.NoRuns as error:
        first = command("run", experiment, *(["--variant", variant] if variant else []), store=store)
        where = f"; read from {mlflow}" if mlflow else f"; first: {first}"
        raise SettingError(f"{error}{where}") from None
    if as_json:
        print(json.dumps(board.data, indent=1))
        return
    texts = board.texts(why)
    if form not in (None, "terminal"):
        print(texts["tex" if form == "latex" else form], end="")
    else:
        out.print(render.terminal(board.table, board.title, out.width))
        told = "\n".join(claims_list(board.claims, why))
        out.print(told.replace("**", "").replace("`", ""), highlight=False)
        if board.claims and not why:
            say("--why prints the evidence and the causes.")
    folder = to or store / chosen.name
    try:
        files = board.write(folder, texts)
    except OSError as error:
        raise SettingError(
            f"{folder}: the files cannot be written ({error.strerror}); choose a folder with --to DIR"
        ) from None
    if form in (None, "terminal"):
        say(f"In {folder}: {files}")


def _board(
    name: str, against: str, why: bool, form: Form | None, to: Path | None, store: Path, mine: bool, as_json: bool
) -> None:
    """Print a board, and write its tables and its picture. `--why` and files have all tables."""
    from rollcall.benchmark.search.board import Board
    from rollcall.leaderboard import render, standing
    from rollcall.leaderboard.figures import board_chart, save

    shown = standing.standing(Board.read(name), store, kept=not mine)
    if as_json:
        print(json.dumps(standing.as_data(shown), indent=1))
        return
    tables = standing.tables(shown, against or next(iter(shown.entries)))
    markdown = "\n".join(f"## {heading}\n\n{render.markdown(table)}" for heading, table in tables.items())
    latex = "\n".join(map(render.latex, tables.values()))
    if form in ("md", "latex"):
        print(markdown if form == "md" else latex, end="")
    else:
        for heading, table in tables.items():
            if why or heading in ("test accuracy", f"minus {against}"):
                out.print(render.terminal(table, f"{shown.board.name}: {heading}", out.width))
        some = f"Measured with {len(shown.entries)} of {len(shown.board.methods)} methods"
        for expectation, (verdict, measured) in standing.verdicts(shown).items():
            say(f"{verdict}: {standing.EXPECTATIONS[expectation]} {some}: {measured}.")
    folder = to or store / shown.board.name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in {"leaderboard.md": markdown, "leaderboard.tex": latex}.items():
        (folder / file).write_text(text, encoding="utf-8")
    save(board_chart(shown), folder / "leaderboard.svg")
    if form is None or form == "terminal":
        say(f"In {folder}: leaderboard.svg, .md and .tex." + ("" if why else " --why prints all tables."))
